package sessiontest

import (
	"errors"
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func commitCases() []testCase {
	return []testCase{
		{"a created session is got back whole", createAndGet},
		{"an unknown session is not found", unknownSession},
		{"creating a session twice is stale", createTwice},
		{"a change of a row that changed is stale", staleRow},
		{"a taken index conflicts and changes nothing", conflict},
		{"a batch overlapping the log conflicts and changes nothing", overlap},
		{"the same batch again succeeds and changes nothing", ownRetry},
		{"a taken key fails before anything else and changes nothing", keyFirst},
		{"a key that has expired is free", keyExpired},
		{"eight side writers and a turn append without gaps", contention},
		{"snapshots never go backwards", snapshots},
	}
}

func createAndGet(b *bench) {
	want := b.create("s1")
	got, err := b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("row", want, got)

	// Every optional field empty.
	bare := session.Record{ID: "s2", Agent: agent, Owner: alice, CreatedAt: b.clock.Now(), UpdatedAt: b.clock.Now()}
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s2", Events: b.events("s2", 0, event.SessionStarted{}), Row: &bare}))
	bare.Version = 1
	got, err = b.driver.Get(b.Context(), "s2")
	b.must(err)
	b.diff("bare row", bare, got)

	// And every field changed, without an event.
	next := want
	next.Title, next.Turn, next.ExpiresAt, next.Next, next.Ended, next.TokenHash = "", session.Turn{}, time.Time{}, 9, "", "other"
	next.UpdatedAt, next.AsOf, next.Files, next.DryRun = next.UpdatedAt.Add(time.Millisecond), time.Time{}, "", false
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", Row: &next}))
	next.Version = 2
	got, err = b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("changed row", next, got)
}

func unknownSession(b *bench) {
	_, err := b.driver.Get(b.Context(), "nobody")
	b.wantErr(err, session.ErrNotFound)
	b.wantErr(b.driver.Commit(b.Context(), session.Batch{SessionID: "nobody", Events: b.events("nobody", 0, event.SkillLoaded{})}), session.ErrNotFound)
	b.wantErr(b.driver.PutSnapshot(b.Context(), "nobody", session.Snapshot{Next: 1}), session.ErrNotFound)
	_, err = b.driver.Key(b.Context(), "nobody")
	b.wantErr(err, session.ErrNotFound)
	events, err := b.driver.Events(b.Context(), "nobody", 0, 10)
	b.must(err)
	b.diff("number of events", 0, len(events))
	snap, err := b.driver.Snapshot(b.Context(), "nobody")
	b.must(err)
	b.diff("snapshot", session.Snapshot{}, snap)
	row := b.row("nobody")
	row.Version = 3
	b.wantErr(b.driver.Commit(b.Context(), session.Batch{SessionID: "nobody", Row: &row}), session.ErrStale)
}

func createTwice(b *bench) {
	want := b.create("s1")
	row := b.row("s1")
	row.Owner = bob
	b.wantErr(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", Events: b.events("s1", 0, event.SkillLoaded{}), Row: &row}), session.ErrStale)
	got, err := b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("row", want, got)
	b.diff("log", []event.Type{event.TypeSessionStarted}, types(b.log("s1")))
}

func staleRow(b *bench) {
	first := b.create("s1")
	second := first
	second.Title = "second"
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", At: 1, Events: b.events("s1", 1, event.SkillLoaded{}), Row: &second}))
	first.Title = "first"
	for _, version := range []int64{0, 1, 3} {
		first.Version = version
		b.wantErr(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", At: 2, Events: b.events("s1", 2, event.SkillLoaded{}), Row: &first}), session.ErrStale)
	}
	got, err := b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("title", "second", got.Title)
	b.diff("length of the log", 2, len(b.log("s1")))
}

func conflict(b *bench) {
	row := b.create("s1")
	there := b.log("s1")[0]
	row.Title = "changed"
	key := session.Key{Name: "k", ExpiresAt: b.clock.Now().Add(time.Hour)}
	err := b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", Events: b.events("s1", 0, event.SkillLoaded{}), Row: &row, Key: &key})
	var conflict *session.ConflictError
	if !errors.As(err, &conflict) {
		b.Fatalf("got error %v, want a conflict", err)
	}
	there.Data, conflict.Event.Data = nil, nil
	b.diff("event in the error", there, conflict.Event)
	got, err := b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("title", "tïtle", got.Title)
	_, err = b.driver.Key(b.Context(), "k")
	b.wantErr(err, session.ErrNotFound)
}

func overlap(b *bench) {
	b.create("s1")
	_, err := b.side("s1", 1, event.SkillLoaded{Name: "one"})
	b.must(err)
	mine := b.events("s1", 1, event.SkillLoaded{}, event.SkillLoaded{}, event.SkillLoaded{})
	var conflict *session.ConflictError
	if err := b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", At: 1, Events: mine}); !errors.As(err, &conflict) || conflict.Event.Index != 1 {
		b.Fatalf("got error %v, want a conflict at 1", err)
	}
	b.diff("length of the log", 2, len(b.log("s1")))
}

func ownRetry(b *bench) {
	row := b.row("s1")
	key := session.Key{Name: "k", BodyHash: "h", Answer: []byte("answer"), ExpiresAt: b.clock.Now().Add(time.Hour)}
	whole := session.Batch{SessionID: "s1", Events: b.events("s1", 0, event.SessionStarted{}, event.MessageReceived{}), Row: &row, Key: &key}
	events := session.Batch{SessionID: "s1", At: 2, Events: b.events("s1", 2, event.SkillLoaded{}, event.SkillLoaded{})}
	for _, batch := range []session.Batch{whole, events} {
		b.must(b.driver.Commit(b.Context(), batch))
		log := b.log("s1")
		for range 3 {
			b.must(b.driver.Commit(b.Context(), batch))
		}
		b.diff("log", log, b.log("s1"))
	}
	got, err := b.driver.Get(b.Context(), "s1")
	b.must(err)
	b.diff("version", int64(1), got.Version)
	stored, err := b.driver.Key(b.Context(), "k")
	b.must(err)
	b.diff("key", key, stored)
}

func keyFirst(b *bench) {
	row := b.row("s1")
	key := session.Key{Name: "k", BodyHash: "h", Answer: []byte{0, 0xff}, ExpiresAt: b.clock.Now().Add(time.Hour)}
	b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: "s1", Events: b.events("s1", 0, event.SessionStarted{}), Row: &row, Key: &key}))
	stale := b.row("s1") // version 0, index 0 taken, key taken
	again := key
	again.Answer = []byte("other")
	for _, id := range []string{"s1", "s2"} {
		err := b.driver.Commit(b.Context(), session.Batch{SessionID: id, Events: b.events(id, 0, event.SkillLoaded{}), Row: &stale, Key: &again})
		var taken *session.KeyError
		if !errors.As(err, &taken) {
			b.Fatalf("%s: got error %v, want the key to be taken", id, err)
		}
		b.diff("key in the error", key, taken.Key)
	}
	_, err := b.driver.Get(b.Context(), "s2")
	b.wantErr(err, session.ErrNotFound)
}

