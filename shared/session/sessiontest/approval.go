package sessiontest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func approvalCases() []testCase {
	return []testCase{
		{"calls that are asked for are in the row and in the log", asks},
		{"a decision is made once", decides},
		{"a decision wakes a parked turn for its own holder", wakes},
		{"a decision does not end its turn's writer", decidesBeside},
		{"a turn whose call was decided is not parked", parksLate},
		{"who may decide is asked about what would be decided", may},
		{"of fifty that decide one does, and a parked turn is woken once", fiftyDecide},
		{"of fifty that disagree one wins", fiftyDisagree},
		{"a call that nobody decides about in time is expired", expires},
		{"what ends a turn cancels its approvals", cancels},
		{"decisions outlive their turn", outlive},
		{"decisions about calls that are done leave the row", leaves},
		{"a claimed turn keeps its approvals", claimKeeps},
		{"what is recorded beside turns is no part of them", records},
		{"a token names its session", tokens},
	}
}

// ask asks for calls with the given ids, which expire in an hour.
func (b *bench) ask(w *session.Writer, ids ...string) {
	b.Helper()
	var asked []event.ApprovalRequested
	for _, id := range ids {
		asked = append(asked, event.ApprovalRequested{CallID: id, ToolName: "t", Args: []byte(`{}`), ExpiresAt: b.clock.Now().Add(time.Hour)})
	}
	var open []string
	for _, a := range w.Row().Turn.Approvals {
		open = append(open, a.CallID)
	}
	events, err := w.Ask(b.Context(), open, asked...)
	b.must(err)
	b.diff("events", len(ids), len(events))
}

// park parks the turn of a new session, which waits for calls with the given ids.
func (b *bench) park(s *session.Store, ids ...string) session.Accepted {
	b.Helper()
	acc, err := s.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m"})
	b.must(err)
	w := b.open(s, acc)
	b.ask(w, ids...)
	parked, err := w.Park(b.Context())
	b.must(err)
	b.diff("parked", true, parked)
	return acc
}

func decision(acc session.Accepted, call, what string) session.Decision {
	return session.Decision{SessionID: acc.SessionID, CallID: call, Decision: what, By: bob, Note: "why nöt"}
}

func (b *bench) resolved(id string) []event.ApprovalResolved {
	b.Helper()
	var all []event.ApprovalResolved
	for _, e := range b.log(id) {
		if e.Type == event.TypeApprovalResolved {
			d, err := event.Decode[event.ApprovalResolved](e)
			b.must(err)
			all = append(all, d)
		}
	}
	return all
}

func asks(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	b.ask(w, "a", "b")
	_, err := w.Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.ask(w, "c")
	want := []session.Approval{
		{CallID: "a", ToolName: "t", Index: 2, ExpiresAt: b.clock.Now().Add(time.Hour)},
		{CallID: "b", ToolName: "t", Index: 3, ExpiresAt: b.clock.Now().Add(time.Hour)},
		{CallID: "c", ToolName: "t", Index: 5, ExpiresAt: b.clock.Now().Add(time.Hour)},
	}
	b.diff("stored", want, b.turn(acc.SessionID).Approvals)
	b.diff("seen by the writer", want, w.Row().Turn.Approvals)
	log := b.log(acc.SessionID)
	for _, a := range want {
		d, err := event.Decode[event.ApprovalRequested](log[a.Index])
		b.must(err)
		b.diff("event", event.ApprovalRequested{CallID: a.CallID, ToolName: "t", Args: []byte(`{}`), ExpiresAt: a.ExpiresAt}, d)
		b.diff("turn", acc.TurnID, log[a.Index].TurnID)
	}
}

