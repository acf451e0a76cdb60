package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

// Limits of what an artifact has, in bytes.
const (
	maxKind  = 64
	maxText  = 256 // of a key or title
	maxFile  = 255 // of the name of a file
	maxOwner = 1024
	maxData  = 64 << 10
)

// Tagged is what [Store.Tag] records. Kind, Key and Owner are required.
type Tagged struct {
	Kind      string          // 1 to 64 lower-case letters, digits, - and _, the first of them a letter or digit
	Key       string          // 1 to 256 bytes without control characters
	Title     string          // as Key; default: the key
	Data      json.RawMessage // at most 64 KiB; nil for none
	File      string          // the name of the file, at most 255 bytes without slashes; "" for no file
	Content   []byte          // of the file, at most blob.MaxSize bytes; not kept or changed after Tag returned
	Owner     string          // a principal
	SessionID string          // "" outside of sessions
}

func (t Tagged) check() error {
	switch {
	case t.Owner == "", len(t.Owner) > maxOwner, strings.ContainsRune(t.Owner, 0), !utf8.ValidString(t.Owner):
		return bdkerr.New(bdkerr.InvalidRequest, "the owner of an artifact is %.80q, which is no principal", t.Owner)
	case len(t.Data) > maxData:
		return bdkerr.New(bdkerr.PayloadTooLarge, "the data of an artifact has %d bytes: at most %d are allowed; a file can be larger", len(t.Data), maxData)
	case len(t.Data) > 0 && (!json.Valid(t.Data) || !utf8.Valid(t.Data)):
		return bdkerr.New(bdkerr.InvalidRequest, "the data of an artifact is not JSON in UTF-8")
	case t.File == "" && t.Content != nil:
		return bdkerr.New(bdkerr.InvalidRequest, "the file of an artifact has no name")
	case t.File != "" && fileFault(t.File) != "":
		return bdkerr.New(bdkerr.InvalidRequest, "the file of an artifact cannot be called %.300q: the name %s", t.File, fileFault(t.File))
	case len(t.Content) > blob.MaxSize:
		return bdkerr.New(bdkerr.PayloadTooLarge, "the file of an artifact has %d bytes: at most %d are allowed", len(t.Content), blob.MaxSize)
	}
	if err := checkKind(t.Kind); err != nil {
		return err
	}
	if why := textFault(t.Key, maxText); why != "" {
		return bdkerr.New(bdkerr.InvalidRequest, "the key of an artifact is %.80q: it %s", t.Key, why)
	}
	if why := textFault(t.Title, maxText); why != "" {
		return bdkerr.New(bdkerr.InvalidRequest, "the title of an artifact is %.80q: it %s", t.Title, why)
	}
	return nil
}

func checkKind(kind string) error {
	if kind == "" || len(kind) > maxKind || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || kind[0] == '-' || kind[0] == '_' {
		return bdkerr.New(bdkerr.InvalidRequest, "the kind of an artifact is %.80q: it must be 1 to %d lower-case letters, digits, - and _, and begin with a letter or digit", kind, maxKind)
	}
	return nil
}

// textFault says why a text of at most so many bytes cannot be shown in one line; "" if it can.
func textFault(s string, most int) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > most:
		return fmt.Sprintf("has %d bytes: at most %d are allowed", len(s), most)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has a control character, such as the end of a line"
	}
	return ""
}

func fileFault(name string) string {
	if name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return "is a path: give its last part"
	}
	return textFault(name, maxFile)
}

// compact returns a copy of valid data as it is stored, nil for none.
func compact(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return nil
	}
	var b bytes.Buffer
	_ = json.Compact(&b, data) // fails for what is no JSON only
	return b.Bytes()
}

// stored is the value of an entry.
type stored struct {
	bdk.ArtifactRecord

	Blob blob.Ref `json:"blob,omitempty"` // the content of the file
}

func (v stored) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // data must not grow beyond what an entry takes
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding an artifact: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// decode reads the entry of an id. It fails for one that Tag cannot have written.
func decode(raw []byte, id string) (stored, error) {
	var v stored
	if err := json.Unmarshal(raw, &v); err != nil {
		return stored{}, fmt.Errorf("decoding artifact %s: %w", id, err)
	}
	t := Tagged{Kind: v.Kind, Key: v.Key, Title: v.Title, Data: v.Data, File: v.File, Owner: v.Owner}
	err := t.check()
	switch {
	case err != nil:
	case v.ID != id || idOf(v.Owner, v.Kind, v.Key) != id:
		err = errors.New("it has another id")
	case v.CreatedAt.IsZero() || v.UpdatedAt.Before(v.CreatedAt):
		err = errors.New("its times cannot be")
	case v.File != "":
		err = v.Blob.Check()
	}
	if err != nil {
		return stored{}, fmt.Errorf("decoding artifact %s: %s", id, err.Error()) // no fault of who asks
	}
	return v, nil
}
