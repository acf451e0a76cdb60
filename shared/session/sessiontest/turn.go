package sessiontest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func acceptCases() []testCase {
	return []testCase{
		{"a start records the session and its message", start},
		{"sixteen starts at once make sixteen sessions", sixteenStarts},
		{"a follow-up needs the newest token", rotatingToken},
		{"a follow-up needs the owner", foreignOwner},
		{"a task session takes no follow-up", taskSession},
		{"a follow-up ends the running turn first", interrupt},
		{"a message from inside ends no turn and leaves the token", inside},
		{"of eight messages from inside one is accepted", raceInside},
		{"of two follow-ups with one token one is accepted", raceForToken},
		{"a follow-up finds its place behind side events", sideEventsWhileIdle},
		{"a key repeats the answer for the same request only", keys},
		{"a key is free again after a day", keyIsFreed},
		{"sixteen identical starts with a key make one session", raceForKey},
		{"sixteen identical follow-ups with a key make one turn", raceForSendKey},
	}
}

func start(b *bench) {
	asOf := time.Date(2024, 1, 1, 1, 0, 0, 0, time.FixedZone("east", 3600))
	acc, err := b.store.Start(b.Context(), session.Start{
		Agent: agent, Owner: alice, Message: "m", Mode: session.Task, Purpose: "eval", Title: "t", DryRun: true, AsOf: asOf, Files: "f",
	})
	b.must(err)
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	now := b.clock.Now()
	b.diff("row", session.Record{
		ID: acc.SessionID, Version: 1, Agent: agent, Owner: alice, Channel: "http", Mode: session.Task, Purpose: "eval", Title: "t", DryRun: true,
		AsOf: asOf.UTC(), Files: "f", CreatedAt: now, UpdatedAt: now, TokenHash: row.TokenHash, Turn: session.Turn{ID: acc.TurnID}, Next: 2,
	}, row)
	if acc.Token == "" || row.TokenHash == acc.Token {
		b.Error("the token is stored as it is")
	}
	log := b.log(acc.SessionID)
	b.diff("log", []event.Type{event.TypeSessionStarted, event.TypeMessageReceived}, types(log))
	started, err := event.Decode[event.SessionStarted](log[0])
	b.must(err)
	utc := asOf.UTC()
	b.diff("session.started", event.SessionStarted{Agent: agent, ChannelID: "http", Mode: "task", Purpose: "eval", Title: "t", DryRun: true, AsOf: &utc}, started)
	b.diff("turn of the session event", "", log[0].TurnID)
	b.diff("turn of the message", acc.TurnID, log[1].TurnID)
	b.diff("time", now, log[1].At)
}

func sixteenStarts(b *bench) {
	var mu sync.Mutex
	seen := make(map[string]bool)
	b.must(parallel(16, func(int) error {
		acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "x"})
		mu.Lock()
		defer mu.Unlock()
		seen[acc.SessionID], seen[acc.TurnID], seen[acc.Token] = true, true, true
		return err
	}))
	b.diff("different ids and tokens", 48, len(seen))
	b.diff("sessions", 16, len(b.list(session.Query{Agent: agent, All: true, Limit: 10}, nil)))
}

func (b *bench) send(acc session.Accepted, owner, token string) (session.Accepted, error) {
	return b.store.Send(b.Context(), session.Message{SessionID: acc.SessionID, Owner: owner, Token: token, Text: "again"})
}

func rotatingToken(b *bench) {
	first := b.start()
	b.finish(first)
	second, err := b.send(first, alice, first.Token)
	b.must(err)
	if second.Token == first.Token || second.TurnID == first.TurnID || second.SessionID != first.SessionID {
		b.Fatalf("the answer did not move on: %+v after %+v", second, first)
	}
	length := len(b.log(first.SessionID))
	for _, token := range []string{first.Token, "", "http:", second.Token + "x"} {
		_, err = b.send(first, alice, token)
		b.wantCode(err, bdkerr.StaleToken)
	}
	b.diff("length of the log after refusals", length, len(b.log(first.SessionID)))
	_, err = b.send(first, alice, second.Token)
	b.must(err)
}

func foreignOwner(b *bench) {
	acc := b.start()
	_, err := b.send(acc, bob, acc.Token)
	b.wantCode(err, bdkerr.Forbidden)
	_, err = b.send(session.Accepted{SessionID: "nobody"}, bob, acc.Token)
	b.wantCode(err, bdkerr.NotFound)
	b.diff("log", 2, len(b.log(acc.SessionID)))
}

