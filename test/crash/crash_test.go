// Package crash_test kills the embedded host at every write of a turn and checks that the next process finishes it.
package crash_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/host/localhost"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// The test binary is also the host that gets killed: with this variable set it serves instead of testing. Its value is
// the number of the write to die at, "before:" or "after:" it; 0 for never.
const dieAt = "CRASH_TEST_DIE_AT"

const script = `
rules:
  - when: {toolResult: note}
    text: "all noted"
  - when: {message: "^note"}
    text: "noting"
    calls:
      - {tool: note, args: {text: one}}
      - {tool: note, args: {text: two}}
      - {tool: look, args: {text: three}}
      - {tool: note, args: {text: four}}
      - {tool: note, args: {text: five}}
      - {tool: look, args: {text: six}}
      - {tool: note, args: {text: seven}}
      - {tool: note, args: {text: eight}}
  - when: {message: "^sign"}
    calls:
      - {tool: sign, args: {text: one}}
      - {tool: note, args: {text: two}}
      - {tool: sign, args: {text: three}}
  - text: "ok"
`

type noteInput struct {
	Text string `json:"text"`
}

// note writes a line to a file: the effect that must not happen twice.
func note(_ context.Context, call *bdk.Call, in noteInput) (string, error) {
	f, err := os.OpenFile(filepath.Join(call.StateRoot, "notes"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s\n", call.ID); err != nil {
		return "", err
	}
	return "noted " + in.Text, f.Sync()
}

func look(context.Context, *bdk.Call, noteInput) (string, error) { return "seen", nil }

func TestMain(m *testing.M) {
	at, ok := os.LookupEnv(dieAt)
	if !ok {
		os.Exit(m.Run())
	}
	when, number, _ := strings.Cut(at, ":")
	n, _ := strconv.ParseInt(number, 10, 64)
	die := func(here string) func(int64) {
		return func(write int64) {
			if write == n && here == when {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	config, err := launch.Decode(os.Getenv(launch.Env))
	if err == nil {
		p := localhost.Program{
			Projects: []bdk.Project{{
				Slug: "crash", Agent: bdk.Agent{Limits: bdk.Limits{ParallelTools: 2}}, Instructions: "Note things.",
				Tools: []bdk.NamedTool{
					{Name: "look", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Look.", Effect: bdk.Read}, look)},
					{Name: "note", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Note.", Effect: bdk.Write}, note)},
					{Name: "sign", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Sign.", NeedsApproval: bdk.Always}, note)},
				},
			}},
			Config: config, Getenv: os.Getenv, Stdout: os.Stdout, Stderr: io.Discard,
			BeforeCommit: die("before"), AfterCommit: die("after"),
		}
		err = p.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// host is a running host process.
type host struct {
	url  string
	cmd  *exec.Cmd
	dead chan struct{} // closed when the process has ended
}

func boot(t *testing.T, state, at string) *host {
	t.Helper()
	config, err := json.Marshal(launch.Config{StateRoot: state, Single: true, Banner: "{url}\n"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), dieAt+"="+at, launch.Env+"="+string(config), "BDK_MODEL=scripted:"+filepath.Join(state, "script.yaml"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	h := &host{url: strings.TrimSpace(line), cmd: cmd, dead: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(h.dead)
	}()
	t.Cleanup(h.kill)
	return h
}

func (h *host) kill() {
	_ = h.cmd.Process.Kill()
	<-h.dead
}

// post sends a JSON body and returns the answer; ok is false if the host died over it.
func (h *host) post(ctx context.Context, path string, body map[string]any) (answer map[string]any, ok bool) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+path, bytes.NewReader(raw))
	if err != nil {
		return nil, false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer res.Body.Close()
	err = json.NewDecoder(res.Body).Decode(&answer)
	return answer, err == nil && res.StatusCode < 300
}

// events returns the log of a session.
func (h *host) events(t *testing.T, id string) []event.Event {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/v1/session/"+id+"/events?format=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Events []event.Event }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Events
}

// wait follows the log until a turn has ended and returns it.
func (h *host) wait(t *testing.T, id, turnID string, within time.Duration) []event.Event {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		log := h.events(t, id)
		for _, e := range log {
			if e.TurnID == turnID && (e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed) {
				return log
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("turn %s has not ended after %s: %d events", turnID, within, len(log))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestKillAtEveryWrite(t *testing.T) {
	t.Parallel()
	killAtEveryWrite(t, 8, killAt)
}

// killAtEveryWrite calls kill for each write there is, at least least, and again for what comes after each.
func killAtEveryWrite(t *testing.T, least int, kill func(t *testing.T, at string) (died bool, unknown int)) {
	t.Helper()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			points, unknown := 0, 0
			for n := 1; ; n++ {
				if n > 80 {
					t.Fatal("the turn makes too many writes")
				}
				died, lost := kill(t, fmt.Sprintf("%s:%d", when, n))
				unknown += lost
				if !died {
					break
				}
				points++
			}
			t.Logf("killed %s %d writes; %d outcomes unknown", when, points, unknown)
			if points < least {
				t.Errorf("only %d writes were reached: the seam is broken", points)
			}
			if unknown == 0 {
				t.Error("no outcome was ever unknown: the test does not reach a tool between its effect and its record")
			}
		})
	}
}

// killAt has a host die at a write, starts another one on its state, and checks what became of the turn.
func killAt(t *testing.T, at string) (died bool, unknown int) {
	t.Helper()
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "script.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	h := boot(t, state, at)
	acc, ok := h.post(t.Context(), "/v1/session", map[string]any{"message": "note it all"})
	if !ok {
		<-h.dead
		return true, checkNothingHalf(t, state, at)
	}
	id, turnID, token := acc["sessionId"].(string), acc["turnId"].(string), acc["continuationToken"].(string)
	died = waitForDeathOrEnd(t, h, id, turnID)
	h.kill()

	heir := boot(t, state, "never:0")
	defer heir.kill()
	log := heir.wait(t, id, turnID, 5*time.Second)
	unknown = check(t, at, log, turnID, filepath.Join(state, "agents", "crash", "notes"), 8)

	begin := time.Now()
	next, ok := heir.post(t.Context(), "/v1/session/"+id, map[string]any{"message": "hello", "continuationToken": token})
	if !ok {
		t.Fatalf("killed %s: the session takes no follow-up: %v", at, next)
	}
	heir.wait(t, id, next["turnId"].(string), 5*time.Second-time.Since(begin))
	return died, unknown
}

// waitForDeathOrEnd reports whether the host died before the turn ended.
func waitForDeathOrEnd(t *testing.T, h *host, id, turnID string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/v1/session/"+id+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		<-h.dead
		return true
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		var e event.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.TurnID == turnID && e.Type == event.TypeTurnCompleted {
			// Writes may follow the end of the turn, a snapshot for one: give the host the time to die at them.
			select {
			case <-h.dead:
				return true
			case <-time.After(50 * time.Millisecond):
				return false
			}
		}
	}
	<-h.dead
	return true
}

// checkNothingHalf checks that a message whose acceptance was not answered is either there as a whole or not at all.
func checkNothingHalf(t *testing.T, state, at string) int {
	t.Helper()
	heir := boot(t, state, "never:0")
	defer heir.kill()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, heir.url+"/v1/sessions", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list struct{ Sessions []struct{ SessionID string } }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Sessions {
		turnID := heir.events(t, s.SessionID)[1].TurnID
		log := heir.wait(t, s.SessionID, turnID, 5*time.Second)
		return check(t, at, log, turnID, filepath.Join(state, "agents", "crash", "notes"), 8)
	}
	return 0
}

// check checks a log with so many calls after recovery and returns how many outcomes are unknown.
func check(t *testing.T, at string, log []event.Event, turnID, notes string, calls int) (unknown int) {
	t.Helper()
	ends := 0
	results := make(map[string]event.ActionResult)
	for i, e := range log {
		if e.Index != int64(i) {
			t.Fatalf("killed %s: event %d has index %d", at, i, e.Index)
		}
		if e.TurnID == turnID && (e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed) {
			ends++
		}
		if d, err := event.Decode[event.ActionResult](e); err == nil {
			if _, twice := results[d.CallID]; twice {
				t.Errorf("killed %s: two results of %s", at, d.CallID)
			}
			results[d.CallID] = d
		}
	}
	if ends != 1 || len(results) != calls {
		t.Errorf("killed %s: %d ends, %d results; want 1 and %d", at, ends, len(results), calls)
	}
	raw, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ran := make(map[string]int)
	for id := range strings.FieldsSeq(string(raw)) {
		ran[id]++
	}
	for id, r := range results {
		lost := strings.Contains(string(r.Output), "outcome unknown")
		switch {
		case lost:
			unknown++
		case r.IsError:
			t.Errorf("killed %s: %s failed: %s", at, id, r.Output)
		case r.ToolName != "look" && ran[id] != 1:
			t.Errorf("killed %s: %s is reported as done, but ran %d times", at, id, ran[id])
		}
		if ran[id] > 1 {
			t.Errorf("killed %s: write %s ran %d times", at, id, ran[id])
		}
	}
	return unknown
}
