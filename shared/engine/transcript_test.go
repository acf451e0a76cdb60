package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
)

// outputBudget is small, so that results are shortened.
const outputBudget = 300

// author writes logs as engines do, by chance.
type author struct {
	*rand.Rand
	log   []event.Event
	turn  string
	turns int
	calls int
}

func (a *author) write(data ...event.Data) {
	for _, d := range data {
		e := event.New(a.turn, d)
		e.Index, e.SessionID = int64(len(a.log)), "ses_1"
		a.log = append(a.log, e)
		if a.IntN(8) == 0 { // somebody writes beside the turn
			side := event.New("", event.SessionWaiting{})
			side.Index, side.SessionID = int64(len(a.log)), "ses_1"
			a.log = append(a.log, side)
		}
	}
}

func (a *author) text() string {
	all := []string{"", "hello", "你好🌍", "<b>&\u2028", "a\x00\n\"\\", "\xff", strings.Repeat("é", 200)}
	return all[a.IntN(len(all))]
}

func (a *author) json() json.RawMessage {
	all := []string{`{}`, `{"a":"<&>"}`, `{"n":9007199254740993,"x":1e400}`, `{"a":"\u0000 \u2028"}`}
	return json.RawMessage(all[a.IntN(len(all))])
}

// writeTurn writes a turn that may break off anywhere.
func (a *author) writeTurn() {
	a.turns++
	a.turn = fmt.Sprintf("turn_%d", a.turns)
	a.write(event.MessageReceived{Text: a.text()})
	if a.IntN(10) == 0 {
		return
	}
	a.write(event.TurnStarted{Model: "anthropic:m"})
	for range a.IntN(4) {
		if a.writeStep() {
			return
		}
	}
	if a.IntN(2) == 0 {
		a.write(event.TurnCompleted{Result: "x"}, event.SessionWaiting{})
	} else {
		a.write(event.TurnFailed{Message: "x"})
	}
}

// writeStep writes a step and its calls, and reports whether it broke off.
func (a *author) writeStep() bool {
	if a.IntN(4) == 0 {
		a.write(event.ContextCompacted{Summary: a.text(), Kept: a.IntN(4), Usage: &event.Usage{InputTokens: 3}, UsageOf: "anthropic:m"})
	}
	for a.IntN(3) == 0 {
		a.write(event.MessageAppended{Text: a.text()}, event.ReasoningCompleted{Text: "lost"}, event.StepRestarted{Step: 1, Reason: "x"})
	}
	a.write(event.ReasoningAppended{Text: "hm"}, event.ReasoningCompleted{Text: "hm", Signature: a.text(), Model: "anthropic:m"}, event.MessageAppended{Text: a.text()})
	if a.IntN(6) == 0 {
		return true
	}
	n := a.IntN(4)
	finish := model.FinishStop
	if n > 0 {
		finish = model.FinishToolCalls
	}
	a.write(event.MessageCompleted{Text: a.text(), FinishReason: string(finish), UsageOf: "anthropic:m", Usage: &event.Usage{InputTokens: 1, OutputTokens: 2}})
	if n == 0 {
		return false
	}
	var calls []event.ActionCall
	for range n {
		a.calls++
		calls = append(calls, event.ActionCall{CallID: fmt.Sprintf("call_%d", a.calls), ToolName: a.text(), Args: a.json()})
	}
	a.write(event.ActionsRequested{Calls: calls})
	for _, i := range a.Perm(n) {
		if a.IntN(8) == 0 {
			return true
		}
		out := a.json()
		if a.IntN(3) != 0 {
			out = json.RawMessage(`"a\u0000 \"<&> ` + strings.Repeat("é", a.IntN(300)) + `"`)
		}
		a.write(event.ActionResult{CallID: calls[i].CallID, ToolName: calls[i].ToolName, Output: out, IsError: a.IntN(2) == 0})
	}
	return false
}

func fold(t testing.TB, into *engine.Transcript, log []event.Event) *engine.Transcript {
	t.Helper()
	for _, e := range log {
		if err := into.Fold(e); err != nil {
			t.Fatalf("event %d (%s %s): %v", e.Index, e.Type, e.Data, err)
		}
	}
	return into
}

func encode(t testing.TB, tr *engine.Transcript) string {
	t.Helper()
	raw, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A transcript is a pure fold: wherever a snapshot is taken, the rest of the log leads to the same one.
func TestSnapshotAtAnyCutLeadsToTheSameTranscript(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		a := author{Rand: rand.New(rand.NewPCG(seed, 1))}
		for range 3 {
			a.writeTurn()
		}
		whole := fold(t, engine.NewTranscript(outputBudget), a.log)
		want := encode(t, whole)
		for cut := range a.log {
			head := fold(t, engine.NewTranscript(outputBudget), a.log[:cut])
			got := encode(t, fold(t, engine.Revive(engine.Freeze(head), outputBudget), a.log[cut:]))
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("seed %d, cut %d before %s:\n%s", seed, cut, a.log[cut].Type, d)
			}
		}
		checkTranscript(t, fmt.Sprintf("seed %d", seed), whole)
	}
}