func decides(b *bench) {
	acc := b.park(b.store, "a", "b")
	got, err := b.store.Decide(b.Context(), decision(acc, "b", event.Deny))
	b.must(err)
	want := session.Approval{
		CallID: "b", ToolName: "t", Index: 3, ExpiresAt: b.clock.Now().Add(time.Hour), Decision: event.Deny, By: bob, Note: "why nöt",
	}
	b.diff("decided", session.Decided{Approval: want, TurnID: acc.TurnID, Woken: true, Waited: []string{"a", "b"}}, got)
	b.diff("stored", want, b.turn(acc.SessionID).Approvals[1])
	again := decision(acc, "b", event.Deny)
	again.By, again.Note = alice, ""
	got, err = b.store.Decide(b.Context(), again)
	b.must(err)
	b.diff("again", session.Decided{Approval: want, TurnID: acc.TurnID, Again: true, Waited: []string{"b"}}, got)
	_, err = b.store.Decide(b.Context(), decision(acc, "b", event.Approve))
	b.wantCode(err, bdkerr.Decided)
	_, err = b.store.Decide(b.Context(), decision(acc, "x", event.Approve))
	b.wantCode(err, bdkerr.NotFound)
	_, err = b.store.Decide(b.Context(), session.Decision{SessionID: "nobody", CallID: "a"})
	b.wantCode(err, bdkerr.NotFound)
	b.diff("events", []event.ApprovalResolved{{CallID: "b", Decision: event.Deny, By: bob, Note: "why nöt"}}, b.resolved(acc.SessionID))
	b.diff("pending", "a", b.turn(acc.SessionID).Pending()[0].CallID)
}

func wakes(b *bench) {
	here, there := b.holder("here"), b.holder("there")
	acc := b.park(here, "a", "b")
	b.diff("holder while parked", "", b.turn(acc.SessionID).Holder)
	for i, call := range []string{"a", "b"} {
		got, err := there.Decide(b.Context(), decision(acc, call, event.Approve))
		b.must(err)
		b.diff("woken", i == 0, got.Woken)
		turn := b.turn(acc.SessionID)
		b.diff("turn", session.Turn{ID: acc.TurnID, Holder: "there", Until: b.clock.Now().Add(time.Minute), Approvals: turn.Approvals}, turn)
	}
	_, err := b.open(there, acc).Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
	b.diff("turn at the end", session.Turn{}, b.turn(acc.SessionID))
}

func decidesBeside(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	b.ask(w, "a")
	_, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	events, err := w.Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.diff("index", int64(4), events[0].Index)
	b.ask(w, "b") // the row was changed, too
	b.diff("seen by the writer", b.turn(acc.SessionID).Approvals, w.Row().Turn.Approvals)
	b.diff("decision", event.Approve, w.Row().Turn.Approvals[0].Decision)
}

func parksLate(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	b.ask(w, "a")
	got, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	b.diff("woken", false, got.Woken)
	parked, err := w.Park(b.Context())
	b.must(err)
	b.diff("parked", false, parked)
	b.diff("decision", event.Approve, w.Row().Turn.Approvals[0].Decision)
	_, err = w.Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.ask(w, "b")
	parked, err = w.Park(b.Context())
	b.must(err)
	b.diff("parked", true, parked)
	_, err = w.Append(b.Context(), event.SkillLoaded{})
	b.wantErr(err, session.ErrFenced)
	_, err = w.Park(b.Context())
	b.wantErr(err, session.ErrFenced)
}

func may(b *bench) {
	acc := b.park(b.store, "a")
	refusal := bdkerr.New(bdkerr.Forbidden, "no")
	var asked []string
	in := decision(acc, "a", event.Approve)
	in.May = func(a session.Approval) error {
		asked = append(asked, a.CallID+" "+a.ToolName+" "+a.By)
		return refusal
	}
	_, err := b.store.Decide(b.Context(), in)
	b.wantCode(err, bdkerr.Forbidden)
	b.diff("parked", true, b.turn(acc.SessionID).Parked)
	_, err = b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	_, err = b.store.Decide(b.Context(), in)
	b.wantCode(err, bdkerr.Forbidden)
	b.finish(acc)
	_, err = b.store.Decide(b.Context(), in)
	b.wantCode(err, bdkerr.Forbidden)
	b.diff("asked about", []string{"a t ", "a t " + bob, "a  " + bob}, asked)
}

