package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/turn"
)

type pathInput struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
}

// note writes a file, look reads one; both say who called them, and that is all that they have in common.
func fileTools() []bdk.NamedTool {
	look := func(ctx context.Context, call *bdk.Call, in pathInput) (string, error) {
		data, err := call.Workspace.ReadFile(ctx, in.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return "nothing for " + call.Session.Owner, nil
		}
		return string(data), err
	}
	note := func(ctx context.Context, call *bdk.Call, in pathInput) (string, error) {
		return call.Session.Channel + " " + call.Session.ID, call.Workspace.WriteFile(ctx, in.Path, []byte(in.Text), 0o644)
	}
	broken := func(context.Context, *bdk.Call, pathInput) (string, error) {
		return "", errors.New("no such pull request")
	}
	return []bdk.NamedTool{
		{Name: "broken", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", Effect: bdk.Read}, broken)},
		{Name: "gated", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", NeedsApproval: bdk.Always, Approvers: []string{"bearer:ops", bdk.SessionOwner}}, note)},
		{Name: "look", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", Effect: bdk.Read}, look)},
		{Name: "note", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, note)},
		{Name: "only_ops", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", NeedsApproval: bdk.Always, Approvers: []string{"bearer:ops"}}, note)},
		{Name: "peek", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", Effect: bdk.Read}, note)}, // says that it reads, and writes
		{Name: "script", Tool: bdk.DefineScript[pathInput](bdk.ToolSpec{Description: "d"}, "#!/bin/sh\n")},
	}
}

func filesStorage() storage {
	s := newStorage()
	s.blobs = memblob.New()
	return s
}

func callTool(t testing.TB, e *engine.Engine, c engine.ToolCall) engine.ToolOutcome {
	t.Helper()
	if c.Caller == "" {
		c.Caller = "local"
	}
	out, err := e.CallTool(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return out
}

// Both tables of calls without a model: what is refused, with which code.
func TestCallToolRefuses(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	e := newEngine(t, config{storage: s, tools: fileTools(), script: "rules: [{text: ok}]"})
	running, acc := start(t, e, "hi") // nobody steps it
	idle, second := start(t, e, "hi")
	step(t, e, idle)
	_, third := send(t, e, second, "again")
	other := newEngineOf(t, s, "other")
	foreign, err := other.Start(t.Context(), session.Start{Owner: "local", Message: "x"})
	if err != nil {
		t.Fatal(err)
	}
	ok := json.RawMessage(`{"path":"a"}`)
	for name, tc := range map[string]struct {
		call engine.ToolCall
		want bdkerr.Code
	}{
		"unknown tool":         {engine.ToolCall{Name: "nix", SessionID: "ses_x"}, bdkerr.UnknownTool},
		"a harness tool":       {engine.ToolCall{Name: "read", Input: ok}, bdkerr.UnknownTool},
		"a script":             {engine.ToolCall{Name: "script", Input: ok}, bdkerr.NotCallable},
		"bad input":            {engine.ToolCall{Name: "look", Input: json.RawMessage(`{"path":1}`)}, bdkerr.BadToolInput},
		"no input":             {engine.ToolCall{Name: "look"}, bdkerr.BadToolInput},
		"no object":            {engine.ToolCall{Name: "look", Input: json.RawMessage(`[]`)}, bdkerr.BadToolInput},
		"both identifiers":     {engine.ToolCall{Name: "look", Input: ok, SessionID: running.SessionID, Token: acc.Token}, bdkerr.BadToken},
		"token without colon":  {engine.ToolCall{Name: "look", Input: ok, Token: "abc"}, bdkerr.BadToken},
		"token without key":    {engine.ToolCall{Name: "look", Input: ok, Token: "http:"}, bdkerr.BadToken},
		"token with no name":   {engine.ToolCall{Name: "look", Input: ok, Token: ":key"}, bdkerr.BadToken},
		"no such session":      {engine.ToolCall{Name: "look", Input: ok, SessionID: "ses_nobody"}, bdkerr.NoSession},
		"another agent's":      {engine.ToolCall{Name: "look", Input: ok, SessionID: foreign.SessionID}, bdkerr.NoSession},
		"somebody else's":      {engine.ToolCall{Name: "look", Input: ok, SessionID: running.SessionID, Caller: "bearer:eve"}, bdkerr.Forbidden},
		"their token":          {engine.ToolCall{Name: "look", Input: ok, Token: acc.Token, Caller: "bearer:eve"}, bdkerr.Forbidden},
		"a stale token":        {engine.ToolCall{Name: "look", Input: ok, Token: second.Token}, bdkerr.StaleToken},
		"a write while busy":   {engine.ToolCall{Name: "note", Input: ok, SessionID: running.SessionID}, bdkerr.SessionBusy},
		"the same by token":    {engine.ToolCall{Name: "note", Input: ok, Token: third.Token}, bdkerr.SessionBusy},
		"approved by others":   {engine.ToolCall{Name: "only_ops", Input: ok}, bdkerr.Forbidden},
		"by others, bound":     {engine.ToolCall{Name: "only_ops", Input: ok, SessionID: idle.SessionID}, bdkerr.Forbidden},
		"a gated one of a foe": {engine.ToolCall{Name: "gated", Input: ok, SessionID: idle.SessionID, Caller: "bearer:eve"}, bdkerr.Forbidden},
	} {
		if tc.call.Caller == "" {
			tc.call.Caller = "local"
		}
		before := len(events(t, s.sessions, running.SessionID))
		if out, err := e.CallTool(t.Context(), tc.call); bdkerr.CodeOf(err) != tc.want {
			t.Errorf("%s: %+v, %v; want %s", name, out, err, tc.want)
		}
		if after := len(events(t, s.sessions, running.SessionID)); after != before {
			t.Errorf("%s: %d events were recorded", name, after-before)
		}
	}
}

// newEngineOf returns an engine of another agent on the same storage.
func newEngineOf(t testing.TB, s storage, slug string) *engine.Engine {
	t.Helper()
	e, err := engine.New(bdk.Project{Slug: slug}, engine.Deps{
		Sessions: session.New(s.sessions, session.Options{}), Runner: idle{}, Tools: toolSet(t, s, nil), Log: quietLog(),
		Models: []engine.NamedModel{{ID: "scripted:test", Model: play(t, "rules: [{text: ok}]")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A call that is bound to nothing has files of its own, which are gone afterwards.
func TestCallWithoutASession(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{storage: filesStorage(), tools: fileTools(), script: "rules: [{text: ok}]"})
	for name, tc := range map[string]struct {
		call engine.ToolCall
		want string
	}{
		"a read":                 {engine.ToolCall{Name: "look"}, `"nothing for local"`},
		"a write":                {engine.ToolCall{Name: "note"}, `"http "`},
		"a gated one":            {engine.ToolCall{Name: "gated"}, `"http "`},
		"by who may approve":     {engine.ToolCall{Name: "only_ops", Caller: "bearer:ops"}, `"http "`},
		"a token of no session":  {engine.ToolCall{Name: "note", Token: "http:nobody.x"}, `"http nobody.x"`},
		"a token of a channel":   {engine.ToolCall{Name: "note", Token: "slack:C1:17.2"}, `"slack C1:17.2"`},
		"again, nothing is left": {engine.ToolCall{Name: "look"}, `"nothing for local"`},
	} {
		tc.call.Input = json.RawMessage(`{"path":"a","text":"x"}`)
		got := callTool(t, e, tc.call)
		if string(got.Result) != tc.want || got.IsError || got.SessionID != "" || got.ScratchWorkspace || !strings.HasPrefix(got.CallID, "tool_"+tc.call.Name+"_") {
			t.Errorf("%s: %+v (%s); want %s", name, got, got.Result, tc.want)
		}
	}
	if got := callTool(t, e, engine.ToolCall{Name: "broken", Input: json.RawMessage(`{"path":"a"}`)}); !got.IsError || string(got.Result) != `"no such pull request"` {
		t.Errorf("a tool that fails: %+v (%s)", got, got.Result)
	}
}

// A bound call is recorded under a turn of its own, has the session's files, and leaves there what it writes.
func TestCallInASession(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	f := &fake{answers: [][]model.Delta{hello}}
	e := newEngine(t, config{storage: s, tools: fileTools(), models: f.named()})
	ref, acc := start(t, e, "hi")
	step(t, e, ref)
	wrote := callTool(t, e, engine.ToolCall{Name: "note", Input: json.RawMessage(`{"path":"d/a.txt","text":"from a call"}`), SessionID: ref.SessionID})
	if wrote.SessionID != ref.SessionID || wrote.ScratchWorkspace {
		t.Errorf("%+v", wrote)
	}
	read := callTool(t, e, engine.ToolCall{Name: "look", Input: json.RawMessage(`{"path":"d/a.txt"}`), Token: acc.Token})
	if string(read.Result) != `"from a call"` {
		t.Errorf("the next call reads %s", read.Result)
	}
	log := events(t, s.sessions, ref.SessionID)
	results := find[event.ActionResult](t, log)
	if len(results) != 2 || results[0].Workspace == "" || results[1].Workspace != "" {
		t.Errorf("results = %+v; want the list of files where it changed", results)
	}
	for _, e := range log[len(log)-4:] {
		if e.TurnID != wrote.CallID && e.TurnID != read.CallID {
			t.Errorf("%s is recorded under turn %q", e.Type, e.TurnID)
		}
	}
	f.answers = [][]model.Delta{hello, {call(0, "look", `{"path":"d/a.txt"}`), finish(model.FinishToolCalls)}, hello}
	next, _ := send(t, e, acc, "what is there?")
	step(t, e, next)
	if got := f.requests[2].Messages[4].Results[0].Output; got != "from a call" {
		t.Errorf("the model of the next turn reads %q", got)
	}
	checkPairs(t, f.requests)
}

// While a turn runs, a read runs beside it and sees the files as the last result left them; what it changes is dropped.
func TestCallBesideATurn(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	f := &fake{answers: [][]model.Delta{{call(0, "note", `{"path":"a","text":"one"}`), finish(model.FinishToolCalls)}, {call(0, "gated", `{"path":"a","text":"two"}`), finish(model.FinishToolCalls)}, hello}}
	e := newEngine(t, config{storage: s, tools: fileTools(), models: f.named()})
	ref, _ := start(t, e, "hi")
	await(t, e, ref)
	in := json.RawMessage(`{"path":"a","text":"three"}`)
	if got := callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID}); string(got.Result) != `"one"` || got.ScratchWorkspace {
		t.Errorf("%+v (%s); want what the turn left", got, got.Result)
	}
	if got := callTool(t, e, engine.ToolCall{Name: "peek", Input: in, SessionID: ref.SessionID}); !got.ScratchWorkspace || got.IsError {
		t.Errorf("%+v; want one whose changes were dropped", got)
	}
	if got := callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID}); string(got.Result) != `"one"` {
		t.Errorf("a read changed the files of a turn: %s", got.Result)
	}
	decide(t, e, ref, waiting(t, e, ref.SessionID)[0], true, "")
	step(t, e, ref)
	if got := callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID}); string(got.Result) != `"two"` {
		t.Errorf("after the turn: %s", got.Result)
	}
	checkPairs(t, f.requests)
}

// lostBlobs is a store that lost the list of files.
type lostBlobs struct{ blob.Driver }

func (lostBlobs) Get(context.Context, blob.Ref) ([]byte, error) { return nil, blob.ErrNotFound }

// The files of the session cannot be had: a read gets others and says so, a write is refused.
func TestCallWithoutTheSessionsFiles(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	e := newEngine(t, config{storage: s, tools: fileTools(), script: "rules: [{text: ok}]"})
	ref, _ := start(t, e, "hi")
	step(t, e, ref)
	in := json.RawMessage(`{"path":"a","text":"x"}`)
	callTool(t, e, engine.ToolCall{Name: "note", Input: in, SessionID: ref.SessionID})
	s.blobs = lostBlobs{s.blobs}
	e = newEngine(t, config{storage: s, tools: fileTools(), script: "rules: [{text: ok}]"})
	if got := callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID}); !got.ScratchWorkspace || string(got.Result) != `"nothing for local"` {
		t.Errorf("%+v (%s)", got, got.Result)
	}
	before := len(events(t, s.sessions, ref.SessionID))
	if _, err := e.CallTool(t.Context(), engine.ToolCall{Name: "note", Input: in, SessionID: ref.SessionID, Caller: "local"}); bdkerr.CodeOf(err) != bdkerr.NoWorkspace {
		t.Errorf("a write: %v; want %s", err, bdkerr.NoWorkspace)
	}
	if after := len(events(t, s.sessions, ref.SessionID)); after != before {
		t.Errorf("%d events of a call that was not made", after-before)
	}
}

// A dry-run session and one that is frozen answer calls without a model as they answer a model's.
func TestCallInSpecialSessions(t *testing.T) {
	t.Parallel()
	tools := append(fileTools(), bdk.NamedTool{Name: "since", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d", Effect: bdk.Read, TimeArgs: []string{"from"}},
		func(_ context.Context, call *bdk.Call, in struct {
			From string `json:"from"`
		},
		) (string, error) {
			return in.From + " of " + call.Now().Format(time.RFC3339), nil
		})})
	e := newEngine(t, config{storage: filesStorage(), tools: tools, script: "rules: [{text: ok}]"})
	dry, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "hi", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Stop(t.Context(), dry.SessionID, ""); err != nil {
		t.Fatal(err)
	}
	in := json.RawMessage(`{"path":"a","text":"x"}`)
	for _, name := range []string{"note", "gated"} {
		if got := callTool(t, e, engine.ToolCall{Name: name, Input: in, SessionID: dry.SessionID}); !got.Stubbed || string(got.Result) != `"Operation acknowledged."` {
			t.Errorf("%s in a dry run: %+v (%s)", name, got, got.Result)
		}
	}
	frozen, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "hi", AsOf: time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		"2025-01-01T00:00:00Z": `"2025-01-01T00:00:00Z of 2025-01-02T00:00:00Z"`, "2025-01-03T00:00:00Z": "2025-01-02T00:00:00Z", "yesterday": "an absolute time with a zone",
	} {
		got := callTool(t, e, engine.ToolCall{Name: "since", Input: json.RawMessage(fmt.Sprintf(`{"from":%q}`, from)), SessionID: frozen.SessionID})
		if !strings.Contains(string(got.Result), want) || got.IsError == (want[0] == '"') {
			t.Errorf("from %s: %+v (%s); want %s", from, got, got.Result, want)
		}
	}
}