// checkTranscript checks what holds between any two events.
func checkTranscript(t testing.TB, when string, tr *engine.Transcript) {
	t.Helper()
	size := 0
	for _, m := range tr.Messages {
		size += engine.SizeOf(m)
	}
	if size != tr.Bytes {
		t.Fatalf("%s: messages have %d bytes, counted are %d", when, size, tr.Bytes)
	}
	if len(tr.Open()) == 0 && len(tr.Messages) > 0 {
		checkPairs(t, []*model.Request{{Messages: tr.Messages}})
	}
}

// Whatever a log holds, folding it neither panics nor leaves a call without its result.
func FuzzFold(f *testing.F) {
	all := event.Types()
	for seed := range uint64(5) {
		a := author{Rand: rand.New(rand.NewPCG(seed, 2))}
		a.writeTurn()
		a.writeTurn()
		var in []byte
		for _, e := range a.log {
			for i, typ := range all {
				if typ == e.Type {
					in = append(append(append(in, byte(i)), e.Data...), '\n')
				}
			}
		}
		f.Add(in)
	}
	f.Add([]byte("\x01{\"text\":\"hi\"}\n\x10{\"kept\":-5}\n"))
	f.Add([]byte("\x01{}\n\x07{\"calls\":[{\"callId\":\"a\"},{\"callId\":\"a\"}]}\n\x0a{\"callId\":\"a\"}\n\x11{}\n"))
	f.Add([]byte("\x01{}\n\x07{\"calls\":[{\"callId\":\"a\"}]}\n\x0a{\"callId\":\"b\"}\n\x07{\"calls\":[]}\n\x06{\"text\":\"x\"}\n\x01{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		tr := engine.NewTranscript(outputBudget)
		for line := range strings.SplitSeq(string(in), "\n") {
			if line == "" || len(tr.Messages) > 100 {
				continue
			}
			e := event.Event{Type: all[int(line[0])%len(all)], TurnID: "t", Index: tr.Next, Data: json.RawMessage(line[1:])}
			if tr.Fold(e) != nil {
				return
			}
			checkTranscript(t, line, tr)
		}
		want := encode(t, tr)
		again := encode(t, engine.Revive(engine.Freeze(tr), outputBudget))
		if d := cmp.Diff(want, again); d != "" {
			t.Fatalf("the snapshot is another:\n%s", d)
		}
	})
}

// A snapshot that is damaged, or of another form, counts for nothing: the log has it all.
func TestSnapshotOfAnotherFormIsNotUsed(t *testing.T) {
	t.Parallel()
	a := author{Rand: rand.New(rand.NewPCG(1, 1))}
	a.writeTurn()
	whole := fold(t, engine.NewTranscript(outputBudget), a.log)
	good := engine.Freeze(whole)
	if got := engine.Revive(good, outputBudget); encode(t, got) != encode(t, whole) {
		t.Fatalf("a good snapshot is not used: %s", good.Data)
	}
	forms := []string{
		``, `null`, `{}`, `[]`, `1`, `{"next":`, `{"next":7}`, `{"next":-1}`, `{"form":99,"transcript":{"next":7}}`, string(good.Data[:len(good.Data)/2]),
		encode(t, whole), strings.Replace(string(good.Data), `"form":2`, `"form":1`, 1), `{"form":2}`, `{"form":2,"transcript":null}`,
		strings.Replace(string(good.Data), `"next":`, `"next":1`, 1),
	}
	for _, form := range forms {
		got := engine.Revive(session.Snapshot{Next: good.Next, Data: []byte(form)}, outputBudget)
		if got.Next != 0 || len(got.Messages) != 0 {
			t.Errorf("%s makes a transcript of %d events and %d messages", form, got.Next, len(got.Messages))
		}
	}
}

// What the model reads of a result: text as it is, anything else as JSON.
func TestResultsAsTheModelReadsThem(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		`"a\"b\u0000"`: "a\"b\x00", `""`: "", `null`: "null", `{"a":1e400}`: `{"a":1e400}`, `9007199254740993`: "9007199254740993", `true`: "true", ``: "",
	} {
		a := author{Rand: rand.New(rand.NewPCG(1, 1)), turn: "t"}
		a.write(event.MessageReceived{Text: "hi"}, event.ActionsRequested{Calls: []event.ActionCall{{CallID: "1"}}},
			event.ActionResult{CallID: "1", Output: json.RawMessage(output)})
		tr := fold(t, engine.NewTranscript(outputBudget), a.log)
		if got := tr.Messages[2].Results[0].Output; got != want {
			t.Errorf("%s reads %q; want %q", output, got, want)
		}
	}
}
