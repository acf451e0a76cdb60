package exec_test

import (
	"log/slog"
	"syscall"
	"testing"

	"github.com/bdk-lambda/bdk/functions/exec"
)

// TestHidden: what the function has in its environment and memory is not for those that it runs.
func TestHidden(t *testing.T) {
	exec.New(nil, slog.New(slog.DiscardHandler))
	if dumpable, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_DUMPABLE, 0, 0); errno != 0 || dumpable != 0 {
		t.Errorf("got %d, %v", dumpable, errno)
	}
}
