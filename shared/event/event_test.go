package event_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

var (
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	usage = &event.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5}
)

// trip is one payload with every field set, and its exact wire form.
type trip struct {
	data   event.Data
	wire   string
	decode func(event.Event) (event.Data, error)
}

func of[T event.Data](data T, wire string) trip {
	return trip{data, wire, func(e event.Event) (event.Data, error) {
		got, err := event.Decode[T](e)
		return got, err
	}}
}

func trips() []trip {
	const usageWire = `{"inputTokens":1,"outputTokens":2,"cacheReadTokens":3,"cacheWriteTokens":4,"reasoningTokens":5}`
	return []trip{
		of(event.SessionStarted{Agent: "a", ChannelID: "http", Mode: "chat", Purpose: "eval", Title: "t", DryRun: true, AsOf: &noon},
			`{"agent":"a","channelId":"http","mode":"chat","purpose":"eval","title":"t","dryRun":true,"asOf":"2026-03-04T12:00:00Z"}`),
		of(event.MessageReceived{Text: "你好🌍"}, `{"text":"你好🌍"}`),
		of(event.TurnStarted{Model: "scripted:x"}, `{"model":"scripted:x"}`),
		of(event.ReasoningAppended{Text: "r"}, `{"text":"r"}`),
		of(event.ReasoningCompleted{Text: "r", Signature: "s", Model: "p:m"}, `{"text":"r","signature":"s","model":"p:m"}`),
		of(event.MessageAppended{Text: "m", ParentCallID: "c0"}, `{"text":"m","parentCallId":"c0"}`),
		of(event.MessageCompleted{Text: "m", FinishReason: "stop", Usage: usage, UsageOf: "p:m", ParentCallID: "c0"},
			`{"text":"m","finishReason":"stop","usage":`+usageWire+`,"usageOf":"p:m","parentCallId":"c0"}`),
		of(event.ActionsRequested{
			Calls:        []event.ActionCall{{CallID: "c1", ToolName: "add", Args: json.RawMessage(`{"a":1}`), ParentCallID: "c0"}},
			ParentCallID: "c0",
		}, `{"calls":[{"callId":"c1","toolName":"add","args":{"a":1},"parentCallId":"c0"}],"parentCallId":"c0"}`),
		of(event.ApprovalRequested{CallID: "c1", ToolName: "add", Args: json.RawMessage(`{}`), ExpiresAt: noon},
			`{"callId":"c1","toolName":"add","args":{},"expiresAt":"2026-03-04T12:00:00Z"}`),
		of(event.ApprovalResolved{CallID: "c1", Decision: "deny", By: "bearer:x", Note: "no"},
			`{"callId":"c1","decision":"deny","by":"bearer:x","note":"no"}`),
		of(event.ActionResult{
			CallID: "c1", ToolName: "add", Output: json.RawMessage(`[1]`), IsError: true, Stubbed: true, Rejected: true, ParentCallID: "c0",
		}, `{"callId":"c1","toolName":"add","output":[1],"isError":true,"stubbed":true,"rejected":true,"parentCallId":"c0"}`),
		of(event.SkillLoaded{Name: "s"}, `{"name":"s"}`),
		of(event.SubagentCalled{CallID: "c1", Name: "r", Prompt: "p"}, `{"callId":"c1","name":"r","prompt":"p"}`),
		of(event.SubagentCompleted{CallID: "c1", Name: "r", Output: json.RawMessage(`"o"`), IsError: true},
			`{"callId":"c1","name":"r","output":"o","isError":true}`),
		of(event.ArtifactTagged{ID: "i", Kind: "k", Key: "y", Title: "t"}, `{"id":"i","kind":"k","key":"y","title":"t"}`),
		of(event.StepRestarted{Step: 2, Reason: "cut"}, `{"step":2,"reason":"cut"}`),
		of(event.ContextCompacted{BeforeTokens: 9, AfterTokens: 3, Summary: "s", Kept: 2, Usage: usage, UsageOf: "p:m"},
			`{"beforeTokens":9,"afterTokens":3,"summary":"s","kept":2,"usage":`+usageWire+`,"usageOf":"p:m"}`),
		of(event.ResultRejected{Reason: "r"}, `{"reason":"r"}`),
		of(event.TurnCompleted{Result: "r", Usage: usage, Cost: &event.Cost{TotalUSD: 0.25, Model: "p:m"}},
			`{"result":"r","usage":`+usageWire+`,"cost":{"totalUsd":0.25,"model":"p:m"}}`),
		of(event.TurnFailed{Message: "m", Status: event.StatusCancelled}, `{"message":"m","status":"cancelled"}`),
		of(event.SessionWaiting{}, `{}`),
		of(event.SessionCompleted{Result: "r"}, `{"result":"r"}`),
		of(event.SessionFailed{Message: "m"}, `{"message":"m"}`),
	}
}

