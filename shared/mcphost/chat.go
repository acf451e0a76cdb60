package mcphost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/schema"
	"github.com/bdk-lambda/bdk/shared/session"
)

// How long ask and check wait. Clients give up after a minute unless they are told otherwise, and what lies between them and a
// host may cut a silence of five.
const (
	usualWait = 50 * time.Second
	mostWait  = 4 * time.Minute
)

// maxMessage bounds the text of a message, in bytes, as the HTTP API does.
const maxMessage = 256 << 10

type askInput struct {
	Message        string   `json:"message"`
	SessionID      string   `json:"sessionId"`
	TimeoutSeconds *float64 `json:"timeoutSeconds"`
}

// The schemas are written out: what is inferred for a number that may be missing is more than some clients understand.
const askSchema = `{
  "type": "object",
  "properties": {
    "message": {"type": "string", "description": "what to say to the agent"},
    "sessionId": {"type": "string", "description": "the conversation to go on with; without it a new one begins"},
    "timeoutSeconds": {"type": "number", "description": "how long to wait for the answer, 50 seconds by default and 240 at most; the agent goes on working after it"}
  },
  "required": ["message"],
  "additionalProperties": false
}`

type checkInput struct {
	SessionID      string   `json:"sessionId"`
	TimeoutSeconds *float64 `json:"timeoutSeconds"`
}

const checkSchema = `{
  "type": "object",
  "properties": {
    "sessionId": {"type": "string", "description": "what ask returned"},
    "timeoutSeconds": {"type": "number", "description": "how long to wait for a turn that runs, 0 by default and 240 at most"}
  },
  "required": ["sessionId"],
  "additionalProperties": false
}`

// The statuses of a conversation's last turn.
const (
	running  = "running"
	waits    = "awaiting_approval"
	complete = "completed"
	failed   = "failed"
)

// state is what ask and check return.
type state struct {
	Status    string     `json:"status"`
	SessionID string     `json:"sessionId"`
	Reply     *string    `json:"reply,omitempty"`     // of a turn that is completed
	Error     string     `json:"error,omitempty"`     // why it is not
	Approvals []approval `json:"approvals,omitempty"` // the calls that wait
}

type approval struct {
	CallID    string          `json:"callId"`
	ToolName  string          `json:"toolName"`
	Input     json.RawMessage `json:"input,omitempty"`
	ExpiresAt time.Time       `json:"expiresAt"`
}

const stateSchema = `{
  "type": "object",
  "properties": {
    "status": {"type": "string", "enum": ["completed", "running", "awaiting_approval", "failed", "cancelled"],
      "description": "running and awaiting_approval: call check with the sessionId later"},
    "sessionId": {"type": "string", "description": "continues the conversation"},
    "reply": {"type": "string", "description": "what the agent said, when completed"},
    "error": {"type": "string", "description": "why the turn failed or was cancelled"},
    "approvals": {"type": "array", "description": "the calls of tools that people have to decide about",
      "items": {"type": "object", "properties": {"callId": {"type": "string"}, "toolName": {"type": "string"},
        "input": {"type": "object"}, "expiresAt": {"type": "string"}}, "required": ["callId", "toolName", "expiresAt"]}}
  },
  "required": ["status", "sessionId"]
}`

// chatServer returns the server of the agent as somebody to talk to.
func (e *Endpoint) chatServer() *mcp.Server {
	p := e.agent.Project()
	name := cmp.Or(p.Agent.Name, p.Slug)
	about := ""
	if d := strings.TrimSpace(p.Agent.Description); d != "" {
		about = " " + d
	}
	s := e.server(fmt.Sprintf("Talk to the agent %s with ask.%s If it has not answered in time, call check with the sessionId.", name, about))
	no := false
	add(e, s, askSchema, &mcp.Tool{
		Name: "ask", Title: "Ask " + name, OutputSchema: json.RawMessage(stateSchema), Annotations: &mcp.ToolAnnotations{},
		Description: fmt.Sprintf("Say something to the agent %s, and wait for its answer.%s Returns a sessionId: give it to go on with the "+
			"conversation. While the status is running, call check.", name, about),
	}, e.ask)
	add(e, s, checkSchema, &mcp.Tool{
		Name: "check", Title: "Check on " + name, OutputSchema: json.RawMessage(stateSchema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
		Description: "See how a conversation that ask began gets on, and get the answer when there is one.",
	}, e.check)
	if names := e.toolNames(); len(names) > 0 {
		add(e, s, callSchema, &mcp.Tool{
			Name: "call_tool", Title: "Call a tool of " + name, Annotations: &mcp.ToolAnnotations{},
			Description: fmt.Sprintf("Run one of the agent's tools yourself, without the agent. The tools are %s.", strings.Join(names, ", ")),
		}, e.callTool)
	}
	return s
}

// add adds a tool whose input is an In. What goes wrong in it is a result, which says so.
func add[In any](e *Endpoint, s *mcp.Server, input string, t *mcp.Tool, run func(context.Context, In) (*mcp.CallToolResult, error)) {
	form, err := schema.Parse(json.RawMessage(input))
	if err != nil {
		panic("mcphost: " + err.Error()) // a mistake in this package
	}
	t.InputSchema = form.JSON()
	s.AddTool(t, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		in, err := decode[In](form, r.Params.Arguments)
		if err != nil {
			return refusal(bdkerr.New(bdkerr.InvalidRequest, "%s", err)), nil
		}
		res, err := run(ctx, in)
		if err != nil {
			return e.fault(ctx, err), nil
		}
		return res, nil
	})
}

