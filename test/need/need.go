// Package need says what a test needs beyond Go. Without it the test skips by name on a developer's machine,
// and fails where CI is set: there a skipped suite would be a hole nobody sees.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Tool returns the path of an executable, or ends the test if there is none.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, name+" is not installed")
	}
	return path
}

// Missing ends the test because of something it cannot do without: it skips, or fails when the environment has CI=true.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatalf("%s; with CI=true a test is not skipped", what)
	}
	tb.Skipf("skipped: %s", what)
}
