package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/cron"
)

// What is discovered of schedules, in Markdown and in Go.
func TestSchedules(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "schedules.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range archive.Files { // without the one whose name is taken twice
		if f.Name == "bot/schedules/pulse.md" {
			archive.Files = append(archive.Files[:i], archive.Files[i+1:]...)
			break
		}
	}
	dir, _ := extract(t, archive)
	ws, _, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any", "GOFLAGS=")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range ws.Agents[0].Schedules {
		got[s.Name] = s.Cron + "|" + s.Prompt
		if s.Definition != nil {
			got[s.Name] += s.Definition.Var
		}
	}
	want := map[string]string{
		"daily": "0 9 * * 1-5|Summarise the day.", "often": "*/5 * * * *|Look around.", "pulse": "@hourly|Pulse",
		"both": "|Both", "computed": "|Computed", "far": "|Far", "nothing": "0 0 * * * *|Nothing",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"---\ncron: * * * * *\n---\nx", "---\r\ncron: '@daily'\r\n---\r\nx\r\n", "---\n---\n", "x", "---\n'cron': [1]\n---\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		when, prompt, faults := project.ParseSchedule(data)
		if len(faults) > 0 {
			if strings.Contains(strings.Join(faults, ""), "%!") {
				t.Error(faults)
			}
			return
		}
		if _, err := cron.Parse(when); err != nil || strings.TrimSpace(prompt) == "" {
			t.Errorf("%q is due at %q and says %q, %v", data, when, prompt, err)
		}
	})
}