func decode[In any](s *schema.Schema, raw json.RawMessage) (in In, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if err := schema.Object(raw); err != nil {
		return in, fmt.Errorf("the arguments: %w", err)
	}
	if err := s.Validate(raw); err != nil {
		return in, fmt.Errorf("the arguments: %w", err)
	}
	return schema.Decode[In](s, raw)
}

// ask starts a conversation or goes on with one, and waits for the end of its turn.
func (e *Endpoint) ask(ctx context.Context, in askInput) (*mcp.CallToolResult, error) {
	wait, err := e.wait(in.TimeoutSeconds, usualWait)
	if err == nil {
		err = checkMessage(in.Message)
	}
	if err != nil {
		return nil, err
	}
	var acc session.Accepted
	from := int64(0)
	caller, _ := auth.FromContext(ctx)
	if in.SessionID == "" {
		acc, err = e.agent.Start(ctx, session.Start{Owner: string(caller), Channel: Channel, Message: in.Message})
	} else {
		var row session.Record
		if row, err = e.session(ctx, in.SessionID); err != nil {
			return nil, err
		}
		from = row.Next
		acc, err = e.agent.Send(ctx, session.Message{SessionID: row.ID, Owner: row.Owner, Text: in.Message, Inside: true})
		if bdkerr.CodeOf(err) == bdkerr.SessionBusy {
			err = bdkerr.New(bdkerr.SessionBusy, "the agent has not answered what was said before: call check until its status is not running, then say this again")
		}
	}
	if err != nil {
		return nil, err
	}
	st, err := e.await(ctx, acc.SessionID, acc.TurnID, from, wait)
	if err != nil { // what was said is recorded: only the answer cannot be had now
		e.opts.Log.ErrorContext(ctx, "answer cannot be read", slog.String("session_id", acc.SessionID), slog.Any("error", err))
		st = state{Status: running, SessionID: acc.SessionID}
	}
	return st.result()
}

func checkMessage(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return bdkerr.New(bdkerr.InvalidRequest, "the message is blank")
	case strings.ContainsRune(text, 0):
		return bdkerr.New(bdkerr.InvalidRequest, "the message contains the character NUL (\\u0000): remove it")
	case len(text) > maxMessage:
		return bdkerr.New(bdkerr.PayloadTooLarge, "the message has %d bytes: the limit is %d", len(text), maxMessage)
	}
	return nil
}

// wait returns how long to wait.
func (e *Endpoint) wait(seconds *float64, usual time.Duration) (time.Duration, error) {
	if seconds == nil {
		return min(usual, e.opts.MaxWait), nil
	}
	if *seconds < 0 {
		return 0, bdkerr.New(bdkerr.InvalidRequest, "timeoutSeconds is %v: it cannot be negative", *seconds)
	}
	return time.Duration(min(*seconds, e.opts.MaxWait.Seconds()) * float64(time.Second)), nil
}

// session returns a session of the caller.
func (e *Endpoint) session(ctx context.Context, id string) (session.Record, error) {
	none := bdkerr.New(bdkerr.NoSession, "no session %.80q", id)
	if !session.IsID(id) {
		return session.Record{}, none
	}
	row, err := e.agent.Sessions().Get(ctx, id)
	caller, _ := auth.FromContext(ctx)
	switch {
	case bdkerr.CodeOf(err) == bdkerr.NotFound || err == nil && row.Agent != e.agent.Project().Slug:
		return row, none
	case err != nil:
		return row, err
	case row.Owner != string(caller):
		return row, bdkerr.New(bdkerr.Forbidden, "this session belongs to another caller")
	}
	return row, nil
}

// check tells how the last turn of a conversation gets on.
func (e *Endpoint) check(ctx context.Context, in checkInput) (*mcp.CallToolResult, error) {
	wait, err := e.wait(in.TimeoutSeconds, 0)
	if err != nil {
		return nil, err
	}
	row, err := e.session(ctx, in.SessionID)
	if err != nil {
		return nil, err
	}
	var st state
	if row.Turn.ID != "" {
		st, err = e.await(ctx, row.ID, row.Turn.ID, row.Next, wait)
	} else {
		st, err = e.lastTurn(ctx, row)
	}
	if err != nil {
		return nil, err
	}
	return st.result()
}