// What happens to the session while a tool writes beside it: the files that it wrote are not kept, and that is its result.
func TestWriteThatTheSessionOvertakes(t *testing.T) {
	t.Parallel()
	in := json.RawMessage(`{"path":"a","text":"theirs"}`)
	for name, tc := range map[string]struct {
		overtake func(e *engine.Engine, ref turn.Ref, acc session.Accepted)
		files    string
		results  []string
	}{
		"a turn that runs": {func(e *engine.Engine, _ turn.Ref, acc session.Accepted) { send(t, e, acc, "now") }, `"nothing for local"`, []string{"slow failed"}},
		"a turn that ended": {func(e *engine.Engine, _ turn.Ref, acc session.Accepted) {
			ref, _ := send(t, e, acc, "now")
			step(t, e, ref)
		}, `"nothing for local"`, []string{"slow failed"}},
		"another write": {func(e *engine.Engine, ref turn.Ref, _ session.Accepted) {
			callTool(t, e, engine.ToolCall{Name: "note", Input: in, SessionID: ref.SessionID})
		}, `"theirs"`, []string{"note", "slow failed"}},
		"a read": {func(e *engine.Engine, ref turn.Ref, _ session.Accepted) {
			callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID})
		}, `"slow"`, []string{"look", "slow"}},
	} {
		var overtake func()
		tools := append(fileTools(), bdk.NamedTool{Name: "slow", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"},
			func(ctx context.Context, call *bdk.Call, in pathInput) (string, error) {
				err := call.Workspace.WriteFile(ctx, in.Path, []byte("slow"), 0o644)
				overtake()
				return "done", err
			})})
		s := filesStorage()
		e := newEngine(t, config{storage: s, tools: tools, script: "rules: [{text: ok}]"})
		ref, acc := start(t, e, "hi")
		step(t, e, ref)
		overtake = func() { tc.overtake(e, ref, acc) }
		got := callTool(t, e, engine.ToolCall{Name: "slow", Input: in, SessionID: ref.SessionID})
		kept := tc.files == `"slow"`
		if got.IsError == kept || got.ScratchWorkspace == kept {
			t.Errorf("%s: %+v (%s)", name, got, got.Result)
		}
		if !kept && (!strings.Contains(string(got.Result), "was not kept: the session has gone on meanwhile") || !strings.Contains(string(got.Result), "done")) {
			t.Errorf("%s: the caller is told %s", name, got.Result)
		}
		if _, err := e.Stop(t.Context(), ref.SessionID, ""); err != nil && bdkerr.CodeOf(err) == "" {
			t.Fatal(err)
		}
		if got := callTool(t, e, engine.ToolCall{Name: "look", Input: in, SessionID: ref.SessionID}); string(got.Result) != tc.files {
			t.Errorf("%s: the files are %s; want %s", name, got.Result, tc.files)
		}
		var results []string
		for _, r := range find[event.ActionResult](t, events(t, s.sessions, ref.SessionID)) {
			if r.IsError {
				r.ToolName += " failed"
			}
			results = append(results, r.ToolName)
		}
		if d := cmp.Diff(append(tc.results, "look"), results); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Of writes beside each other nothing is lost silently: what a call says that it left is there.