func taskSession(b *bench) {
	acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m", Mode: session.Task})
	b.must(err)
	_, err = b.send(acc, alice, acc.Token)
	b.wantCode(err, bdkerr.SessionClosed)
	_, err = b.open(b.store, acc).Finish(b.Context(), event.TurnCompleted{}, event.SessionCompleted{Result: "r"})
	b.must(err)
	_, err = b.send(acc, alice, acc.Token)
	b.wantCode(err, bdkerr.SessionClosed)
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.diff("how it ended", "completed", row.Ended)
}

func interrupt(b *bench) {
	first := b.start()
	_, err := b.open(b.store, first).Append(b.Context(), event.TurnStarted{})
	b.must(err)
	second, err := b.send(first, alice, first.Token)
	b.must(err)
	b.diff("interrupted turn", first.TurnID, second.Interrupted)
	log := b.log(first.SessionID)
	b.diff("log", []event.Type{
		event.TypeSessionStarted, event.TypeMessageReceived, event.TypeTurnStarted, event.TypeTurnFailed, event.TypeMessageReceived,
	}, types(log))
	failed, err := event.Decode[event.TurnFailed](log[3])
	b.must(err)
	b.diff("status", event.StatusCancelled, failed.Status)
	b.diff("turns", []string{first.TurnID, second.TurnID}, []string{log[3].TurnID, log[4].TurnID})
	b.finish(second)
}

func inside(b *bench) {
	first := b.start()
	note := session.Message{SessionID: first.SessionID, Owner: alice, Text: "note", Inside: true, Key: session.RequestKey{Name: "n"}}
	_, err := b.store.Send(b.Context(), note)
	b.wantCode(err, bdkerr.SessionBusy)
	b.finish(first)
	_, err = b.store.Send(b.Context(), session.Message{SessionID: first.SessionID, Owner: bob, Text: "note", Inside: true})
	b.wantCode(err, bdkerr.Forbidden)
	noted, err := b.store.Send(b.Context(), note)
	b.must(err)
	b.diff("token", "", noted.Token)
	again, err := b.store.Send(b.Context(), note) // also while its turn runs
	b.must(err)
	b.diff("again", []any{noted.TurnID, true}, []any{again.TurnID, again.Repeated})
	b.finish(noted)
	next, err := b.send(first, alice, first.Token)
	b.must(err)
	b.finish(next)
	task, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m", Mode: session.Task})
	b.must(err)
	_, err = b.store.Send(b.Context(), session.Message{SessionID: task.SessionID, Owner: alice, Text: "note", Inside: true})
	b.wantCode(err, bdkerr.SessionClosed)
}

func raceInside(b *bench) {
	acc := b.start()
	b.finish(acc)
	var won atomic.Int32
	b.must(parallel(8, func(int) error {
		_, err := b.store.Send(b.Context(), session.Message{SessionID: acc.SessionID, Owner: alice, Text: "note", Inside: true})
		switch {
		case err == nil:
			won.Add(1)
			return nil
		case bdkerr.CodeOf(err) == bdkerr.SessionBusy:
			return nil
		}
		return err
	}))
	b.diff("accepted", int32(1), won.Load())
}

func raceForToken(b *bench) {
	acc := b.start()
	var won atomic.Int32
	b.must(parallel(8, func(int) error {
		_, err := b.send(acc, alice, acc.Token)
		switch {
		case err == nil:
			won.Add(1)
			return nil
		case bdkerr.CodeOf(err) == bdkerr.StaleToken:
			return nil
		}
		return err
	}))
	b.diff("accepted", int32(1), won.Load())
	b.diff("length of the log", 4, len(b.log(acc.SessionID)))
}

func sideEventsWhileIdle(b *bench) {
	acc := b.start()
	b.finish(acc)
	for range 3 {
		_, err := b.side(acc.SessionID, 0, event.ArtifactTagged{})
		b.must(err)
	}
	acc, err := b.send(acc, alice, acc.Token)
	b.must(err)
	b.finish(acc)
	b.diff("length of the log", 4+3+3, len(b.log(acc.SessionID)))
}

