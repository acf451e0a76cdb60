package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/memsession"
)

// fakeAgent accepts messages and leaves their turns to the test.
type fakeAgent struct {
	connected []bdk.NamedTool
	faults    []engine.ConnectionFault

	reminders   []bdk.ReminderRecord
	remindFault error
	onDispatch  func(engine.Tick) (engine.Dispatched, error)

	project bdk.Project
	store   *session.Store
	made    *artifact.Store
	cost    engine.Cost
	onStart func(context.Context) // called before a start is recorded

	mu      sync.Mutex
	waiting []parked                  // in the order in which they were asked for
	decided map[string]engine.Decided // by call id
	noFiles bool                      // no workspace can be had
}

// parked is a call that waits, for somebody who may decide besides the owner of the session.
type parked struct {
	engine.Approval

	session, approver string
}

func newAgent(slug string) *fakeAgent {
	return &fakeAgent{project: bdk.Project{Slug: slug}, store: session.New(memsession.New(), session.Options{})}
}

func (a *fakeAgent) Project() bdk.Project       { return a.project }
func (a *fakeAgent) Models() []string           { return []string{"scripted:a.yaml", "openai:b"} }
func (a *fakeAgent) Sessions() *session.Store   { return a.store }
func (a *fakeAgent) Artifacts() *artifact.Store { return a.made }

func (a *fakeAgent) Start(ctx context.Context, in session.Start) (session.Accepted, error) {
	if a.onStart != nil {
		a.onStart(ctx)
	}
	return a.store.Start(ctx, in)
}

func (a *fakeAgent) Send(ctx context.Context, in session.Message) (session.Accepted, error) {
	return a.store.Send(ctx, in)
}

func (a *fakeAgent) Stop(ctx context.Context, id, turnID string) (string, error) {
	return a.store.Stop(ctx, id, turnID)
}

func (a *fakeAgent) Cost(context.Context, string) (engine.Cost, error) { return a.cost, nil }

func (a *fakeAgent) Dispatch(_ context.Context, t engine.Tick) (engine.Dispatched, error) {
	if a.onDispatch == nil {
		return engine.Dispatched{}, bdkerr.New(bdkerr.NotFound, "no schedule")
	}
	return a.onDispatch(t)
}

func (a *fakeAgent) Reminders(context.Context, int) ([]bdk.ReminderRecord, error) {
	return append([]bdk.ReminderRecord{}, a.reminders...), nil
}

func (a *fakeAgent) Remind(_ context.Context, id string) error {
	for _, r := range a.reminders {
		if r.ID == id {
			return a.remindFault
		}
	}
	return bdk.ErrNotFound
}