func TestWritesBesideEachOther(t *testing.T) {
	t.Parallel()
	e := newEngine(t, config{storage: filesStorage(), tools: fileTools(), script: "rules: [{text: ok}]"})
	ref, _ := start(t, e, "hi")
	step(t, e, ref)
	var kept [8]bool
	var all sync.WaitGroup
	for i := range kept {
		all.Go(func() {
			in := json.RawMessage(fmt.Sprintf(`{"path":"f%d","text":"%d"}`, i, i))
			out, err := e.CallTool(t.Context(), engine.ToolCall{Name: "note", Input: in, SessionID: ref.SessionID, Caller: "local"})
			if err != nil && bdkerr.CodeOf(err) != bdkerr.SessionBusy {
				t.Error(err)
			}
			kept[i] = err == nil && !out.IsError
		})
	}
	all.Wait()
	if !slices.Contains(kept[:], true) {
		t.Error("of no call the files were kept")
	}
	for i, kept := range kept {
		got := callTool(t, e, engine.ToolCall{Name: "look", Input: json.RawMessage(fmt.Sprintf(`{"path":"f%d"}`, i)), SessionID: ref.SessionID})
		if there := string(got.Result) == fmt.Sprintf(`"%d"`, i); there != kept {
			t.Errorf("file %d is there: %v; its call said so: %v", i, there, kept)
		}
	}
}