func keys(b *bench) {
	begin := func(owner, agent, body string) (session.Accepted, error) {
		return b.store.Start(b.Context(), session.Start{Agent: agent, Owner: owner, Message: "m", Key: session.RequestKey{Name: "k", Body: []byte(body)}})
	}
	first, err := begin(alice, agent, "body")
	b.must(err)
	again, err := begin(alice, agent, "body")
	b.must(err)
	b.diff("marked as repeated", true, again.Repeated)
	again.Repeated = false
	b.diff("answer", first, again)
	_, err = begin(alice, agent, "other")
	b.wantCode(err, bdkerr.KeyReused)
	for _, who := range [][2]string{{bob, agent}, {alice, "other"}} { // the key is another one for others
		other, err := begin(who[0], who[1], "body")
		b.must(err)
		if other.SessionID == first.SessionID {
			b.Fatal("a key was shared between callers or agents")
		}
	}

	follow := func(token, body string) (session.Accepted, error) {
		return b.store.Send(b.Context(), session.Message{
			SessionID: first.SessionID, Owner: alice, Token: token, Text: "again", Key: session.RequestKey{Name: "k", Body: []byte(body)},
		})
	}
	second, err := follow(first.Token, "follow")
	b.must(err)
	repeated, err := follow(first.Token, "follow") // with the token that is stale by now
	b.must(err)
	repeated.Repeated = false
	b.diff("answer to the follow-up", second, repeated)
	_, err = follow(second.Token, "other")
	b.wantCode(err, bdkerr.KeyReused)
	b.diff("length of the log", 4, len(b.log(first.SessionID)))
}

func keyIsFreed(b *bench) {
	in := session.Start{Agent: agent, Owner: alice, Message: "m", Key: session.RequestKey{Name: "k", Body: []byte("one")}}
	first, err := b.store.Start(b.Context(), in)
	b.must(err)
	b.clock.move(24 * time.Hour)
	in.Key.Body = []byte("two")
	second, err := b.store.Start(b.Context(), in)
	b.must(err)
	if second.Repeated || first.SessionID == second.SessionID {
		b.Fatal("the key was not free")
	}
}

// oneAnswer runs request sixteen times at once and checks that all got the same answer, once for the first time.
func (b *bench) oneAnswer(request func() (session.Accepted, error)) session.Accepted {
	b.Helper()
	answers := make([]session.Accepted, 16)
	b.must(parallel(16, func(i int) error {
		var err error
		answers[i], err = request()
		return err
	}))
	first := 0
	for i := range answers {
		if !answers[i].Repeated {
			first++
		}
		answers[i].Repeated = false
		b.diff(fmt.Sprint("answer ", i), answers[0], answers[i])
	}
	b.diff("first answers", 1, first)
	return answers[0]
}

func raceForKey(b *bench) {
	b.oneAnswer(func() (session.Accepted, error) {
		return b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m", Key: session.RequestKey{Name: "k"}})
	})
	b.diff("sessions", 1, len(b.list(session.Query{Agent: agent, All: true, Limit: 10}, nil)))
}

func raceForSendKey(b *bench) {
	acc := b.start()
	b.finish(acc)
	b.oneAnswer(func() (session.Accepted, error) {
		return b.store.Send(b.Context(), session.Message{
			SessionID: acc.SessionID, Owner: alice, Token: acc.Token, Text: "again", Key: session.RequestKey{Name: "k"},
		})
	})
	b.diff("length of the log", 5, len(b.log(acc.SessionID)))
}

func turnCases() []testCase {
	return []testCase{
		{"stop ends the active turn and nothing else", stop},
		{"stop of a task session ends it", stopTask},
		{"nothing of a turn follows its fence", fence},
		{"a turn fenced between open and replay does not append", fencedBeforeReplay},
		{"a writer without a replay does not append", noReplay},
		{"a writer that skips the log appends behind it", skips},
		{"a session whose data is lost is stopped, continued and ended", lostData},
		{"a turn that is finished takes no more", finished},
		{"of eight writers of one turn one goes on", eightWriters},
		{"a writer passes any number of side events", manySideEvents},
		{"a lease is renewed by its holder", renew},
		{"a lease that was taken over is lost for its old holder", takeOver},
		{"of many that claim a turn one gets it", raceForClaim},
	}
}

