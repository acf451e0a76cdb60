package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/schema"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tool"
)

// ToolCall is a call of a tool without a model.
type ToolCall struct {
	Name      string
	Input     json.RawMessage // one JSON object; empty: {}
	Caller    string          // the principal
	SessionID string          // binds the call to a session; "" for none
	Token     string          // binds the call by a continuation token; "" for none; not with SessionID
}

// ToolOutcome is what came of a call without a model.
type ToolOutcome struct {
	CallID           string
	IsError          bool
	Stubbed          bool            // a dry-run session answered a write without running it
	Result           json.RawMessage // a JSON string for text, any JSON otherwise
	Took             time.Duration
	SessionID        string // the session that the call was bound to; "" for none
	ScratchWorkspace bool   // the call was bound, and did not get the session's files or could not leave there what it changed
}

// CallableTools returns the server tools, in name order.
func (e *Engine) CallableTools() []bdk.NamedTool {
	return slices.DeleteFunc(slices.Clone(e.project.Tools), func(t bdk.NamedTool) bool { return t.Tool.Script() != "" })
}

// CallTool runs a server tool without a model. What goes wrong in the tool is an outcome; the errors are those of the HTTP API:
// bdkerr.UnknownTool, NotCallable, BadToolInput, BadToken, NoSession, Forbidden, StaleToken, SessionBusy and NoWorkspace.
//
// A call that is bound to a session is recorded there, under a turn of its own. One that writes needs the session to be idle when it
// begins; if the session has gone on when it ends, the files that it changed are not kept, and that is its result. One that reads
// sees the files as the last result left them, and what it changes in them is dropped then.
// Without a session the call has files of its own, which are gone when it returns. A tool that needs approval can be called by
// who may give it.
func (e *Engine) CallTool(ctx context.Context, c ToolCall) (ToolOutcome, error) {
	t, err := e.checkCall(&c)
	if err != nil {
		return ToolOutcome{}, err
	}
	for range maxBinds {
		out, err := e.callBound(ctx, t, c)
		if !errors.Is(err, session.ErrStale) {
			return out, err
		}
	}
	return ToolOutcome{}, bdkerr.New(bdkerr.SessionBusy, "the session goes on too fast, the tool was not run: try again")
}

// maxBinds is how often a call reads a session that has gone on before the call was recorded.
const maxBinds = 5

// callBound fails with session.ErrStale if the session went on before the tool was run.
func (e *Engine) callBound(ctx context.Context, t bdk.NamedTool, c ToolCall) (ToolOutcome, error) {
	row, err := e.bind(ctx, c)
	if err != nil {
		return ToolOutcome{}, err
	}
	d := &direct{Engine: e, ToolCall: c, row: row, bound: row.Version > 0, id: "tool_" + c.Name + "_" + e.deps.NewID()}
	d.log = e.deps.Log.With(slog.String("call_id", d.id), slog.String("tool", c.Name), slog.String("owner", row.Owner))
	if d.bound {
		d.log = d.log.With(slog.String("session_id", row.ID))
	}
	d.writes = t.Tool.EffectOf(c.Input) != bdk.Read
	if err := d.openFiles(ctx); err != nil {
		return ToolOutcome{}, err
	}
	defer d.files.close(ctx, d.log)
	return d.run(ctx)
}

// checkCall returns the tool of a call, whose empty input it fills in.
func (e *Engine) checkCall(c *ToolCall) (bdk.NamedTool, error) {
	t, ok := e.find(c.Name)
	if !ok {
		return bdk.NamedTool{}, bdkerr.New(bdkerr.UnknownTool, "there is no tool %.80q", c.Name)
	}
	if t.Tool.Script() != "" {
		return t, bdkerr.New(bdkerr.NotCallable, "%s runs as a script beside the files of a session: only a model can call it", c.Name)
	}
	if len(c.Input) == 0 {
		c.Input = json.RawMessage(`{}`)
	}
	err := schema.Object(c.Input)
	if err == nil {
		err = t.Tool.CheckInput(c.Input)
	}
	if err != nil {
		return t, bdkerr.New(bdkerr.BadToolInput, "the input of %s was refused, the tool was not run: %s", c.Name, err)
	}
	return t, nil
}

// bind returns the row of the session that a call is bound to, and one with Version 0 if there is none.
func (e *Engine) bind(ctx context.Context, c ToolCall) (session.Record, error) {
	none := session.Record{Agent: e.project.Slug, Owner: c.Caller, Channel: "http", Mode: session.Chat, Purpose: "chat"}
	id := c.SessionID
	if c.Token != "" {
		channel, key, ok := strings.Cut(c.Token, ":")
		switch {
		case c.SessionID != "":
			return none, bdkerr.New(bdkerr.BadToken, "give sessionId or continuationToken, not both")
		case !ok || channel == "" || key == "":
			return none, bdkerr.New(bdkerr.BadToken, "continuationToken is %.80q: it must be <channelId>:<key>", c.Token)
		}
		none.Channel, none.ID = channel, key
		id = session.SessionOf(c.Token)
	}
	if id == "" {
		return none, nil
	}
	row, err := e.deps.Sessions.Get(ctx, id)
	switch {
	case bdkerr.CodeOf(err) == bdkerr.NotFound || err == nil && row.Agent != e.project.Slug:
		if c.Token != "" {
			return none, nil
		}
		return none, bdkerr.New(bdkerr.NoSession, "no session %.80q", id)
	case err != nil:
		return none, err
	case row.Owner != c.Caller:
		return none, errForeign()
	case c.Token != "" && !row.Current(c.Token):
		return none, bdkerr.New(bdkerr.StaleToken, "the continuation token is not the current one: use the token of the last accepted message")
	}
	return row, nil
}