func fiftyDecide(b *bench) {
	acc := b.park(b.store, "a")
	stores := []*session.Store{b.holder("here"), b.holder("there")}
	var first, woken atomic.Int32
	b.must(parallel(50, func(i int) error {
		got, err := stores[i%2].Decide(b.Context(), decision(acc, "a", event.Approve))
		if !got.Again {
			first.Add(1)
		}
		if got.Woken {
			woken.Add(1)
		}
		return err
	}))
	b.diff("decisions", int32(1), first.Load())
	b.diff("woken", int32(1), woken.Load())
	b.diff("events", 1, len(b.resolved(acc.SessionID)))
}

func fiftyDisagree(b *bench) {
	acc := b.park(b.store, "a")
	var yes, no atomic.Int32
	b.must(parallel(50, func(i int) error {
		what, count := event.Approve, &yes
		if i%2 == 0 {
			what, count = event.Deny, &no
		}
		_, err := b.store.Decide(b.Context(), decision(acc, "a", what))
		switch {
		case err == nil:
			count.Add(1)
		case bdkerr.CodeOf(err) == bdkerr.Decided:
			return nil
		}
		return err
	}))
	b.diff("answers", fmt.Sprint(25), fmt.Sprint(yes.Load()+no.Load()))
	if yes.Load() > 0 && no.Load() > 0 {
		b.Errorf("%d approved, %d denied", yes.Load(), no.Load())
	}
	b.diff("events", 1, len(b.resolved(acc.SessionID)))
}

func expires(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	b.ask(w, "a", "b")
	_, err := b.store.Decide(b.Context(), decision(acc, "b", event.Approve))
	b.must(err)
	b.clock.move(time.Hour)
	_, err = b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.wantCode(err, bdkerr.Decided) // although nobody has recorded it yet
	events, err := w.Expire(b.Context(), "a", "b", "x")
	b.must(err)
	b.diff("events", 1, len(events))
	var got []string
	for _, a := range w.Row().Turn.Approvals {
		got = append(got, a.CallID, a.Decision)
	}
	b.diff("decisions", []string{"a", event.Expired, "b", event.Approve}, got)
	events, err = w.Expire(b.Context(), "a", "b")
	b.must(err)
	b.diff("events the second time", 0, len(events))
	_, err = b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.wantCode(err, bdkerr.Decided)
	b.diff("events", []event.ApprovalResolved{
		{CallID: "b", Decision: event.Approve, By: bob, Note: "why nöt"}, {CallID: "a", Decision: event.Expired},
	}, b.resolved(acc.SessionID))
}

func cancels(b *bench) {
	for name, end := range map[string]func(session.Accepted) error{
		"stop": func(acc session.Accepted) error {
			_, err := b.store.Stop(b.Context(), acc.SessionID, "")
			return err
		},
		"message": func(acc session.Accepted) error {
			_, err := b.send(acc, alice, acc.Token)
			return err
		},
		"the end of the turn": func(acc session.Accepted) error {
			_, err := b.open(b.store, acc).Finish(b.Context(), event.TurnFailed{}, event.SessionWaiting{})
			return err
		},
	} {
		acc := b.park(b.store, "a", "b")
		_, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
		b.must(err)
		b.must(end(acc))
		b.diff(name, []event.ApprovalResolved{
			{CallID: "a", Decision: event.Approve, By: bob, Note: "why nöt"}, {CallID: "b", Decision: event.Cancelled},
		}, b.resolved(acc.SessionID))
		b.diff(name+": approvals", 0, len(b.turn(acc.SessionID).Approvals))
		_, err = b.store.Decide(b.Context(), decision(acc, "b", event.Approve))
		b.wantCode(err, bdkerr.Decided)
		for i, e := range b.log(acc.SessionID) {
			if e.Type == event.TypeApprovalResolved && i < 4 {
				b.Errorf("%s: %s stands at %d", name, e.Type, i)
			}
		}
	}
}

func outlive(b *bench) {
	acc := b.park(b.store, "a")
	_, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	b.finish(acc)
	got, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	b.diff("again", session.Decided{
		Approval: session.Approval{CallID: "a", Index: 3, Decision: event.Approve, By: bob, Note: "why nöt"}, Again: true,
	}, got)
	_, err = b.store.Decide(b.Context(), decision(acc, "a", event.Deny))
	b.wantCode(err, bdkerr.Decided)
	_, err = b.store.Decide(b.Context(), decision(acc, "x", event.Deny))
	b.wantCode(err, bdkerr.NotFound)
}

