package httpapi

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Bounds of the fields.
const (
	maxMessage = 256 << 10 // bytes
	maxTitle   = 200       // characters
)

// accepted is the answer to a message that was recorded.
type accepted struct {
	OK        bool   `json:"ok"`
	SessionID string `json:"sessionId"`
	TurnID    string `json:"turnId"`
	Token     string `json:"continuationToken"`
	TraceURL  string `json:"traceUrl"`
}

// start opens a session.
func (x *exchange) start() error {
	body, key, err := x.message()
	if err != nil {
		return err
	}
	in, files, err := decodeStart(body)
	if err != nil {
		return err
	}
	ctx, cancel := x.durable()
	defer cancel()
	if len(files) > 0 {
		if in.Files, err = x.store(ctx, files); err != nil {
			return err
		}
	}
	in.Agent, in.Owner, in.Key = x.slug, string(x.caller), key
	acc, err := x.agent.Start(ctx, in)
	return x.accept(acc, err)
}

// send continues a session.
func (x *exchange) send() error {
	body, key, err := x.message()
	if err != nil {
		return err
	}
	fields, err := decode(body, "continuationToken", "message")
	if err != nil {
		return err
	}
	token, err := fields.required("continuationToken")
	if err != nil {
		return err
	}
	text, err := fields.message()
	if err != nil {
		return err
	}
	ctx, cancel := x.durable()
	defer cancel()
	acc, err := x.agent.Send(ctx, session.Message{SessionID: x.row.ID, Owner: string(x.caller), Token: token, Text: text, Key: key})
	return x.accept(acc, err)
}

// message reads what start and send have in common.
func (x *exchange) message() (body []byte, key session.RequestKey, err error) {
	if _, err = x.query(); err != nil {
		return nil, key, err
	}
	if key.Name, err = x.requestKey(); err != nil {
		return nil, key, err
	}
	body, err = x.body()
	key.Body = body
	return body, key, err
}

func (x *exchange) accept(acc session.Accepted, err error) error {
	if err != nil {
		return err
	}
	x.row.ID = acc.SessionID // for the log
	if acc.Repeated {
		x.w.Header().Set("Idempotency-Replayed", "true")
	}
	x.json(http.StatusAccepted, accepted{
		OK: true, SessionID: acc.SessionID, TurnID: acc.TurnID, Token: acc.Token, TraceURL: x.base() + x.prefix(x.slug) + "/v1/session/" + acc.SessionID + "/events",
	})
	return nil
}

func decodeStart(body []byte) (in session.Start, files map[string]string, err error) {
	fields, err := decode(body, "message", "title", "dryRun", "asOf", "workspaceFiles", "purpose")
	if err != nil {
		return in, nil, err
	}
	if in.Message, err = fields.message(); err != nil {
		return in, nil, err
	}
	if in.Title, err = fields.text("title"); err != nil {
		return in, nil, err
	}
	if n := utf8.RuneCountInString(in.Title); n > maxTitle {
		return in, nil, tooLarge("field \"title\" has %d characters: the limit is %d", n, maxTitle)
	}
	if in.DryRun, err = fields.flag("dryRun"); err != nil {
		return in, nil, err
	}
	if in.AsOf, err = fields.instant("asOf"); err != nil {
		return in, nil, err
	}
	if in.Purpose, err = fields.text("purpose"); err != nil {
		return in, nil, err
	}
	if fields["purpose"] != nil && in.Purpose != "chat" && in.Purpose != "eval" {
		return in, nil, invalid("field \"purpose\" must be \"chat\" or \"eval\", not %.80q", in.Purpose)
	}
	files, err = fields.files("workspaceFiles")
	return in, files, err
}

func (o object) message() (string, error) {
	text, err := o.required("message")
	if err == nil && len(text) > maxMessage {
		err = tooLarge("field \"message\" has %d bytes: the limit is %d", len(text), maxMessage)
	}
	return text, err
}

// instant returns a field that is an ISO-8601 instant with a timezone, the zero time if it is missing.
func (o object) instant(name string) (time.Time, error) {
	text, err := o.text(name)
	if err != nil || o[name] == nil {
		return time.Time{}, err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			if t = t.UTC(); t.Year() < 1900 || t.Year() > 2199 {
				return time.Time{}, invalid("field %q is %.80q: the years 1900 to 2199 are possible", name, text)
			}
			return t, nil
		}
	}
	return time.Time{}, invalid("field %q must be an ISO-8601 instant with a timezone, such as 2026-01-31T09:00:00Z or 2026-01-31T09:00:00+02:00, not %.80q", name, text)
}