// direct is a call without a model on its way.
type direct struct {
	*Engine
	ToolCall

	id      string
	row     session.Record
	bound   bool
	writes  bool
	files   *files
	scratch bool // files are not the session's, although the call is bound
	log     *slog.Logger
}

// openFiles gives the call the files of its session, or such that are its own.
func (d *direct) openFiles(ctx context.Context) error {
	d.files = d.Engine.openFiles("", "")
	if !d.bound || d.deps.Workspaces == nil {
		return nil
	}
	list, err := d.newestFiles(ctx)
	if err == nil {
		d.files = d.Engine.openFiles(list, d.row.Files)
		_, err = d.files.Files(ctx)
	}
	switch {
	case err == nil:
		return nil
	case d.writes:
		return &bdkerr.Error{Code: bdkerr.NoWorkspace, Message: "the files of the session cannot be had: the tool was not run", Err: err}
	}
	d.log.WarnContext(ctx, "tool call without the session's files", slog.Any("error", err))
	d.scratch, d.files = true, d.Engine.openFiles("", "")
	return nil
}

// newestFiles returns the list of the session's files that the last result left.
func (d *direct) newestFiles(ctx context.Context) (string, error) {
	t, err := d.load(ctx, d.row.ID, d.row.Next)
	if err != nil {
		return "", err
	}
	cursor := d.deps.Sessions.Cursor(d.row.ID, t.Next)
	defer cursor.Close()
	for {
		events, err := cursor.Read(ctx)
		if err != nil {
			return "", err
		}
		for _, e := range events {
			if err := t.fold(e); err != nil {
				return "", err
			}
		}
		if len(events) == 0 {
			d.cache.put(d.row.ID, t)
			return t.Files, nil
		}
	}
}

func (d *direct) run(ctx context.Context) (ToolOutcome, error) {
	call := callOf(d.Engine, d.row, d.id, d.id, d.log, d.files, func(ctx context.Context, data ...event.Data) error { return d.record(ctx, data...) })
	if !d.bound {
		call.Session.TurnID = ""
	}
	needsApproval, _ := d.deps.Tools.Gate(call, d.Name, d.Input)
	if needsApproval && !d.mayDecide(d.row, d.Name, d.Caller) {
		return ToolOutcome{}, bdkerr.New(bdkerr.Forbidden, "%s needs approval, which %s may not give: that is for %v", d.Name, d.Caller, d.deps.Tools.Approvers(d.Name))
	}
	if err := d.request(ctx); err != nil {
		return ToolOutcome{}, err
	}
	began := d.deps.Clock.Now()
	out := d.deps.Tools.Run(ctx, call, d.Name, d.Input, false)
	took := d.deps.Clock.Now().Sub(began)
	out, err := d.settle(context.WithoutCancel(ctx), out)
	if err != nil {
		return ToolOutcome{}, err
	}
	d.log.InfoContext(ctx, "tool called", slog.Bool("failed", out.IsError), slog.Duration("took", took))
	done := ToolOutcome{CallID: d.id, IsError: out.IsError, Stubbed: out.Stubbed, Result: out.Output, Took: took, ScratchWorkspace: d.scratch}
	if d.bound {
		done.SessionID = d.row.ID
	}
	return done, nil
}

// request records that the tool is to be run. For a write the session must be the one whose files were opened.
func (d *direct) request(ctx context.Context) error {
	requested := event.ActionsRequested{Calls: []event.ActionCall{{CallID: d.id, ToolName: d.Name, Args: d.Input}}}
	if !d.bound || !d.writes {
		return d.record(ctx, requested)
	}
	var err error
	d.row.Version, err = d.deps.Sessions.Record(ctx, d.row.ID, d.id, d.row.Version, requested)
	return err
}

// settle records the result, with the files that the call changed if the session has not gone on, and returns it.
func (d *direct) settle(ctx context.Context, out tool.Outcome) (tool.Outcome, error) {
	if !d.bound || d.scratch {
		return out, d.record(ctx, d.result(out, ""))
	}
	list, leftOut, err := d.files.commit(ctx)
	if len(leftOut) > 0 {
		out.Output = withNotes(out.Output, leftOut)
	}
	if err == nil && list != "" {
		if _, err = d.deps.Sessions.Record(ctx, d.row.ID, d.id, d.row.Version, d.result(out, list)); err == nil {
			return out, nil
		}
		if errors.Is(err, session.ErrStale) || bdkerr.CodeOf(err) == bdkerr.SessionBusy {
			err = errors.New("the session has gone on meanwhile")
		}
	}
	if err != nil {
		d.log.WarnContext(ctx, "files of a tool call not kept", slog.Any("error", err))
		d.scratch = true
		if d.writes {
			out = notKept(out, err)
		}
	}
	return out, d.record(ctx, d.result(out, ""))
}

func (d *direct) result(out tool.Outcome, list string) event.ActionResult {
	return event.ActionResult{CallID: d.id, ToolName: d.Name, Output: out.Output, IsError: out.IsError, Stubbed: out.Stubbed, Workspace: list}
}

// record appends to the log of the session, whatever goes on there.
func (d *direct) record(ctx context.Context, data ...event.Data) error {
	if !d.bound {
		return nil
	}
	_, err := d.deps.Sessions.Record(ctx, d.row.ID, d.id, 0, data...)
	return err
}
