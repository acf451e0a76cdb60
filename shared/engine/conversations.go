package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// conversations are the sessions of the agent as one call has them.
type conversations struct {
	*Engine

	call *bdk.Call
}

var _ bdk.Sessions = (*conversations)(nil)

// Send implements [bdk.Sessions].
func (c *conversations) Send(ctx context.Context, m bdk.Message) (bdk.Sent, error) {
	switch {
	case c.call.Session.DryRun:
		return bdk.Sent{}, bdk.ErrDryRun
	case strings.TrimSpace(m.Text) == "":
		return bdk.Sent{}, bdkerr.New(bdkerr.InvalidRequest, "the message has no Text")
	case m.As == "":
		m.As = c.call.Session.Owner
	}
	body := fmt.Appendf(nil, "%q", []string{m.Text, m.Token, m.Title, m.As, fmt.Sprint(m.Task)})
	sum := sha256.Sum256(body)
	key := session.RequestKey{Name: c.call.ID + "/" + hex.EncodeToString(sum[:]), Body: body}
	var acc session.Accepted
	var err error
	if m.Token == "" {
		mode := session.Chat
		if m.Task {
			mode = session.Task
		}
		acc, err = c.Start(ctx, session.Start{Owner: m.As, Message: m.Text, Title: m.Title, Mode: mode, Key: key})
	} else {
		acc, err = c.resume(ctx, m, key)
	}
	return bdk.Sent{SessionID: acc.SessionID, TurnID: acc.TurnID, Token: acc.Token}, err
}

func (c *conversations) resume(ctx context.Context, m bdk.Message, key session.RequestKey) (session.Accepted, error) {
	id := session.SessionOf(m.Token)
	switch id {
	case "":
		return session.Accepted{}, bdkerr.New(bdkerr.BadToken, "the Token %.80q is no continuation token", m.Token)
	case c.call.Session.ID:
		return session.Accepted{}, bdkerr.New(bdkerr.InvalidRequest, "a call cannot send to its own session: that would stop its turn")
	}
	if _, err := c.Get(ctx, id); err != nil {
		return session.Accepted{}, err
	}
	return c.Engine.Send(ctx, session.Message{SessionID: id, Owner: m.As, Token: m.Token, Text: m.Text, Key: key})
}

// Get implements [bdk.Sessions].
func (c *conversations) Get(ctx context.Context, id string) (bdk.SessionState, error) {
	row, err := c.deps.Sessions.Get(ctx, id)
	if bdkerr.CodeOf(err) == bdkerr.NotFound || err == nil && row.Agent != c.project.Slug {
		return bdk.SessionState{}, fmt.Errorf("session %.80q: %w", id, bdk.ErrNotFound)
	}
	if err != nil {
		return bdk.SessionState{}, err
	}
	return bdk.SessionState{ID: row.ID, Title: row.Title, Channel: row.Channel, Owner: row.Owner, Status: row.Status(), TurnID: row.Turn.ID}, nil
}

// Wait implements [bdk.Sessions].
func (c *conversations) Wait(ctx context.Context, id, turnID string) (bdk.TurnResult, error) {
	if _, err := c.Get(ctx, id); err != nil {
		return bdk.TurnResult{}, err
	}
	cursor := c.deps.Sessions.Cursor(id, 0)
	defer cursor.Close()
	for {
		events, err := cursor.Read(ctx)
		if err != nil {
			return bdk.TurnResult{}, err
		}
		for _, e := range events {
			if e.TurnID != turnID {
				continue
			}
			if result, ended, err := turnResult(e); ended || err != nil {
				return result, err
			}
		}
		if len(events) > 0 {
			continue
		}
		if err := cursor.Wait(ctx); err != nil {
			return bdk.TurnResult{}, fmt.Errorf("waiting for turn %.80q: %w", turnID, err)
		}
	}
}

// turnResult returns how a turn ended, if an event says so.
func turnResult(e event.Event) (r bdk.TurnResult, ended bool, err error) {
	switch e.Type {
	case event.TypeTurnCompleted:
		err = with(e, func(d event.TurnCompleted) { r = bdk.TurnResult{Status: "finished", Result: d.Result} })
	case event.TypeTurnFailed:
		err = with(e, func(d event.TurnFailed) {
			r = bdk.TurnResult{Status: "failed", Error: d.Message}
			if d.Status == event.StatusCancelled {
				r.Status = event.StatusCancelled
			}
		})
	default:
		return r, false, nil
	}
	return r, true, err
}
