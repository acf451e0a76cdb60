package localhost_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCallAnswersAsTheAPIDoes: in this process, on standard output, whatever the answer is.
func TestCallAnswersAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, tool, body, env, want string }{
		{name: "an unknown tool", tool: "wiat", body: `{"input":{}}`, want: "unknown_tool"},
		{name: "a name that is a path", tool: "a/../b", body: `{"input":{}}`, want: "unknown_tool"},
		{name: "a body that is cut", tool: "wait", body: `{"input":`, want: "invalid_request"},
		{name: "a model without its key", tool: "wiat", body: `{}`, env: "BDK_MODEL=anthropic:x", want: "unknown_tool"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, config := place(t)
			config.Command, config.Tool = "call", tc.tool
			cmd, out, errs := child(t, dir, config, tc.env)
			cmd.Stdin = strings.NewReader(tc.body)
			err := cmd.Run()
			var answer struct {
				OK    *bool
				Error string
			}
			if jerr := json.Unmarshal(out.Bytes(), &answer); err != nil || jerr != nil || answer.OK == nil || answer.Error != tc.want || errs.Len() > 0 {
				t.Errorf("got %v, output %q, errors %q; want %s", err, out, errs, tc.want)
			}
		})
	}
}
