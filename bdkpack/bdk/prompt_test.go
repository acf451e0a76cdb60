package bdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestPrompt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, want string
		lines      []string
	}{
		"nothing":                                  {"", "", nil},
		"one line stays":                           {"a", "a", []string{"a"}},
		"the closing quote leaves its line end":    {"\n\t\ta\n\t\tb\n\t", "a\nb\n", []string{"a", "b"}},
		"closed on the last line":                  {"\n\t\ta\n\t\tb", "a\nb", []string{"a", "b"}},
		"deeper indentation is kept":               {"\n  a\n    b\n  c", "a\n  b\nc", []string{"a", "  b", "c"}},
		"the first line counts":                    {"a\n  b", "a\n  b", []string{"a", "  b"}},
		"the least indented line decides":          {"\n    a\n  b", "  a\nb", []string{"  a", "b"}},
		"exactly one line end at the beginning":    {"\n\n\n  a", "\n\na", []string{"", "", "a"}},
		"the opening quote may have spaces behind": {"  \n  a", "a", []string{"a"}},
		"inner blank lines are kept":               {"\n  a\n\n\n  b", "a\n\n\nb", []string{"a", "", "", "b"}},
		"blank lines lose their spaces":            {"\n  a\n \n      \n  b", "a\n\n\nb", []string{"a", "", "", "b"}},
		"blank lines at the end are kept":          {"\n  a\n\n  ", "a\n\n", []string{"a", ""}},
		"tabs and spaces are told apart":           {"\n\t  a\n\t\tb", "  a\n\tb", []string{"  a", "\tb"}},
		"nothing in common":                        {"\n\ta\n  b", "\ta\n  b", []string{"\ta", "  b"}},
		"windows line ends":                        {"\r\n  a\r\n\r\n    b\r\n", "a\n\n  b\n", []string{"a", "", "  b"}},
		"white space only":                         {"\n  \n ", "\n", []string{""}},
		"other white space is text":                {"\n  \u00a0a\n  b", "\u00a0a\nb", []string{"\u00a0a", "b"}},
		"spaces behind the text are kept":          {"\n  a  \n  b", "a  \nb", []string{"a  ", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, bdk.Prompt(test.text)); diff != "" {
				t.Errorf("Prompt(%q) (-want +got):\n%s", test.text, diff)
			}
			got := bdk.PromptLines(test.text)
			if diff := cmp.Diff(test.lines, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("PromptLines(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func FuzzPrompt(f *testing.F) {
	for _, seed := range []string{"", "\n\t\ta\n\t\t\tb\n\t", "  a\r\n\r\n b\r\r\n", "\n\n \t\n\ta", "\xff\n \xfe", "\r", "a\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := bdk.Prompt(text)
		if words(got) != words(text) {
			t.Errorf("Prompt(%q) = %q: the text is another", text, got)
		}
		if !strings.HasPrefix(got, "\n") && bdk.Prompt(got) != got {
			t.Errorf("Prompt(%q) = %q, and of that %q", text, got, bdk.Prompt(got))
		}
		if removed := strings.Count(text, "\n") - strings.Count(got, "\n"); removed < 0 || removed > 1 {
			t.Errorf("Prompt(%q) = %q: %d line ends removed", text, got, removed)
		}
		// One more level of indentation in the code changes nothing.
		if deeper := "\n\t" + strings.ReplaceAll(got, "\n", "\n\t"); bdk.Prompt(deeper) != got {
			t.Errorf("Prompt(%q) = %q, want %q", deeper, bdk.Prompt(deeper), got)
		}
		want := strings.TrimSuffix(got, "\n")
		if lines := strings.Join(bdk.PromptLines(text), "\n"); lines != want {
			t.Errorf("PromptLines(%q) joined = %q, want %q", text, lines, want)
		}
	})
}

// words returns a text without the white space that Prompt may change.
func words(text string) string {
	return strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text)
}

func ExamplePrompt() {
	fmt.Println(bdk.Prompt(`
		Inspect a pull request before approval:

		  - its checks
		  - its size`))
	// Output:
	// Inspect a pull request before approval:
	//
	//   - its checks
	//   - its size
}

func ExamplePromptLines() {
	for i, line := range bdk.PromptLines(`
		Read the change.
		Say what it risks.
	`) {
		fmt.Println(i+1, line)
	}
	// Output:
	// 1 Read the change.
	// 2 Say what it risks.
}
