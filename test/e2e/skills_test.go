package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// TestSkillFolders: skills in the forms that are found in public are discovered, listed and opened, with the files beside them.
func TestSkillFolders(t *testing.T) {
	t.Parallel()
	const library = "../agents/library"
	s := serveWith(t, []string{"BDK_MODEL="}, "--dir", library, "--state-root", t.TempDir())
	ann := s.target("library").Ann(t)
	var info struct {
		Skills []struct{ Name, Description string }
	}
	if a := ann.Do("GET", "/v1/info", ""); json.Unmarshal([]byte(a.Raw), &info) != nil || len(info.Skills) != 5 {
		t.Fatalf("the skills: %.1000s", a.Raw)
	}
	for _, skill := range info.Skills {
		if !strings.Contains(skill.Description, "Use ") || strings.Contains(skill.Description, "\r") {
			t.Errorf("%s is described as %q", skill.Name, skill.Description)
		}
	}
	log := ann.Start("everything").Completed()
	loaded := 0
	for _, e := range log {
		if e.Type == event.TypeSkillLoaded {
			loaded++
		}
	}
	var text strings.Builder
	for _, r := range suite.Results(log) {
		if r.IsError {
			t.Errorf("%s: %s", r.ToolName, r.Output)
		}
		var out string
		_ = json.Unmarshal(r.Output, &out)
		fmt.Fprintln(&text, out)
	}
	for _, want := range []string{
		"Then run `scripts/fill.py`", ".agents/skills/filled-forms/scripts/fill.py", "Headings are short.", "Start the server", "Group by kind.",
		".agents/skills/slide-deck/layouts/schemas/v1/slide.json", "Fields have a name", "print(sys.argv)", "image/png", ".agents/skills/house-style/LICENSE.txt",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the results:\n%s", want, text.String())
		}
	}
	if loaded != 5 {
		t.Errorf("%d skills were loaded; want 5", loaded)
	}
}
