package dynamosession_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/session"
)

// TestRequestsAndUnitsOfEachOperation fixes what each operation asks of the service and is billed for.
func TestRequestsAndUnitsOfEachOperation(t *testing.T) {
	t.Parallel()
	meter := &dynamotest.Transport{Meter: true}
	d := open(t, dynamotest.Start(t), meter)
	s := session.New(d, session.Options{})
	ctx := t.Context()

	var acc session.Accepted
	var w *session.Writer
	key := session.RequestKey{Name: "k"}
	const reply = "Pull request 42 looks fine: all checks have passed and one reviewer has approved it."
	usage := &event.Usage{InputTokens: 512, OutputTokens: 24}
	appends := func(data ...event.Data) func() error {
		return func() error {
			_, err := w.Append(ctx, data...)
			return err
		}
	}
	finish := func() error {
		done := event.MessageCompleted{Text: reply, FinishReason: "stop", Usage: usage, UsageOf: "scripted:rules"}
		_, err := w.Finish(ctx, done, event.TurnCompleted{Result: reply, Usage: usage}, event.SessionWaiting{})
		return err
	}
	begin := func() (err error) {
		if w, err = s.Open(ctx, acc.SessionID, acc.TurnID); err != nil {
			return err
		}
		snap, err := s.Snapshot(ctx, acc.SessionID)
		if err != nil {
			return err
		}
		return w.Replay(ctx, snap.Next, func(event.Event) error { return nil })
	}
	send := func(key session.RequestKey) func() error {
		return func() (err error) {
			acc, err = s.Send(ctx, session.Message{SessionID: acc.SessionID, Owner: backend, Token: acc.Token, Text: "And 43?", Key: key})
			return err
		}
	}
	for _, step := range []struct {
		name string
		want string // requests, and units they are billed for
		do   func() error
	}{
		{"accept a first message", "[TransactWriteItems:1] [index write:2 write:6]", func() (err error) {
			acc, err = s.Start(ctx, session.Start{Agent: "pr-approver", Owner: backend, Message: "Please look at pull request 42."})
			return err
		}},
		{"begin its turn", "[GetItem:2 Query:2] [read:4]", begin},
		{"turn.started", "[PutItem:1] [write:1]", appends(event.TurnStarted{Model: "scripted:rules"})},
		{"message.appended", "[PutItem:1] [write:1]", appends(event.MessageAppended{Text: reply})},
		{"three events at once", "[TransactWriteItems:1] [write:6]", appends(event.SkillLoaded{}, event.SkillLoaded{}, event.SkillLoaded{})},
		{"finish the turn", "[TransactWriteItems:1] [index write:4 write:8]", finish},
		{"keep a snapshot", "[UpdateItem:1] [write:1]", func() error {
			return s.PutSnapshot(ctx, acc.SessionID, session.Snapshot{Next: 10, Data: make([]byte, 5000)})
		}},
		{"accept a follow-up", "[GetItem:1 TransactWriteItems:1] [index write:4 read:1 write:4]", send(session.RequestKey{})},
		{"begin its turn with a snapshot", "[GetItem:2 Query:2] [read:4]", begin},
		{"claim the turn", "[UpdateItem:1] [index write:2 write:1]", func() error { return s.Claim(ctx, w.Row()) }},
		{"interrupt it, with a key", "[GetItem:2 Query:1 TransactWriteItems:1] [index write:4 read:3 write:8]", send(key)},
		{"stop", "[GetItem:1 Query:1 TransactWriteItems:1] [index write:4 read:2 write:6]", func() error {
			_, err := s.Stop(ctx, acc.SessionID, "")
			return err
		}},
		{"poll at the end of the log", "[Query:1] [read:1]", func() error {
			c := s.Cursor(acc.SessionID, 1000)
			defer c.Close()
			_, err := c.Read(ctx)
			return err
		}},
		{"list an owner's sessions", "[Query:4] [index read:2 read:0]", func() error {
			_, _, err := s.List(ctx, session.Query{Agent: "pr-approver", Owner: backend, Limit: 20})
			return err
		}},
		{"list the active sessions", "[Query:4] [index read:2 read:0]", func() error {
			_, _, err := s.List(ctx, session.Query{Agent: "pr-approver", Active: true, Limit: 20})
			return err
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		wantCounts(t, step.name, step.want, meter)
	}
}

const backend = "iam:arn:aws:sts::123456789012:assumed-role/backend/session"
