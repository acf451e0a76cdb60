package cli_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/bdkpack/maingen"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// TestOriginsReachTheProgram: each --allow-origin is one, or several with commas between them.
func TestOriginsReachTheProgram(t *testing.T) {
	t.Parallel()
	program := &maingen.Program{Workspace: &project.Workspace{Dir: t.TempDir()}}
	for _, tc := range []struct{ flags, want []string }{
		{nil, nil},
		{[]string{"--allow-origin", "*"}, []string{"*"}},
		{[]string{"--allow-origin=https://a.example", "--allow-origin=http://b.example:81,http://c.example"}, []string{"https://a.example", "http://b.example:81", "http://c.example"}},
	} {
		c, err := cli.Serving(&cli.IO{}, program, tc.flags...)
		if d := cmp.Diff(tc.want, c.Origins); err != nil || d != "" {
			t.Errorf("%q: %v\n%s", tc.flags, err, d)
		}
	}
}
