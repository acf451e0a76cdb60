package project_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

func TestSkillFiles(t *testing.T) {
	t.Parallel()
	type skill struct {
		Name, Description, Body string
		Faults                  []int // lines
	}
	for name, tc := range map[string]struct {
		file string
		want skill
	}{
		"no front matter":     {"# Title\n\nText.\n", skill{Body: "# Title\n\nText."}},
		"front matter":        {"---\nname: a\ndescription: Use when b.\n---\n\nText.\n", skill{"a", "Use when b.", "Text.", nil}},
		"byte order mark":     {"\uFEFF---\r\ndescription: d\r\n---\r\nText.\r\n", skill{Description: "d", Body: "Text."}},
		"empty front matter":  {"---\n---\nText.", skill{Body: "Text."}},
		"a rule in the text":  {"---\ndescription: d\n---\na\n\n---\n\nb", skill{Description: "d", Body: "a\n\n---\n\nb"}},
		"folded":              {"---\ndescription: >\n  a\n  b\n---\nt", skill{Description: "a b", Body: "t"}},
		"number and truth":    {"---\nname: 7\ndescription: true\n---\nt", skill{"7", "true", "t", nil}},
		"open format":         {"---\nname: a\ndescription: d\nlicense: x\ncompatibility: y\nmetadata: {k: [1]}\nallowed-tools: [a]\n---\nt", skill{"a", "d", "t", nil}},
		"unknown keys":        {"---\ndescription: d\nversion: 1\n\"tags\": [a]\n---\nt", skill{Description: "d", Body: "t", Faults: []int{3, 4}}},
		"not closed":          {"---\ndescription: d\ntext", skill{Faults: []int{1}}},
		"no mapping":          {"---\n- a\n---\nt", skill{Body: "t", Faults: []int{2}}},
		"no YAML":             {"---\n: b: [\n---\nt", skill{Body: "t", Faults: []int{2}}},
		"a colon in a text":   {"---\nname: a\ndescription: Don't guess. Use when: asked \n---\nt", skill{"a", "Don't guess. Use when: asked", "t", []int{3}}},
		"a colon in two":      {"---\ndescription: a: b\nlicense: c: d\n---\nt", skill{Description: "a: b", Body: "t", Faults: []int{2}}},
		"1,024 characters":    {"---\ndescription: " + strings.Repeat("é", 1024) + "\n---\nt", skill{Description: strings.Repeat("é", 1024), Body: "t"}},
		"a description of 2k": {"---\ndescription: " + strings.Repeat("x", 2000) + "\n---\nt", skill{Description: strings.Repeat("x", 2000), Body: "t", Faults: []int{2}}},
		"nothing":             {"", skill{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got skill
			got.Name, got.Description, got.Body, got.Faults = project.ParseSkill([]byte(tc.file))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzParseSkill(f *testing.F) {
	for _, seed := range []string{
		"", "---", "---\n---", "---\na: &a [*a]\n---\n", "---\n? [a]\n: b\n---", "---\ndescription: |\n x\n---\nt", "---\n\t\n---", "---\na: !!binary x\n---\n",
		"---\nx: {{{{{{{{\n---", "---\na: b: c'\nd: e: [\n---\n", "\uFEFF---\r\nname: a\r\n---\r\n", "---\n<<: a\n---\n", "---\nname: 2020-01-01\n---\n", "---\n*x\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, body, lines := project.ParseSkill(data)
		if len(body) > len(data) {
			t.Errorf("the text %q is longer than its file %q", body, data)
		}
		for _, line := range lines {
			if line < 0 || line > strings.Count(string(data), "\n")+2 {
				t.Errorf("a mistake in line %d of %q", line, data)
			}
		}
	})
}
