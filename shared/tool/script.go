package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/exec"
)

// scriptTrip is what a script has besides its own time, which the runner keeps, for its files to go there and come back.
const scriptTrip = 30 * time.Second

// maxTail bounds the bytes of each stream of a script that went wrong that the model reads.
const maxTail = 8 << 10

// script runs the script of an agent tool, which the workspace has at .agents/tools/, and returns what it printed. Whatever an
// earlier command has put in its place, the script that runs is the one that was defined.
func (s *Set) script(ctx context.Context, t bdk.Tool, call *bdk.Call, name string, args json.RawMessage) (string, error) {
	file := ".agents/tools/" + name
	err := call.Workspace.WriteFile(ctx, file, []byte(t.Script()), 0o755)
	var dir string
	if err == nil {
		dir, err = call.Workspace.Dir(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("there is no directory with the session's files, the script was not run: %w", err)
	}
	r, err := s.opts.Scripts.Run(ctx, exec.Command{
		Dir: dir, Args: []string{"./" + file}, Stdin: args, Timeout: t.Spec().Timeout,
		Env: map[string]string{"BDK_CALL_ID": call.ID},
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("the script did not run, or nothing is known of it: %w", err)
	case r.Killed != "":
		return "", fmt.Errorf("the script was killed after %s: %s%s", r.Took.Round(time.Millisecond), r.Killed, tails(r))
	case r.ExitCode != 0:
		return "", fmt.Errorf("the script ended with exit code %d%s", r.ExitCode, tails(r))
	}
	printed, _ := bytes.CutSuffix(r.Stdout, []byte("\n"))
	return string(printed), nil
}

// tails returns the ends of what a script printed.
func tails(r exec.Result) string {
	var b strings.Builder
	for _, stream := range []struct {
		name string
		out  []byte
	}{{"stderr", r.Stderr}, {"stdout", r.Stdout}} {
		out := bytes.TrimSpace(stream.out)
		if len(out) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n%s", stream.name, tail(out))
	}
	return b.String()
}

// tail returns the end of a text that is long, in whole characters.
func tail(out []byte) []byte {
	if len(out) <= maxTail {
		return out
	}
	cut := len(out) - maxTail
	for cut < len(out) && !utf8.RuneStart(out[cut]) {
		cut++
	}
	return append([]byte("…"), out[cut:]...)
}