func keyExpired(b *bench) {
	for i := range 2 {
		id := fmt.Sprint("s", i)
		row := b.row(id)
		key := session.Key{Name: "k", BodyHash: id, Answer: []byte{}, ExpiresAt: b.clock.Now().Add(time.Hour)}
		b.must(b.driver.Commit(b.Context(), session.Batch{SessionID: id, Events: b.events(id, 0, event.SessionStarted{}), Row: &row, Key: &key}))
		b.clock.move(time.Hour)
	}
	key, err := b.driver.Key(b.Context(), "k")
	b.must(err)
	b.diff("body hash", "s1", key.BodyHash)
}

func contention(b *bench) {
	const writers, each = 8, 50
	acc := b.start()
	b.must(parallel(writers+1, func(i int) error {
		if i == writers {
			w := b.open(b.store, acc)
			for n := range each {
				if _, err := w.Append(b.Context(), event.StepRestarted{Step: n}, event.StepRestarted{Step: n}); err != nil {
					return err
				}
			}
			return nil
		}
		at := int64(0)
		for n := range each {
			var err error
			if at, err = b.side(acc.SessionID, at, event.SkillLoaded{Name: fmt.Sprint(i, "-", n)}); err != nil {
				return err
			}
		}
		return nil
	}))
	log := b.log(acc.SessionID)
	b.diff("length of the log", 2+(writers+2)*each, len(log))
	next := make(map[string]int)
	for i, e := range log[2:] {
		if e.Type == event.TypeStepRestarted {
			d, err := event.Decode[event.StepRestarted](e)
			b.must(err)
			b.diff("step of the turn", next[""]/2, d.Step)
			if next[""]%2 == 1 {
				b.diff("the event before the second of a batch", event.TypeStepRestarted, log[2+i-1].Type)
			}
			next[""]++
			continue
		}
		d, err := event.Decode[event.SkillLoaded](e)
		b.must(err)
		var writer, n int
		_, err = fmt.Sscanf(d.Name, "%d-%d", &writer, &n)
		b.must(err)
		b.diff("order of a writer's events", next[fmt.Sprint(writer)], n)
		next[fmt.Sprint(writer)]++
	}
}

func snapshots(b *bench) {
	b.create("s1")
	put := func(next int64, data string) {
		b.Helper()
		b.must(b.store.PutSnapshot(b.Context(), "s1", session.Snapshot{Next: next, Data: []byte(data)}))
	}
	want := func(next int64, data string) {
		b.Helper()
		got, err := b.store.Snapshot(b.Context(), "s1")
		b.must(err)
		b.diff("snapshot", session.Snapshot{Next: next, Data: []byte(data)}, got)
	}
	put(5, "five")
	want(5, "five")
	put(3, "three")
	want(5, "five")
	put(5, "five again")
	want(5, "five again")
	put(9, "\x00\xff")
	want(9, "\x00\xff")
}