// stop ends the active turn.
func (x *exchange) stop() error {
	if _, err := x.query(); err != nil {
		return err
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	turnID := ""
	if body != nil {
		fields, err := decode(body, "turnId")
		if err != nil {
			return err
		}
		if fields["turnId"] != nil {
			if turnID, err = fields.required("turnId"); err != nil {
				return err
			}
		}
	}
	ctx, cancel := x.durable()
	defer cancel()
	stopped, err := x.agent.Stop(ctx, x.row.ID, turnID)
	if err != nil {
		return err
	}
	x.json(http.StatusOK, struct {
		OK      bool   `json:"ok"`
		Stopped bool   `json:"stopped"`          // false: no turn was active
		TurnID  string `json:"turnId,omitempty"` // the turn that was ended
	}{true, stopped != "", stopped})
	return nil
}

// listed is a session in a list.
type listed struct {
	SessionID string     `json:"sessionId"`
	Title     string     `json:"title,omitempty"`
	Status    string     `json:"status"` // running, waiting, completed or failed
	TurnID    string     `json:"turnId,omitempty"`
	Owner     string     `json:"owner"`
	ChannelID string     `json:"channelId"`
	Mode      string     `json:"mode"`
	Purpose   string     `json:"purpose"`
	DryRun    bool       `json:"dryRun,omitempty"`
	AsOf      *time.Time `json:"asOf,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

func entry(r session.Record) listed {
	l := listed{
		SessionID: r.ID, Title: r.Title, Status: r.Status(), TurnID: r.Turn.ID, Owner: r.Owner, ChannelID: r.Channel, Mode: string(r.Mode),
		Purpose: r.Purpose, DryRun: r.DryRun, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if !r.AsOf.IsZero() {
		l.AsOf = new(r.AsOf.UTC())
	}
	return l
}

// list shows a page of the caller's sessions, newest first.
func (x *exchange) list() error {
	q, err := x.query("limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := q.number("limit", 50, 1, 1000)
	if err != nil {
		return err
	}
	if cursor, ok := q["cursor"]; ok && (cursor == "" || len(cursor) > 1024 || strings.ContainsRune(cursor, 0)) {
		return session.BadCursor()
	}
	query := session.Query{Agent: x.slug, Owner: string(x.caller), Cursor: q["cursor"], Limit: int(limit)}
	if _, local := auth.Loopback()(x.r); local && x.opts.Dev {
		query.Owner, query.All = "", true
	}
	rows, next, err := x.agent.Sessions().List(x.r.Context(), query)
	if err != nil {
		return err
	}
	answer := struct {
		OK       bool     `json:"ok"`
		Sessions []listed `json:"sessions"`
		Next     string   `json:"nextCursor,omitempty"` // absent on the last page
	}{OK: true, Sessions: make([]listed, 0, len(rows)), Next: next}
	for _, r := range rows {
		answer.Sessions = append(answer.Sessions, entry(r))
	}
	x.json(http.StatusOK, answer)
	return nil
}

// spent is what a turn, or a whole session, used. Cost is absent if a price is unknown.
type spent struct {
	TurnID string      `json:"turnId,omitempty"`
	Status string      `json:"status,omitempty"`
	Model  string      `json:"model,omitempty"`
	Usage  event.Usage `json:"usage"`
	Cost   *usd        `json:"cost,omitempty"`
}

type usd struct {
	TotalUSD float64 `json:"totalUsd"`
}

func price(total *float64) *usd {
	if total == nil {
		return nil
	}
	return &usd{*total}
}

// cost shows what the session used, turn by turn.
func (x *exchange) cost() error {
	if _, err := x.query(); err != nil {
		return err
	}
	c, err := x.agent.Cost(x.r.Context(), x.row.ID)
	if err != nil {
		return err
	}
	answer := struct {
		OK        bool    `json:"ok"`
		SessionID string  `json:"sessionId"`
		Turns     []spent `json:"turns"`
		spent
	}{OK: true, SessionID: x.row.ID, Turns: make([]spent, 0, len(c.Turns)), spent: spent{Usage: c.Usage, Cost: price(c.TotalUSD)}}
	for _, t := range c.Turns {
		answer.Turns = append(answer.Turns, spent{TurnID: t.TurnID, Status: t.Status, Model: t.Model, Usage: t.Usage, Cost: price(t.TotalUSD)})
	}
	x.json(http.StatusOK, answer)
	return nil
}
