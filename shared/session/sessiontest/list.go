package sessiontest

import (
	"fmt"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

func listCases() []testCase {
	return []testCase{
		{"a list holds the sessions of its owner and agent only", ownership},
		{"a list is in the order of update, newest first", updateOrder},
		{"sessions updated in the same millisecond are all listed once", sameMillisecond},
		{"paging while sessions are updated lists none twice and misses none that stood still", pagingDuringUpdates},
		{"active sessions are listed while their turn runs", active},
		{"a cursor of another list or of nobody is refused", forgedCursor},
		{"a list of nothing is empty", emptyList},
		{"a query that is not complete is refused", badQuery},
	}
}

// startAs accepts a session for another agent or owner.
func (b *bench) startAs(agent, owner string) session.Accepted {
	b.Helper()
	acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: owner, Message: "hello"})
	b.must(err)
	return acc
}

// list returns the ids of all pages of q. between runs after each page.
func (b *bench) list(q session.Query, between func(page int)) []string {
	b.Helper()
	var ids []string
	for page := range 10_000 {
		rows, next, err := b.store.List(b.Context(), q)
		b.must(err)
		if len(rows) > q.Limit {
			b.Fatalf("a page of %d rows with limit %d", len(rows), q.Limit)
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if next == "" {
			return ids
		}
		q.Cursor = next
		if between != nil {
			between(page)
		}
	}
	b.Fatal("the list does not end")
	return nil
}

func sorted(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return ids
}

func ownership(b *bench) {
	want := make(map[string][]string)
	for i := range 30 {
		who := [][2]string{{agent, alice}, {agent, bob}, {"other", alice}, {agent, alice + "2"}, {agent, ""}}[i%4]
		acc := b.startAs(who[0], who[1])
		want[who[0]+who[1]] = append(want[who[0]+who[1]], acc.SessionID)
		want[who[0]] = append(want[who[0]], acc.SessionID)
		b.clock.move(time.Millisecond)
	}
	for _, limit := range []int{1, 2, 7, 8, 1000} {
		for _, owner := range []string{alice, bob, alice + "2"} {
			got := b.list(session.Query{Agent: agent, Owner: owner, Limit: limit}, nil)
			b.diff("sessions of "+owner, sorted(want[agent+owner]), sorted(got))
		}
		b.diff("all", sorted(want[agent]), sorted(b.list(session.Query{Agent: agent, All: true, Limit: limit}, nil)))
		b.diff("all of the other agent", sorted(want["other"]), sorted(b.list(session.Query{Agent: "other", All: true, Limit: limit}, nil)))
	}
}

func updateOrder(b *bench) {
	var accs []session.Accepted
	for range 5 {
		accs = append(accs, b.start())
		b.clock.move(time.Millisecond)
	}
	for _, i := range []int{3, 0, 4} { // the end of a turn is an update
		b.finish(accs[i])
		b.clock.move(time.Millisecond)
	}
	b.must(b.claim(b.store, accs[1])) // a renewal is none
	want := []string{accs[4].SessionID, accs[0].SessionID, accs[3].SessionID, accs[2].SessionID, accs[1].SessionID}
	for _, limit := range []int{1, 2, 3, 5, 6} {
		b.diff("sessions of the owner", want, b.list(session.Query{Agent: agent, Owner: alice, Limit: limit}, nil))
		b.diff("all sessions", want, b.list(session.Query{Agent: agent, All: true, Limit: limit}, nil))
	}
	rows, _, err := b.store.List(b.Context(), session.Query{Agent: agent, Owner: alice, Limit: 1})
	b.must(err)
	got, err := b.store.Get(b.Context(), accs[4].SessionID)
	b.must(err)
	b.diff("listed row", got, rows[0])
}

func sameMillisecond(b *bench) {
	var want []string
	for range 25 {
		want = append(want, b.start().SessionID)
	}
	for _, limit := range []int{1, 4, 25} {
		b.diff("sessions", sorted(want), sorted(b.list(session.Query{Agent: agent, Owner: alice, Limit: limit}, nil)))
	}
}

func pagingDuringUpdates(b *bench) {
	accs := make(map[string]session.Accepted)
	var ids []string
	for range 40 {
		acc := b.start()
		accs[acc.SessionID] = acc
		ids = append(ids, acc.SessionID)
		b.clock.move(time.Millisecond)
	}
	touched := make(map[string]bool)
	for _, q := range []session.Query{{Agent: agent, Owner: alice, Limit: 3}, {Agent: agent, All: true, Limit: 3}} {
		got := b.list(q, func(page int) {
			for _, i := range []int{page, len(ids) - 1 - page} { // one that is ahead, one that was seen
				if id := ids[i]; !touched[id] {
					b.finish(accs[id])
					touched[id] = true
				}
			}
			b.start() // and new ones
			b.clock.move(time.Millisecond)
		})
		seen := make(map[string]int)
		for _, id := range got {
			seen[id]++
		}
		for _, id := range ids {
			if seen[id] > 1 || seen[id] == 0 && !touched[id] {
				b.Errorf("session %s (updated while paging: %t) was listed %d times", id, touched[id], seen[id])
			}
		}
		if len(touched) == 0 || len(touched) == len(ids) {
			b.Fatalf("%d sessions were updated: the case proves nothing", len(touched))
		}
	}
}

func active(b *bench) {
	q := session.Query{Agent: agent, Active: true, Limit: 2}
	var accs []session.Accepted
	for range 7 {
		accs = append(accs, b.start())
	}
	b.startAs("other", alice)
	running := func(not ...int) []string {
		var ids []string
		for i, acc := range accs {
			if !slices.Contains(not, i) {
				ids = append(ids, acc.SessionID)
			}
		}
		return sorted(ids)
	}
	b.diff("all run", running(), sorted(b.list(q, nil)))
	b.finish(accs[2])
	_, err := b.store.Stop(b.Context(), accs[5].SessionID, "")
	b.must(err)
	b.diff("two have ended", running(2, 5), sorted(b.list(q, nil)))
	_, err = b.store.Send(b.Context(), session.Message{SessionID: accs[2].SessionID, Owner: alice, Token: accs[2].Token, Text: "again"})
	b.must(err)
	b.diff("one runs again", running(5), sorted(b.list(q, nil)))
}

func forgedCursor(b *bench) {
	for range 3 {
		b.start()
		b.startAs(agent, bob)
	}
	_, good, err := b.store.List(b.Context(), session.Query{Agent: agent, Owner: alice, Limit: 1})
	b.must(err)
	mine := session.Query{Agent: agent, Owner: alice, Limit: 1}
	forged := []string{
		"x", "0", " ", good + "A", good[1:], good[:len(good)-1], "\x00", "🌍", "../..",
		session.EncodeCursor(mine, "x"), session.EncodeCursor(mine, "1."), session.EncodeCursor(mine, "99999999999999999999.1"),
		session.EncodeCursor(mine, "1.2.3"), session.EncodeCursor(mine, ""),
	}
	for _, cursor := range forged {
		mine.Cursor = cursor
		_, _, err := b.store.List(b.Context(), mine)
		b.wantCode(err, bdkerr.InvalidRequest)
	}
	for _, q := range []session.Query{{Agent: agent, Owner: bob}, {Agent: "other", Owner: alice}, {Agent: agent, All: true}, {Agent: agent, Active: true}} {
		q.Limit, q.Cursor = 1, good
		_, _, err := b.store.List(b.Context(), q)
		b.wantCode(err, bdkerr.InvalidRequest)
	}
	mine.Cursor = good
	_, _, err = b.store.List(b.Context(), mine)
	b.must(err)
}

func emptyList(b *bench) {
	for _, q := range []session.Query{{Owner: alice}, {All: true}, {Active: true}} {
		q.Agent, q.Limit = agent, 10
		rows, next, err := b.store.List(b.Context(), q)
		b.must(err)
		b.diff("rows", 0, len(rows))
		b.diff("cursor", "", next)
	}
}

func badQuery(b *bench) {
	for _, q := range []session.Query{
		{},
		{Agent: agent, Limit: 1},
		{Owner: alice, Limit: 1},
		{Agent: agent, Owner: alice, All: true, Limit: 1},
		{Agent: agent, All: true},
		{Agent: agent, All: true, Limit: -1},
		{Agent: agent, All: true, Limit: 1001},
	} {
		_, _, err := b.store.List(b.Context(), q)
		b.wantCode(err, bdkerr.InvalidRequest)
	}
}

func expireCases() []testCase {
	return []testCase{
		{"a session ends its time after its last turn", expiry},
		{"a session whose turn runs does not expire", busyDoesNotExpire},
		{"expiry removes what belongs to a session and leaves its neighbours", expiryIsComplete},
		{"expiry is done in slices", expirySlices},
		{"sessions without an end stay", noExpiry},
	}
}

func (b *bench) withTTL() {
	b.store = session.New(b.driver, session.Options{Clock: b.clock, TTL: time.Hour})
}

// expire removes what has expired where the store does not do so by itself.
func (b *bench) expire(limit int) int {
	b.Helper()
	n, err := b.store.Expire(b.Context(), limit)
	b.must(err)
	return n
}

func expiry(b *bench) {
	b.withTTL()
	acc := b.start()
	b.clock.move(time.Minute)
	b.finish(acc)
	b.clock.move(time.Hour - time.Millisecond)
	b.diff("removed too early", 0, b.expire(10))
	_, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
	b.clock.move(time.Millisecond)
	for range 2 { // before and after the removal
		_, err = b.store.Get(b.Context(), acc.SessionID)
		b.wantCode(err, bdkerr.NotFound)
		_, err = b.store.Send(b.Context(), session.Message{SessionID: acc.SessionID, Owner: alice, Token: acc.Token, Text: "again"})
		b.wantCode(err, bdkerr.NotFound)
		_, err = b.store.Stop(b.Context(), acc.SessionID, "")
		b.wantCode(err, bdkerr.NotFound)
		b.diff("listed", 0, len(b.list(session.Query{Agent: agent, Owner: alice, Limit: 10}, nil)))
		b.expire(10)
	}
}

func busyDoesNotExpire(b *bench) {
	b.withTTL()
	acc := b.start()
	b.clock.move(time.Minute)
	b.finish(acc)
	acc, err := b.store.Send(b.Context(), session.Message{SessionID: acc.SessionID, Owner: alice, Token: acc.Token, Text: "again"})
	b.must(err)
	b.clock.move(1000 * time.Hour)
	b.diff("removed", 0, b.expire(10))
	b.diff("active", []string{acc.SessionID}, b.list(session.Query{Agent: agent, Active: true, Limit: 10}, nil))
	b.finish(acc)
	b.diff("length of the log", 7, len(b.log(acc.SessionID)))
}

func expiryIsComplete(b *bench) {
	if _, ok := b.driver.(session.Expirer); !ok {
		b.Skip("skipped: this medium removes expired sessions by itself")
	}
	b.withTTL()
	var old, young []session.Accepted
	for range 3 {
		old = append(old, b.start())
		young = append(young, b.start())
	}
	for i, acc := range old {
		w := b.open(b.store, acc)
		for range 300 * (i + 1) {
			_, err := w.Append(b.Context(), event.SkillLoaded{}, event.SkillLoaded{})
			b.must(err)
		}
		b.must(b.store.PutSnapshot(b.Context(), acc.SessionID, session.Snapshot{Next: 1, Data: []byte("x")}))
		b.finish(acc)
	}
	b.clock.move(time.Minute)
	for _, acc := range young {
		b.finish(acc)
	}
	b.clock.move(time.Hour - time.Minute)
	b.diff("removed", 3, b.expire(10))
	b.diff("removed again", 0, b.expire(10))
	for i := range old {
		_, err := b.driver.Get(b.Context(), old[i].SessionID)
		b.wantErr(err, session.ErrNotFound)
		b.diff("events of a removed session", 0, len(b.log(old[i].SessionID)))
		snap, err := b.driver.Snapshot(b.Context(), old[i].SessionID)
		b.must(err)
		b.diff("snapshot of a removed session", session.Snapshot{}, snap)
		b.diff("events of its neighbour", 4, len(b.log(young[i].SessionID)))
	}
	fresh := b.start() // nothing of the old ones comes back
	b.diff("log of a new session", 2, len(b.log(fresh.SessionID)))
}

func expirySlices(b *bench) {
	if _, ok := b.driver.(session.Expirer); !ok {
		b.Skip("skipped: this medium removes expired sessions by itself")
	}
	b.withTTL()
	for i := range 5 {
		acc, err := b.store.Start(b.Context(), session.Start{Agent: agent, Owner: alice, Message: "x", Key: session.RequestKey{Name: fmt.Sprint(i)}})
		b.must(err)
		b.finish(acc)
	}
	b.clock.move(25 * time.Hour)
	for _, want := range []int{4, 4, 2, 0} { // sessions and keys
		b.diff("removed", want, b.expire(2))
	}
}

func noExpiry(b *bench) {
	acc := b.start()
	b.finish(acc)
	b.clock.move(100_000 * time.Hour)
	b.diff("removed", 0, b.expire(10))
	_, err := b.store.Get(b.Context(), acc.SessionID)
	b.must(err)
}
