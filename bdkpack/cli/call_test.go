package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
	"github.com/bdk-lambda/bdk/shared/clock"
)

// caller runs bdk call against a server that gives one answer, and returns what the server was asked.
func caller(t *testing.T, status int, answer, stdin string, pretty bool, args ...string) (asked string, got result) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked += fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", r.Header["Idempotency-Key"], " ", r.Header.Get("Authorization"), " ", string(body))
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer srv.Close()
	var out, errs bytes.Buffer
	o := &cli.IO{
		In: strings.NewReader(stdin), Out: &out, Err: &errs, Pretty: pretty, Clock: clock.System{}, HTTP: srv.Client(),
		Env: []string{"BDK_BEARER_TOKEN=secret"},
	}
	code := cli.Run(t.Context(), o, append([]string{"call", "--url", srv.URL + "/agent"}, args...))
	return asked, result{code, out.String(), errs.String()}
}

func TestCallShowsTheResult(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, answer string
		status       int
		args         []string
		pretty       bool
		want         result
	}{
		{"text", `{"ok":true,"isError":false,"result":"one\ntwo <&>"}`, 200, nil, false, result{0, "one\ntwo <&>\n", ""}},
		{"text that ends in a line", `{"ok":true,"result":"one\n"}`, 200, nil, true, result{0, "one\n", ""}},
		{"JSON for programs", `{"ok":true,"result":{"n":12345678901234567890,"a":[1.0]}}`, 200, nil, false, result{0, `{"n":12345678901234567890,"a":[1.0]}` + "\n", ""}},
		{"JSON for people", `{"ok":true,"result":{"n":1}}`, 200, nil, true, result{0, "{\n  \"n\": 1\n}\n", ""}},
		{"null", `{"ok":true,"result":null}`, 200, nil, false, result{0, "null\n", ""}},
		{"the whole answer", `{"ok":true,"result":"x"}` + "\n", 200, []string{"--json"}, false, result{0, `{"ok":true,"result":"x"}` + "\n", ""}},
		{"a dry run", `{"ok":true,"result":"ok","stubbed":true}`, 200, nil, false, result{0, "ok\n", "(the session is a dry run: the tool was not run)\n"}},
		{"no files", `{"ok":true,"result":"ok","scratchWorkspace":true}`, 200, nil, false, result{0, "ok\n", "(the call did not have the files of a session)\n"}},
		{"a tool that fails", `{"ok":true,"isError":true,"result":"no such thing"}`, 200, nil, false, result{1, "", "bdk: the tool look failed: no such thing\n"}},
		{"a tool that fails with JSON", `{"ok":true,"isError":true,"result":{"why":1}}`, 200, nil, false, result{1, "", "bdk: the tool look failed: {\"why\":1}\n"}},
		{
			"a tool that fails, the whole answer", `{"ok":true,"isError":true,"result":"no"}`, 200,
			[]string{"--json"},
			false,
			result{1, `{"ok":true,"isError":true,"result":"no"}` + "\n", "bdk: the tool look failed: no\n"},
		},
		{
			"an unknown tool", `{"ok":false,"error":"unknown_tool","message":"there is no tool \"look\"","available":["add","look_at"]}`, 404, nil, false,
			result{1, "", "bdk: calling look: there is no tool \"look\" (unknown_tool); there are: add, look_at\n"},
		},
		{"a busy session", `{"ok":false,"error":"session_busy","message":"wait"}`, 409, nil, false, result{1, "", "bdk: calling look: wait (session_busy)\n"}},
		{"a fault of the host", `{"ok":false,"error":"internal","message":"see the log"}`, 500, nil, false, result{1, "", "bdk: calling look: see the log (internal)\n"}},
		{"a gateway", `{"message":"Forbidden"}`, 403, nil, false, result{1, "", "bdk: the server answers 403 Forbidden: Forbidden\n"}},
		{"a page", `<html>`, 502, nil, false, result{1, "", "bdk: the server answers 502 Bad Gateway\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, got := caller(t, tc.status, tc.answer, "", tc.pretty, append(tc.args, "look")...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, got := caller(t, 200, "hello", "", false, "look"); got.code != 1 || !strings.Contains(got.err, "is not the URL of an agent") {
		t.Errorf("another server: %+v", got)
	}
}

// TestCallAsksOnce: with the input as it was given, whether or not the server can answer.
func TestCallAsksOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(file, []byte("\n{\"n\": 1.0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args  []string
		stdin string
		want  string
	}{
		{[]string{"look"}, "", `POST /agent/v1/tools/look [] Bearer secret {"input":{}}`},
		{[]string{"look", "--input", `{"n": 12345678901234567890}`}, "", `POST /agent/v1/tools/look [] Bearer secret {"input":{"n": 12345678901234567890}}`},
		{[]string{"look", "--input-file", file}, "", `POST /agent/v1/tools/look [] Bearer secret {"input":{"n": 1.0}}`},
		{[]string{"look", "--input-file", "-"}, `{"a":"b"}`, `POST /agent/v1/tools/look [] Bearer secret {"input":{"a":"b"}}`},
		{[]string{"a/b c", "--session", `ses_"1`, "--bearer-token", "t"}, "", `POST /agent/v1/tools/a%2Fb%20c [] Bearer t {"input":{},"sessionId":"ses_\"1"}`},
		{[]string{"look", "--continuation-token", "review:42"}, "", `POST /agent/v1/tools/look [] Bearer secret {"input":{},"continuationToken":"review:42"}`},
	} {
		asked, got := caller(t, 503, `{"ok":false,"error":"unavailable","message":"later"}`, tc.stdin, false, tc.args...)
		if diff := cmp.Diff(tc.want, asked); diff != "" || got.code != 1 {
			t.Errorf("%q: exit code %d (-want +got):\n%s", tc.args, got.code, diff)
		}
	}
}

// TestAnAgentProgramReadsTheCallFromStandardInput: an input may be longer than an environment variable can be.
func TestAnAgentProgramReadsTheCallFromStandardInput(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	body := []byte(`{"input":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)
	got, err := cli.CallProgram(t.Context(), &cli.IO{In: strings.NewReader("not this"), Err: &errs}, os.Args[0], "look", body)
	if err != nil || !bytes.Equal(got, body) || errs.String() != "look\n" {
		t.Errorf("got %d bytes, error %v, tool %q", len(got), err, &errs)
	}
}
