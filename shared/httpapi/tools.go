package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/session"
)

// listTools shows the server tools.
func (x *exchange) listTools() error {
	q, err := x.query("session", "continuationToken")
	if err != nil {
		return err
	}
	of, err := x.bound(q)
	if err != nil {
		return err
	}
	type card struct {
		Name   string `json:"name"`
		Title  string `json:"title,omitempty"`
		Source string `json:"source,omitempty"`
	}
	connected, faults := x.agent.ConnectedTools(x.r.Context(), of)
	answer := struct {
		OK               bool                     `json:"ok"`
		Tools            []card                   `json:"tools"`            // in name order
		ConnectionErrors []engine.ConnectionFault `json:"connectionErrors"` // connections that cannot tell their tools, or not all
	}{OK: true, Tools: []card{}, ConnectionErrors: append([]engine.ConnectionFault{}, faults...)}
	all := append(slices.Clip(x.agent.CallableTools()), connected...)
	slices.SortFunc(all, func(a, b bdk.NamedTool) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range all {
		answer.Tools = append(answer.Tools, card{n.Name, n.Tool.Spec().Title, n.Source})
	}
	x.json(http.StatusOK, answer)
	return nil
}

// bound checks what a listing is bound to, as a call of a tool is bound, and returns whose tools are listed.
func (x *exchange) bound(q params) (bdk.SessionInfo, error) {
	of := bdk.SessionInfo{Agent: x.slug, Channel: "http", Mode: string(session.Chat), Purpose: "chat", Owner: string(x.caller)}
	id, byID := q["session"]
	token, byToken := q["continuationToken"]
	channel, key, ok := strings.Cut(token, ":")
	switch {
	case byID && byToken:
		return of, bdkerr.New(bdkerr.BadToken, "give session or continuationToken, not both")
	case byToken && (!ok || channel == "" || key == ""):
		return of, bdkerr.New(bdkerr.BadToken, "query parameter \"continuationToken\" is %.80q: it must be <channelId>:<key>", token)
	case byToken:
		of.Channel, of.ID, id = channel, key, session.SessionOf(token)
	}
	if id == "" && !byID {
		return of, nil
	}
	row, ok, err := x.session(id)
	switch {
	case err != nil:
		return of, err
	case !ok && byToken:
		return of, nil
	case !ok:
		return of, bdkerr.New(bdkerr.NoSession, "no session %.80q", id)
	case row.Owner != string(x.caller):
		return of, notYours()
	case byToken && !row.Current(token):
		return of, bdkerr.New(bdkerr.StaleToken, "the continuation token is not the current one: use the token of the last accepted message")
	}
	of.ID, of.Title, of.Channel, of.Mode, of.Purpose, of.DryRun, of.AsOf = row.ID, row.Title, row.Channel, string(row.Mode), row.Purpose, row.DryRun, row.AsOf
	return of, nil
}

// showTool describes one tool: a server tool, or one that runs as a script beside the session's files.
func (x *exchange) showTool() error {
	if _, err := x.query(); err != nil {
		return err
	}
	all := x.agent.CallableTools()
	for _, n := range x.agent.Project().Tools {
		if n.Tool.Script() != "" {
			all = append(slices.Clip(all), n)
		}
	}
	name := x.r.PathValue("name")
	if strings.Contains(name, "__") { // of a connection
		connected, _ := x.agent.ConnectedTools(x.r.Context(), bdk.SessionInfo{Agent: x.slug, Channel: "http", Owner: string(x.caller)})
		all = append(slices.Clip(all), connected...)
	}
	i := slices.IndexFunc(all, func(n bdk.NamedTool) bool { return n.Name == name })
	if i < 0 {
		return &unknownToolError{bdkerr.New(bdkerr.UnknownTool, "there is no tool %.80q", name), names(all)}
	}
	x.json(http.StatusOK, struct {
		OK bool `json:"ok"`
		toolInfo
	}{true, describeTool(all[i])})
	return nil
}

// outcome is the answer to a call of a tool.
type outcome struct {
	OK               bool            `json:"ok"`
	ToolName         string          `json:"toolName"`
	CallID           string          `json:"callId"`
	IsError          bool            `json:"isError"` // the tool failed: the result says why, as a model would read it
	Result           json.RawMessage `json:"result"`  // a string for text, any JSON otherwise
	DurationMs       int64           `json:"durationMs"`
	Stubbed          bool            `json:"stubbed,omitempty"` // a dry-run session answered without running the tool
	SessionID        string          `json:"sessionId,omitempty"`
	ScratchWorkspace bool            `json:"scratchWorkspace,omitempty"` // the call did not get the session's files
}

// callTool runs a server tool without a model. It goes on when the client goes away: what a tool changes must not stop half-way.
func (x *exchange) callTool() error {
	if _, err := x.query(); err != nil {
		return err
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	call, err := decodeCall(body)
	if err != nil {
		return err
	}
	call.Name, call.Caller = x.r.PathValue("name"), string(x.caller)
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // there is nothing to read any more; not every host has deadlines
	ctx, cancel := x.lasting()
	defer cancel()
	out, err := x.agent.CallTool(ctx, call)
	if bdkerr.CodeOf(err) == bdkerr.UnknownTool {
		err = &unknownToolError{err, names(x.agent.CallableTools())}
	}
	if err != nil {
		return err
	}
	x.row.ID = out.SessionID // for the log
	x.json(http.StatusOK, outcome{
		OK: true, ToolName: call.Name, CallID: out.CallID, IsError: out.IsError, Result: out.Result, DurationMs: out.Took.Milliseconds(),
		Stubbed: out.Stubbed, SessionID: out.SessionID, ScratchWorkspace: out.ScratchWorkspace,
	})
	return nil
}

// decodeCall reads the body of a call, which may be empty. The input is for the engine to check.
func decodeCall(body []byte) (c engine.ToolCall, err error) {
	if body == nil {
		return c, nil
	}
	fields, err := decode(body, "input", "sessionId", "continuationToken")
	if err != nil {
		return c, err
	}
	c.Input = fields["input"]
	if fields["sessionId"] != nil {
		if c.SessionID, err = fields.required("sessionId"); err != nil {
			return c, err
		}
	}
	if fields["continuationToken"] != nil {
		if c.Token, err = fields.text("continuationToken"); err == nil && c.Token == "" {
			err = bdkerr.New(bdkerr.BadToken, "field \"continuationToken\" is empty: leave it out for a call without a session")
		}
	}
	return c, err
}

// unknownToolError is the error for a name that no tool has; the answer lists the names there are.
type unknownToolError struct {
	error

	names []string
}

func (u *unknownToolError) Unwrap() error { return u.error }

// available returns the names, nil if u is nil.
func (u *unknownToolError) available() []string {
	if u == nil {
		return nil
	}
	return u.names
}

func names(tools []bdk.NamedTool) []string {
	all := make([]string, 0, len(tools))
	for _, n := range tools {
		all = append(all, n.Name)
	}
	slices.Sort(all)
	return all
}