// Approvals and Decide keep what [engine.Engine] promises, in memory.
func (a *fakeAgent) Approvals(ctx context.Context, sessionID, caller string) ([]engine.Approval, error) {
	row, err := a.store.Get(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []engine.Approval
	for _, p := range a.waiting {
		if _, done := a.decided[p.CallID]; !done && p.session == sessionID && (row.Owner == caller || p.approver == caller) {
			list = append(list, p.Approval)
		}
	}
	if len(list) == 0 && row.Owner != caller {
		return nil, bdkerr.New(bdkerr.Forbidden, "nothing of this session is yours to decide")
	}
	return list, nil
}

func (a *fakeAgent) Decide(ctx context.Context, d engine.Decision) (engine.Decided, error) {
	row, err := a.store.Get(ctx, d.SessionID)
	if err != nil {
		return engine.Decided{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.waiting, func(p parked) bool { return p.session == d.SessionID && p.CallID == d.CallID })
	want := engine.Decided{CallID: d.CallID, Decision: "deny", By: d.By, Note: d.Note}
	if d.Approve {
		want.Decision = "approve"
	}
	switch {
	case i < 0:
		return engine.Decided{}, bdkerr.New(bdkerr.NotFound, "no call %q waits for approval", d.CallID)
	case row.Owner != d.By && a.waiting[i].approver != d.By:
		return engine.Decided{}, bdkerr.New(bdkerr.Forbidden, "this call is not yours to decide")
	}
	if old, ok := a.decided[d.CallID]; ok {
		if old.Again = true; old.Decision != want.Decision {
			return engine.Decided{}, bdkerr.New(bdkerr.Decided, "it was decided otherwise")
		}
		return old, nil
	}
	if a.decided == nil {
		a.decided = map[string]engine.Decided{}
	}
	a.decided[d.CallID] = want
	return want, nil
}

func (a *fakeAgent) CallableTools() []bdk.NamedTool {
	return slices.DeleteFunc(slices.Clone(a.project.Tools), func(n bdk.NamedTool) bool { return n.Tool.Script() != "" })
}

func (a *fakeAgent) ConnectedTools(context.Context, bdk.SessionInfo) ([]bdk.NamedTool, []engine.ConnectionFault) {
	return a.connected, a.faults
}

func (a *fakeAgent) ConnectionFaults() []engine.ConnectionFault { return a.faults }

// CallTool keeps what [engine.Engine.CallTool] promises: the rules of binding, over the sessions of the store.
func (a *fakeAgent) CallTool(ctx context.Context, c engine.ToolCall) (out engine.ToolOutcome, err error) {
	i := slices.IndexFunc(a.project.Tools, func(n bdk.NamedTool) bool { return n.Name == c.Name })
	switch channel, key, ok := strings.Cut(c.Token, ":"); {
	case i < 0:
		return out, bdkerr.New(bdkerr.UnknownTool, "there is no tool %q", c.Name)
	case a.project.Tools[i].Tool.Script() != "":
		return out, bdkerr.New(bdkerr.NotCallable, "tool %q is a script", c.Name)
	case c.Token != "" && (c.SessionID != "" || !ok || channel == "" || key == ""):
		return out, bdkerr.New(bdkerr.BadToken, "the token is not <channelId>:<key>, or there is a session too")
	}
	if len(c.Input) == 0 {
		c.Input = json.RawMessage("{}")
	}
	t := a.project.Tools[i].Tool
	if err := t.CheckInput(c.Input); err != nil {
		return out, bdkerr.New(bdkerr.BadToolInput, "%s", err)
	}
	out = engine.ToolOutcome{CallID: "tool_" + c.Name + "_1", Took: 12 * time.Millisecond, ScratchWorkspace: c.Token != "" && c.Token != boundToken}
	if c.Token == boundToken {
		rows, _, err := a.store.List(ctx, session.Query{Agent: a.project.Slug, All: true, Limit: 1})
		if err != nil || len(rows) == 0 {
			return out, err
		}
		c.SessionID = rows[0].ID
	}
	if c.SessionID != "" {
		if err := a.bind(ctx, c, t, &out); err != nil || out.Stubbed {
			return out, err
		}
	}
	value, err := t.Run(ctx, &bdk.Call{ID: out.CallID}, c.Input)
	if err != nil {
		out.IsError, value = true, err.Error()
	}
	if raw, ok := value.(json.RawMessage); ok {
		out.Result = raw
		return out, nil
	}
	out.Result, err = json.Marshal(value)
	return out, err
}

// boundToken is the token that maps to the newest session of the store.
const boundToken = "review:pr-42"

func (a *fakeAgent) bind(ctx context.Context, c engine.ToolCall, t bdk.Tool, out *engine.ToolOutcome) error {
	row, err := a.store.Get(ctx, c.SessionID)
	write := t.EffectOf(c.Input) == bdk.Write
	switch {
	case bdkerr.CodeOf(err) == bdkerr.NotFound || err == nil && row.Agent != a.project.Slug:
		return bdkerr.New(bdkerr.NoSession, "no session %q", c.SessionID)
	case err != nil:
		return err
	case row.Owner != c.Caller:
		return bdkerr.New(bdkerr.Forbidden, "this session belongs to another caller")
	case row.Turn.ID != "" && write:
		return bdkerr.New(bdkerr.SessionBusy, "a turn runs")
	case a.noFiles && write:
		return bdkerr.New(bdkerr.NoWorkspace, "the files of the session cannot be had")
	}
	out.SessionID, out.ScratchWorkspace = row.ID, a.noFiles
	if row.DryRun && write {
		out.Stubbed, out.Result = true, json.RawMessage(`"Operation acknowledged."`)
	}
	return nil
}

// begin starts a session in the store and returns the writer of its first turn.
func (a *fakeAgent) begin(t testing.TB, owner string, mode session.Mode) (session.Accepted, *session.Writer) {
	t.Helper()
	acc, err := a.store.Start(t.Context(), session.Start{Agent: a.project.Slug, Owner: owner, Message: "hello", Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.store.Open(t.Context(), acc.SessionID, acc.TurnID)
	if err == nil {
		err = w.Replay(t.Context(), 0, func(event.Event) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return acc, w
}

func add(t testing.TB, w *session.Writer, data ...event.Data) {
	t.Helper()
	if _, err := w.Append(t.Context(), data...); err != nil {
		t.Fatal(err)
	}
}

func finish(t testing.TB, w *session.Writer, data ...event.Data) {
	t.Helper()
	if _, err := w.Finish(t.Context(), data...); err != nil {
		t.Fatal(err)
	}
}

// byName is a policy for tests: the caller is who the header X-Caller says.
func byName(r *http.Request) (auth.Principal, bool) {
	who := r.Header.Get("X-Caller")
	return auth.Principal(who), who != ""
}

// client sends requests to a handler without a network.
type client struct {
	t testing.TB
	h http.Handler
}

func newClient(t testing.TB, opts httpapi.Options, agents ...*fakeAgent) client {
	t.Helper()
	if opts.Auth == nil {
		opts.Auth = byName
	}
	return client{t, httpapi.New(asAgents(agents), opts)}
}

func asAgents(agents []*fakeAgent) []httpapi.Agent {
	list := make([]httpapi.Agent, len(agents))
	for i, a := range agents {
		list[i] = a
	}
	return list
}

// answer is what came back. Body is nil unless it is a JSON object.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (a answer) text(key string) string {
	s, _ := a.body[key].(string)
	return s
}

// do sends a request as caller ann. Headers are pairs; a later value of a name replaces an earlier one.
func (c client) do(method, target, body string, headers ...string) answer {
	c.t.Helper()
	return c.doIn(context.Background(), method, target, body, headers...)
}

func (c client) doIn(ctx context.Context, method, target, body string, headers ...string) answer {
	c.t.Helper()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	r.Header.Set("X-Caller", "ann")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return c.serve(r)
}

// raw sends a request line as it is, as a server would read it.
func (c client) raw(line string) answer {
	c.t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: h\r\nX-Caller: ann\r\n\r\n")))
	if err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return c.serve(r)
}

func (c client) serve(r *http.Request) answer {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if json.Unmarshal(w.Body.Bytes(), &a.body) != nil {
		a.body = nil
	}
	return a
}

// refused checks that an answer is the envelope of an error and returns its message.
func refused(t testing.TB, a answer, status int, code string) string {
	t.Helper()
	message := a.text("message")
	if a.status != status || a.body["ok"] != false || a.text("error") != code || message == "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %.300s; want %d with the envelope of %s", a.status, a.raw, status, code)
	}
	return message
}

func eventLines(t testing.TB, raw string) (events []event.Event) {
	t.Helper()
	for line := range strings.Lines(raw) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func indexes(events []event.Event) []int64 {
	got := []int64{}
	for _, e := range events {
		got = append(got, e.Index)
	}
	return got
}
