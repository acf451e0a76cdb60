//go:build unix

package project_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/project"
)

// Instructions that are no file are told as a mistake: reading a pipe would wait for ever.
func TestInstructionsThatAreNoFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-agent")
	write(t, dir, module(t))
	if err := os.MkdirAll(filepath.Join(dir, "bot"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "bot", "instructions.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, diags, err := project.Load(t.Context(), dir, &project.Options{Env: append(os.Environ(), "BDK_MODEL=openai:any")})
	if err != nil || diags.Errors() != 1 || diags[0].Code != "BDK105" {
		t.Errorf("got %v, %v; want BDK105 alone", diags, err)
	}
}