// First files that no workspace can have are refused before there is a session.
func TestStartChecksTheFirstFiles(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	e := newEngine(t, config{storage: s, tools: fileTools(), script: "rules: [{text: ok}]"})
	for files, want := range map[string]bdkerr.Code{
		`{"files":{"a":"","A":""}}`: bdkerr.InvalidRequest, `{"files":{".agents/tools/x":""}}`: bdkerr.InvalidRequest, `{"files":{"a":""}}`: "",
	} {
		ref, err := blob.New(s.blobs).Put(t.Context(), []byte(files))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Start(t.Context(), session.Start{Owner: "local", Message: "hi", Files: string(ref)}); bdkerr.CodeOf(err) != want {
			t.Errorf("%s: %v; want code %q", files, err, want)
		}
	}
}

// What a command leaves that cannot be kept is told once.
func TestWhatIsNotKeptIsTold(t *testing.T) {
	t.Parallel()
	s := filesStorage()
	link := bdk.NamedTool{Name: "link", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "d"}, func(ctx context.Context, call *bdk.Call, in pathInput) (string, error) {
		dir, err := call.Workspace.Dir(ctx)
		if err == nil {
			err = os.Symlink("/", filepath.Join(dir, in.Path))
		}
		return "linked", err
	})}
	f := &fake{answers: [][]model.Delta{
		{call(0, "link", `{"path":"a"}`), finish(model.FinishToolCalls)}, {call(0, "link", `{"path":"b"}`), finish(model.FinishToolCalls)}, hello,
	}}
	e := newEngine(t, config{storage: s, models: f.named(), tools: []bdk.NamedTool{link}})
	ref, _ := start(t, e, "go")
	step(t, e, ref)
	for i, want := range []string{`"a": it is a symbolic link`, `"b": it is a symbolic link`} {
		got := f.requests[i+1].Messages[2+2*i].Results[0].Output
		if !strings.HasPrefix(got, "linked\n\n[not kept") || !strings.Contains(got, want) || strings.Count(got, "symbolic link") != 1 {
			t.Errorf("result %d: %q; want %s alone", i, got, want)
		}
	}
}
