package session

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// EncodeCursor returns the opaque cursor of a page of q that begins behind place, which is the driver's own.
func EncodeCursor(q Query, place string) string {
	return base64.RawURLEncoding.EncodeToString(append(selection(q, place), place...))
}

// DecodeCursor returns the place of q.Cursor, "" for the first page. It fails with bdkerr.InvalidRequest if the cursor was made for
// another selection or by nobody. The check finds mistakes, not malice: a place must not say who owns it.
func DecodeCursor(q Query) (string, error) {
	if q.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil && len(raw) > crc32.Size {
		if place := string(raw[crc32.Size:]); EncodeCursor(q, place) == q.Cursor { // the decoder passes over line ends
			return place, nil
		}
	}
	return "", BadCursor()
}

// BadCursor returns the error for a cursor whose place the driver cannot read.
func BadCursor() error {
	return bdkerr.New(bdkerr.InvalidRequest, "the cursor is not one of this list: begin again without it")
}

// selection returns the checksum that binds a place to what q selects.
func selection(q Query, place string) []byte {
	kind := "owner"
	switch {
	case q.Active:
		kind = "active"
	case q.All:
		kind = "all"
	}
	sum := crc32.ChecksumIEEE([]byte(kind + "\x00" + q.Agent + "\x00" + q.Owner + "\x00" + place))
	return binary.BigEndian.AppendUint32(nil, sum)
}

func (q Query) validate() error {
	kinds := 0
	for _, set := range []bool{q.Owner != "", q.All, q.Active} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1 || q.Agent == "":
		return bdkerr.New(bdkerr.InvalidRequest, "a list is of one agent and of one owner, of all sessions or of the active ones")
	case q.Limit < 1 || q.Limit > 1000:
		return bdkerr.New(bdkerr.InvalidRequest, "a page has 1 to 1000 sessions, not %d", q.Limit)
	}
	return nil
}