func TestEveryPayloadSurvivesTheRoundTripInItsExactWireForm(t *testing.T) {
	t.Parallel()
	var seen []event.Type
	for _, tr := range trips() {
		seen = append(seen, tr.data.Type())
		t.Run(string(tr.data.Type()), func(t *testing.T) {
			t.Parallel()
			e := event.New("turn_1", tr.data)
			if got := string(e.Data); got != tr.wire {
				t.Errorf("data\n got %s\nwant %s", got, tr.wire)
			}
			var back event.Event
			if err := json.Unmarshal(e.AppendJSON(nil), &back); err != nil {
				t.Fatal(err)
			}
			got, err := tr.decode(back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tr.data, got); diff != "" {
				t.Errorf("payload (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(event.Types(), seen); diff != "" {
		t.Errorf("types without a case in this table (-types +cases):\n%s", diff)
	}
}

func TestTypesListsEveryDeclaredType(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "data.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []event.Type
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Type") {
			name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, event.Type(name))
		}
		return true
	})
	if diff := cmp.Diff(declared, event.Types()); diff != "" || len(declared) == 0 {
		t.Errorf("Types (-declared +listed):\n%s", diff)
	}
}

func TestWireFormOfTheEnvelope(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 2*60*60)
	for _, tc := range []struct {
		name string
		e    event.Event
		want string
	}{
		{
			"milliseconds in UTC",
			event.Event{Type: "turn.started", Index: 3, SessionID: "s", TurnID: "t", At: time.Date(2026, 3, 4, 14, 0, 0, 5_999_999, east), Data: json.RawMessage(`{"a":1}`), ID: "x"},
			`{"type":"turn.started","index":3,"sessionId":"s","turnId":"t","at":"2026-03-04T12:00:00.005Z","data":{"a":1}}`,
		},
		{
			"a session-scoped event has no turnId and three decimals even when they are zero",
			event.Event{Type: "session.waiting", SessionID: "s", At: noon},
			`{"type":"session.waiting","index":0,"sessionId":"s","at":"2026-03-04T12:00:00.000Z","data":{}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := string(tc.e.AppendJSON([]byte("x"))); got != "x"+tc.want {
				t.Errorf("got  %s\nwant x%s", got, tc.want)
			}
		})
	}
}

func TestDecodeRefusesAnotherTypeAndAnotherShape(t *testing.T) {
	t.Parallel()
	if _, err := event.Decode[event.TurnFailed](event.New("", event.SessionWaiting{})); err == nil {
		t.Error("another type was decoded")
	}
	if _, err := event.Decode[event.TurnFailed](event.Event{Type: event.TypeTurnFailed, Data: json.RawMessage(`{"message":1}`)}); err == nil {
		t.Error("another shape was decoded")
	}
}

func TestAFaultInAPayloadNeverLosesTheEvent(t *testing.T) {
	t.Parallel()
	bad := time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	call := func(args string) event.ActionsRequested {
		return event.ActionsRequested{Calls: []event.ActionCall{{CallID: "c1", ToolName: "add", Args: json.RawMessage(args)}}}
	}
	for _, tc := range []struct {
		name string
		data event.Data
		want string
	}{
		{"arguments cut off", call(`{"a":`), `{"calls":[{"callId":"c1","toolName":"add","args":"{\"a\":"}]}`},
		{"output that is no JSON", event.ActionResult{CallID: "c1", Output: json.RawMessage("nope\x00")}, `{"callId":"c1","toolName":"","output":"nope\u0000","isError":false}`},
		{"output of a subagent that is no JSON", event.SubagentCompleted{CallID: "c1", Output: json.RawMessage("]")}, `{"callId":"c1","name":"","output":"]","isError":false}`},
		{"empty arguments", event.ApprovalRequested{CallID: "c1", Args: json.RawMessage{}, ExpiresAt: noon}, `{"callId":"c1","toolName":"","args":null,"expiresAt":"2026-03-04T12:00:00Z"}`},
		{"a year of five digits", event.ApprovalRequested{CallID: "c1", ExpiresAt: bad}, `{"callId":"c1","toolName":"","args":null,"expiresAt":"0001-01-01T00:00:00Z"}`},
		{"a frozen instant of five digits", event.SessionStarted{Agent: "a", AsOf: &bad}, `{"agent":"a","channelId":"","mode":"","purpose":"","asOf":"0001-01-01T00:00:00Z"}`},
		{"an infinite cost", event.TurnCompleted{Result: "r", Cost: &event.Cost{TotalUSD: math.Inf(1)}}, `{"result":"r"}`},
		{"text that is not UTF-8", event.MessageReceived{Text: "a\xff\xfeb"}, `{"text":"a\ufffd\ufffdb"}`},
		{"raw JSON that is not UTF-8", call("{\"a\":\"\xff\xfe\"}"), `{"calls":[{"callId":"c1","toolName":"add","args":{"a":"` + "\ufffd\ufffd" + `"}}]}`},
		{"a lone surrogate", call(`{"a":"\ud83d"}`), `{"calls":[{"callId":"c1","toolName":"add","args":{"a":"\ud83d"}}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := event.New("", tc.data)
			if diff := cmp.Diff(tc.want, string(e.Data)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if !utf8.Valid(e.AppendJSON(nil)) {
				t.Error("the wire form is not UTF-8")
			}
		})
	}
}

func TestAppendJSONEqualsTheStandardEncoder(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", `q"b\`, "<&>", "\x00\x1f\x7f", "\u2028\u2029", "\xff\xc0", "\xed\xa0\x80", "🌍e\u0301", "\ufeff"} {
		e := event.Event{Type: event.Type(s), SessionID: s, TurnID: s + "t", At: noon, Data: event.New("", event.MessageReceived{Text: s}).Data}
		if diff := cmp.Diff(standard(t, e), string(e.AppendJSON(nil))); diff != "" {
			t.Errorf("%q (-standard +AppendJSON):\n%s", s, diff)
		}
	}
}

// standard encodes e with the standard library only.
func standard(t *testing.T, e event.Event) string {
	t.Helper()
	want, err := json.Marshal(struct {
		Type      event.Type      `json:"type"`
		Index     int64           `json:"index"`
		SessionID string          `json:"sessionId"`
		TurnID    string          `json:"turnId,omitempty"`
		At        string          `json:"at"`
		Data      json.RawMessage `json:"data"`
	}{e.Type, e.Index, e.SessionID, e.TurnID, e.At.UTC().Format("2006-01-02T15:04:05.000Z07:00"), e.Data})
	if err != nil {
		t.Fatal(err)
	}
	return string(want)
}

// FuzzUnmarshalJSON checks that whatever is read as an event is one line that reads as the same event.
func FuzzUnmarshalJSON(f *testing.F) {
	for _, tr := range trips() {
		f.Add(event.New("turn_1", tr.data).AppendJSON(nil))
	}
	for _, s := range []string{`{}`, `null`, `[]`, `{"data":null}`, "{\"data\":{\n\"a\": 1}}", `{"at":"2026-03-04T12:00:00+02:00"}`, `{"index":1e400}`, `{"at":"0000-01-01T00:00:00+02:00"}`, `{"type":"\ud83d"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e event.Event
		if json.Unmarshal(b, &e) != nil {
			return
		}
		line := e.AppendJSON(nil)
		if strings.ContainsRune(string(line), '\n') {
			t.Fatalf("more than one line: %q", line)
		}
		var back event.Event
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if again := back.AppendJSON(nil); string(again) != string(line) {
			t.Fatalf("got  %s\nwant %s", again, line)
		}
	})
}

// FuzzAppendJSON checks the hand-written encoder against the standard one.
func FuzzAppendJSON(f *testing.F) {
	f.Add("turn.started", "ses_1", "turn_1", int64(0), int64(1772625600123))
	f.Add("\xff\"", "\u2028<", "", int64(-1), int64(-62135596800000))
	f.Fuzz(func(t *testing.T, typ, session, turn string, index, millis int64) {
		at := time.UnixMilli(millis % 253402300799999).UTC()
		if at.Year() < 0 {
			return
		}
		e := event.New(turn, event.MessageReceived{Text: typ})
		e.Type, e.SessionID, e.Index, e.At = event.Type(typ), session, index, at
		if got, want := string(e.AppendJSON(nil)), standard(t, e); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