func stop(b *bench) {
	acc := b.start()
	_, err := b.store.Stop(b.Context(), acc.SessionID, "turn_other")
	b.wantCode(err, bdkerr.TurnMismatch)
	b.diff("length of the log", 2, len(b.log(acc.SessionID)))
	stopped, err := b.store.Stop(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	b.diff("stopped turn", acc.TurnID, stopped)
	b.diff("log", []event.Type{event.TypeSessionStarted, event.TypeMessageReceived, event.TypeTurnFailed, event.TypeSessionWaiting}, types(b.log(acc.SessionID)))
	stopped, err = b.store.Stop(b.Context(), acc.SessionID, "")
	b.must(err)
	b.diff("stopped turn of an idle session", "", stopped)
	_, err = b.store.Stop(b.Context(), acc.SessionID, acc.TurnID)
	b.wantCode(err, bdkerr.TurnMismatch)
	_, err = b.store.Stop(b.Context(), "nobody", "")
	b.wantCode(err, bdkerr.NotFound)
	b.diff("length of the log", 4, len(b.log(acc.SessionID)))
	acc, err = b.send(acc, alice, acc.Token)
	b.must(err)
	b.diff("interrupted turn", "", acc.Interrupted)
}

func stopTask(b *bench) {
	acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m", Mode: session.Task})
	b.must(err)
	_, err = b.store.Stop(b.Context(), acc.SessionID, "")
	b.must(err)
	b.diff("log", []event.Type{event.TypeSessionStarted, event.TypeMessageReceived, event.TypeTurnFailed, event.TypeSessionFailed}, types(b.log(acc.SessionID)))
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.diff("how it ended", "failed", row.Ended)
}

// fence stops or interrupts turns while their writers append as fast as they can.
func fence(b *bench) {
	acc := b.start()
	for round := range 6 {
		w := b.open(b.store, acc)
		appended := make(chan int, 1)
		running := make(chan bool)
		go func() {
			var err error
			n := 0
			for ; err == nil; n++ {
				if _, err = w.Append(b.Context(), event.SkillLoaded{}); n == 3 {
					close(running)
				}
			}
			if !errors.Is(err, session.ErrFenced) {
				b.Errorf("the writer ended with %v", err)
			}
			appended <- n - 1
		}()
		<-running
		old := acc
		var err error
		if round%2 == 0 {
			acc, err = b.send(acc, alice, acc.Token)
			b.must(err)
			b.diff("interrupted turn", old.TurnID, acc.Interrupted)
		} else {
			_, err = b.store.Stop(b.Context(), acc.SessionID, acc.TurnID)
			b.must(err)
			acc, err = b.send(acc, alice, acc.Token)
			b.must(err)
		}
		b.noneAfterFence(old, <-appended)
		_, err = w.Append(b.Context(), event.SkillLoaded{})
		b.wantErr(err, session.ErrFenced)
		_, err = w.Finish(b.Context(), event.TurnCompleted{})
		b.wantErr(err, session.ErrFenced)
	}
}

func (b *bench) noneAfterFence(turn session.Accepted, appended int) {
	b.Helper()
	loaded, ended := 0, false
	for _, e := range b.log(turn.SessionID) {
		if e.TurnID != turn.TurnID {
			continue
		}
		if ended {
			b.Fatalf("event %d (%s) follows the fence of its turn", e.Index, e.Type)
		}
		ended = e.Type == event.TypeTurnFailed
		if e.Type == event.TypeSkillLoaded {
			loaded++
		}
	}
	b.diff("events of the turn", appended, loaded)
	b.diff("fence", true, ended)
}

func fencedBeforeReplay(b *bench) {
	acc := b.start()
	w, err := b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	skipper, err := b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	_, err = b.send(acc, alice, acc.Token)
	b.must(err)
	b.wantErr(w.Replay(b.Context(), 0, func(event.Event) error { return nil }), session.ErrFenced)
	b.wantErr(skipper.Skip(b.Context()), session.ErrFenced)
	_, err = w.Append(b.Context(), event.SkillLoaded{})
	b.wantErr(err, session.ErrFenced)
	_, err = b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.wantErr(err, session.ErrFenced)
	_, err = b.store.Open(b.Context(), "nobody", acc.TurnID)
	b.wantCode(err, bdkerr.NotFound)
}

func noReplay(b *bench) {
	acc := b.start()
	w, err := b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	if _, err := w.Append(b.Context(), event.SkillLoaded{}); err == nil {
		b.Error("a writer appended before it had replayed the log")
	}
	b.wantErr(w.Replay(b.Context(), 0, func(event.Event) error { return errGone }), errGone)
	if _, err := w.Append(b.Context(), event.SkillLoaded{}); err == nil {
		b.Error("a writer appended after a replay that was cut off")
	}
	var got []event.Event
	b.must(w.Replay(b.Context(), 1, func(e event.Event) error { got = append(got, e); return nil }))
	b.diff("replayed", []event.Type{event.TypeMessageReceived}, types(got))
	events, err := w.Append(b.Context(), event.SkillLoaded{}, event.SessionWaiting{})
	b.must(err)
	b.diff("appended", b.log(acc.SessionID)[2:], events)
	b.diff("turns", []string{acc.TurnID, ""}, []string{events[0].TurnID, events[1].TurnID})
	events, err = w.Append(b.Context())
	b.must(err)
	b.diff("appended without data", 0, len(events))
}

func skips(b *bench) {
	acc := b.start()
	_, err := b.side(acc.SessionID, 0, event.ArtifactTagged{})
	b.must(err)
	w, err := b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
	b.must(err)
	b.must(w.Skip(b.Context()))
	events, err := w.Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.diff("index", int64(3), events[0].Index)
}

// lostData does what must be possible with a session when nobody can read what was said in it.
func lostData(b *bench) {
	if b.h.Lose == nil {
		b.Skip("skipped: this medium keeps the log in one place")
	}
	var noise strings.Builder
	for noise.Len() < 64<<10 {
		noise.WriteString(rand.Text())
	}
	failed, waiting := event.Data(event.TurnFailed{Message: "x"}), event.Data(event.SessionWaiting{})
	for _, c := range []struct {
		name string
		idle bool // when the data is lost
		do   func(session.Accepted, *session.Writer) error
		want []event.Type // behind the large events
	}{
		{"stopped", false, func(acc session.Accepted, _ *session.Writer) error {
			_, err := b.store.Stop(b.Context(), acc.SessionID, "")
			return err
		}, []event.Type{event.TypeTurnFailed, event.TypeSessionWaiting}},
		{"interrupted", false, func(acc session.Accepted, _ *session.Writer) error {
			_, err := b.send(acc, alice, acc.Token)
			return err
		}, []event.Type{event.TypeTurnFailed, event.TypeMessageReceived}},
		{"continued", true, func(acc session.Accepted, _ *session.Writer) error {
			_, err := b.send(acc, alice, acc.Token)
			return err
		}, []event.Type{event.TypeMessageReceived}},
		{"failed", false, func(acc session.Accepted, _ *session.Writer) error {
			w, err := b.store.Open(b.Context(), acc.SessionID, acc.TurnID)
			b.must(err)
			b.must(w.Skip(b.Context()))
			_, err = w.Finish(b.Context(), failed, waiting)
			return err
		}, []event.Type{event.TypeTurnFailed, event.TypeSessionWaiting}},
		{"ended by its writer", false, func(_ session.Accepted, w *session.Writer) error {
			_, err := w.Finish(b.Context(), failed, waiting)
			return err
		}, []event.Type{event.TypeTurnFailed, event.TypeSessionWaiting}},
	} {
		acc := b.start()
		w := b.open(b.store, acc)
		if c.idle {
			b.finish(acc)
		}
		var at int64
		for range 3 {
			var err error
			at, err = b.side(acc.SessionID, at, event.ArtifactTagged{Title: noise.String()})
			b.must(err)
		}
		b.h.Lose(b.T, b.driver)
		if events, err := b.driver.Events(b.Context(), acc.SessionID, at, 1); err == nil {
			b.Fatalf("%s: nothing is lost: got %d events", c.name, len(events))
		}
		if err := c.do(acc, w); err != nil {
			b.Fatalf("%s: %v", c.name, err)
		}
		b.diff(c.name, c.want, types(b.readFrom(b.store, acc.SessionID, at+1)))
	}
}

func finished(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	if _, err := w.Finish(b.Context()); err == nil {
		b.Fatal("a turn was finished without an event")
	}
	b.clock.move(time.Second)
	_, err := w.Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.diff("turn", session.Turn{}, row.Turn)
	b.diff("next", int64(4), row.Next)
	b.diff("updated", b.clock.Now(), row.UpdatedAt)
	_, err = w.Append(b.Context(), event.SkillLoaded{})
	b.wantErr(err, session.ErrFenced)
	_, err = w.Finish(b.Context(), event.TurnCompleted{})
	b.wantErr(err, session.ErrFenced)
	b.diff("length of the log", 4, len(b.log(acc.SessionID)))
}

func eightWriters(b *bench) {
	acc := b.start()
	writers := make([]*session.Writer, 8)
	for i := range writers {
		writers[i] = b.open(b.store, acc)
	}
	var alive atomic.Int32
	b.must(parallel(8, func(i int) error {
		for range 50 {
			_, err := writers[i].Append(b.Context(), event.SkillLoaded{})
			if errors.Is(err, session.ErrFenced) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		alive.Add(1)
		return nil
	}))
	b.diff("writers that went on", int32(1), alive.Load())
	b.diff("length of the log", 52, len(b.log(acc.SessionID)))
}

func manySideEvents(b *bench) {
	acc := b.start()
	w := b.open(b.store, acc)
	at := int64(0)
	for range 700 {
		var err error
		at, err = b.side(acc.SessionID, at, event.ArtifactTagged{})
		b.must(err)
	}
	events, err := w.Append(b.Context(), event.SkillLoaded{})
	b.must(err)
	b.diff("index", int64(702), events[0].Index)
	_, err = b.side(acc.SessionID, at, event.ArtifactTagged{})
	b.must(err)
	_, err = w.Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
	b.diff("length of the log", 706, len(b.log(acc.SessionID)))
}

// holder returns a store of a process with a name, over the same data.
func (b *bench) holder(name string) *session.Store {
	b.Helper()
	return session.New(b.h.Other(b.T, b.driver), session.Options{Clock: b.clock, Holder: name, Lease: time.Minute})
}

func (b *bench) turn(id string) session.Turn {
	b.Helper()
	row, err := b.driver.Get(b.Context(), id)
	b.must(err)
	return row.Turn
}

// claim claims the active turn of a session for a store, as its row is now.
func (b *bench) claim(s *session.Store, acc session.Accepted) error {
	b.Helper()
	row, err := s.Get(b.Context(), acc.SessionID)
	b.must(err)
	return s.Claim(b.Context(), row)
}

func renew(b *bench) {
	here := b.holder("here")
	acc, err := here.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m"})
	b.must(err)
	b.diff("lease of the one who accepted", session.Turn{ID: acc.TurnID, Holder: "here", Until: b.clock.Now().Add(time.Minute)}, b.turn(acc.SessionID))
	w := b.open(here, acc)
	for range 5 {
		b.clock.move(40 * time.Second)
		b.must(b.claim(here, acc))
		b.diff("lease", session.Turn{ID: acc.TurnID, Holder: "here", Until: b.clock.Now().Add(time.Minute)}, b.turn(acc.SessionID))
		_, err = w.Append(b.Context(), event.SkillLoaded{})
		b.must(err)
	}
	_, err = w.Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
	b.wantErr(b.claim(here, acc), session.ErrFenced)
	b.diff("lease at the end", session.Turn{}, b.turn(acc.SessionID))
}

func takeOver(b *bench) {
	here, there := b.holder("here"), b.holder("there")
	acc, err := here.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "m"})
	b.must(err)
	b.clock.move(2 * time.Minute)
	b.must(b.claim(there, acc))
	b.diff("holder", "there", b.turn(acc.SessionID).Holder)
	_, err = b.open(there, acc).Finish(b.Context(), event.TurnCompleted{}, event.SessionWaiting{})
	b.must(err)
}

func raceForClaim(b *bench) {
	acc := b.start()
	row, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	here := b.open(b.holder("p0"), acc)
	var won atomic.Int32
	b.must(parallel(8, func(i int) error {
		err := b.holder(fmt.Sprint("p", i)).Claim(b.Context(), row)
		if errors.Is(err, session.ErrFenced) {
			return nil
		}
		won.Add(1)
		return err
	}))
	b.diff("claims", int32(1), won.Load())
	turn := b.turn(acc.SessionID)
	b.diff("claimed turn", session.Turn{ID: acc.TurnID, Holder: turn.Holder, Until: b.clock.Now().Add(time.Minute)}, turn)
	if turn.Holder != "p0" {
		_, err := here.Finish(b.Context(), event.TurnCompleted{}) // run by somebody else by now
		b.wantErr(err, session.ErrFenced)
	}
	_, err = b.store.Stop(b.Context(), acc.SessionID, "")
	b.must(err)
	row, err = b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.wantErr(b.holder("p0").Claim(b.Context(), row), session.ErrFenced) // nothing is left to run
}
