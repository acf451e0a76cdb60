package need_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/bdk-lambda/bdk/test/need"
)

// recorder records how a test was ended, and ends it as a real one would. Only the methods below may be called.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("fail: "+format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skip: "+format, args) }

func (r *recorder) end(format string, args []any) {
	r.ended = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMissingToolSkipsOnADevelopersMachineAndFailsInCI(t *testing.T) {
	for ci, want := range map[string]string{
		"":     "skip: skipped: no-such-tool is not installed",
		"true": "fail: no-such-tool is not installed; with CI=true a test is not skipped",
	} {
		t.Setenv("CI", ci)
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			need.Tool(r, "no-such-tool")
		}()
		<-done
		if r.ended != want {
			t.Errorf("CI=%q: got %q, want %q", ci, r.ended, want)
		}
	}
}

func TestPresentToolIsReturnedByPath(t *testing.T) {
	t.Parallel()
	if got := need.Tool(t, "go"); !filepath.IsAbs(got) || filepath.Base(got) != "go" {
		t.Errorf("got %q, want the path of the go command", got)
	}
}
