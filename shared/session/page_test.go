package session_test

import (
	"testing"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/session"
)

// FuzzDecodeCursor checks that a cursor is either refused as a fault of the client or the one that was made for its place.
func FuzzDecodeCursor(f *testing.F) {
	good := session.EncodeCursor(session.Query{Agent: "a", Owner: "o"}, "1772625600000.7")
	for _, cursor := range []string{"", good, good + "=", good[1:], good[:6] + "\n" + good[6:], "AAAA", "AAAAAA", "\xff", "a b"} {
		f.Add("a", "o", cursor)
	}
	f.Fuzz(func(t *testing.T, agent, owner, cursor string) {
		q := session.Query{Agent: agent, Owner: owner, Cursor: cursor}
		place, err := session.DecodeCursor(q)
		switch {
		case err != nil:
			if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
				t.Fatalf("got error %v, want %s", err, bdkerr.InvalidRequest)
			}
		case cursor == "":
			if place != "" {
				t.Fatalf("the first page begins at %q", place)
			}
		case session.EncodeCursor(q, place) != cursor:
			t.Fatalf("cursor %q was read as %q, whose cursor is another", cursor, place)
		}
	})
}