// await waits until a turn has ended or waits for people, for a time at most. The log is read from an index on.
func (e *Endpoint) await(ctx context.Context, id, turnID string, from int64, wait time.Duration) (state, error) {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer endWith(bounded, requestOf(ctx).Gone, cancel)()
	cursor := e.agent.Sessions().Cursor(id, from)
	defer cursor.Close()
	for asked := true; ; {
		events, err := cursor.Read(ctx)
		if err != nil {
			return state{}, err
		}
		for _, ev := range events {
			if st, ended, err := ending(ev, id, turnID); ended || err != nil {
				return st, err
			}
			asked = asked || ev.Type == event.TypeApprovalRequested
		}
		if len(events) > 0 {
			continue
		}
		st := state{Status: running, SessionID: id}
		if asked {
			st, err = e.waiting(ctx, id)
		}
		if err != nil || st.Status == waits || bounded.Err() != nil {
			return st, err
		}
		asked = false
		_ = cursor.Wait(bounded) // when the time is over the log is read once more
	}
}

// endWith calls cancel when gone is closed, unless ctx ends or the returned function is called before.
func endWith(ctx context.Context, gone <-chan struct{}, cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		case <-done:
		}
	}()
	return func() { close(done) }
}

// waiting tells of a turn that has not ended which calls wait for people.
func (e *Endpoint) waiting(ctx context.Context, id string) (state, error) {
	st := state{Status: running, SessionID: id}
	row, err := e.agent.Sessions().Get(ctx, id)
	if err != nil || len(row.Turn.Pending()) == 0 {
		return st, err
	}
	asked, err := e.agent.Approvals(ctx, id, row.Owner)
	if err != nil || len(asked) == 0 {
		return st, err
	}
	st.Status = waits
	for _, a := range asked {
		st.Approvals = append(st.Approvals, approval{a.CallID, a.ToolName, a.Args, a.ExpiresAt})
	}
	return st, nil
}

// ending returns the state after an event that ends the turn, of any turn if turnID is "".
func ending(ev event.Event, id, turnID string) (st state, ended bool, err error) {
	if turnID != "" && ev.TurnID != turnID {
		return st, false, nil
	}
	st.SessionID = id
	switch ev.Type {
	case event.TypeTurnCompleted:
		var d event.TurnCompleted
		d, err = event.Decode[event.TurnCompleted](ev)
		st.Status, st.Reply = complete, &d.Result
	case event.TypeTurnFailed:
		var d event.TurnFailed
		d, err = event.Decode[event.TurnFailed](ev)
		st.Status, st.Error = failed, d.Message
		if d.Status == event.StatusCancelled {
			st.Status = event.StatusCancelled
		}
	default:
		return st, false, nil
	}
	return st, true, err
}

// lastTurn returns how the last turn of a session that has none active ended. It is near the end of the log, which is read from there.
func (e *Endpoint) lastTurn(ctx context.Context, row session.Record) (state, error) {
	for back := int64(32); ; back *= 8 {
		from := max(0, row.Next-back)
		st, found, err := e.lastFrom(ctx, row.ID, from)
		switch {
		case err != nil || found:
			return st, err
		case from == 0:
			return state{}, errors.New("the log holds no end of a turn")
		}
	}
}

func (e *Endpoint) lastFrom(ctx context.Context, id string, from int64) (last state, found bool, err error) {
	cursor := e.agent.Sessions().Cursor(id, from)
	defer cursor.Close()
	for {
		events, err := cursor.Read(ctx)
		if err != nil || len(events) == 0 {
			return last, found, err
		}
		for _, ev := range events {
			st, ended, err := ending(ev, id, "")
			if err != nil {
				return last, found, err
			}
			if ended {
				last, found = st, true
			}
		}
	}
}

// result returns the state as the result of a tool.
func (st state) result() (*mcp.CallToolResult, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encoding the state of a session: %w", err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(raw)}},
		StructuredContent: json.RawMessage(raw),
		IsError:           st.Status == failed || st.Status == event.StatusCancelled,
	}, nil
}

// refusal is the result of a call that could not be made.
func refusal(err *bdkerr.Error) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(err.Code) + ": " + err.Message}}, IsError: true}
}

// fault is the result of a call that went wrong. What is not for clients goes to the log.
func (e *Endpoint) fault(ctx context.Context, err error) *mcp.CallToolResult {
	if known, ok := errors.AsType[*bdkerr.Error](err); ok && known.Code != bdkerr.Internal {
		return refusal(known)
	}
	id := requestOf(ctx).ID
	e.opts.Log.ErrorContext(ctx, "request failed", slog.String("request_id", id), slog.Any("error", err))
	return refusal(bdkerr.New(bdkerr.Internal, "the host could not do this; its log has the reason under request %s", id))
}