func leaves(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	b.ask(w, "a", "b")
	for _, call := range []string{"a", "b"} {
		_, err := b.store.Decide(b.Context(), decision(acc, call, event.Approve))
		b.must(err)
	}
	asked := event.ApprovalRequested{CallID: "c", ToolName: "t", ExpiresAt: b.clock.Now().Add(time.Hour)}
	_, err := w.Ask(b.Context(), []string{"b"}, asked)
	b.must(err)
	var ids []string
	for _, a := range b.turn(acc.SessionID).Approvals {
		ids = append(ids, a.CallID+" "+a.Decision)
	}
	b.diff("in the row", []string{"b approve", "c "}, ids)
	got, err := b.store.Decide(b.Context(), decision(acc, "a", event.Approve))
	b.must(err)
	b.diff("again", true, got.Again)
	_, err = b.store.Decide(b.Context(), decision(acc, "a", event.Deny))
	b.wantCode(err, bdkerr.Decided)
}

func claimKeeps(b *bench) {
	acc := b.park(b.store, "a")
	here := b.holder("here")
	b.must(b.claim(here, acc))
	turn := b.turn(acc.SessionID)
	b.diff("parked", false, turn.Parked)
	b.diff("approvals", 1, len(turn.Approvals))
	b.diff("holder", "here", turn.Holder)
}

func records(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	record := func(version int64, data ...event.Data) (int64, error) {
		return b.store.Record(b.Context(), acc.SessionID, "tool_1", version, data...)
	}
	version := func() int64 {
		row, err := b.store.Get(b.Context(), acc.SessionID)
		b.must(err)
		return row.Version
	}
	_, err := record(version(), event.SkillLoaded{})
	b.wantCode(err, bdkerr.SessionBusy)
	_, err = record(0, event.SkillLoaded{}, event.SkillLoaded{})
	b.must(err)
	_, err = w.Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
	read := version()
	var kept atomic.Int64
	b.must(parallel(8, func(i int) error {
		_, err := record(read*int64(i%2), event.SkillLoaded{})
		if i%2 == 1 && err == nil {
			kept.Add(1)
		} else if i%2 == 1 && errors.Is(err, session.ErrStale) {
			return nil
		}
		return err
	}))
	b.diff("recorded for one version", int64(1), kept.Load())
	b.diff("version", read+1, version())
	next, err := record(read+1, event.SkillLoaded{})
	b.must(err)
	b.diff("version", []int64{read + 2, read + 2}, []int64{next, version()})
	log := b.log(acc.SessionID)
	b.diff("length of the log", 12, len(log))
	b.diff("turn", "tool_1", log[2].TurnID)
	if _, err := b.send(acc, alice, acc.Token); err != nil {
		b.Fatal(err)
	}
	_, err = b.store.Record(b.Context(), "nobody", "tool_1", 1, event.SkillLoaded{})
	b.wantCode(err, bdkerr.NotFound)
}

func tokens(b *bench) {
	acc := b.start()
	b.diff("session", acc.SessionID, session.SessionOf(acc.Token))
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.diff("current", []bool{true, false, false}, []bool{row.Current(acc.Token), row.Current(acc.Token + "x"), row.Current("")})
	second, err := b.send(acc, alice, acc.Token)
	b.must(err)
	b.diff("session", acc.SessionID, session.SessionOf(second.Token))
	for _, token := range []string{"", "http:", "http:a", "http:.a", "http:a.", "a.b", "slack:a.b"} {
		b.diff(token, "", session.SessionOf(token))
	}
	if _, err := b.store.Get(b.Context(), session.SessionOf("http:x.y")); !errors.Is(err, bdkerr.New(bdkerr.NotFound, "")) && bdkerr.CodeOf(err) != bdkerr.NotFound {
		b.Errorf("got %v", err)
	}
}
