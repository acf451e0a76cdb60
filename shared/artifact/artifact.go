// Package artifact keeps what the sessions of an agent have made and people look for: reports, links, files. Artifacts last
// longer than their sessions.
//
// An artifact is one entry of a [kv.Store], whose key ends in its id; the content of its file is a blob. An owner has one artifact
// of a kind and key: its id follows from the three. The owner of a record is for the caller to check.
package artifact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
)

// Limits of a list, and how many artifacts an agent has if nothing else is said.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	DefaultMax   = 1000
)

const (
	maxTries = 100 // of one Tag; each lost one means that another Tag of the artifact was recorded
	page     = 200 // entries read at once: they may be large
)

// Options adjust a Store. Agent is required.
type Options struct {
	Agent string                      // slug of the agent
	Clock clock.Clock                 // default: the system clock
	Max   int                         // how many artifacts are kept; 0: DefaultMax; negative: all
	Kinds map[string]bdk.ArtifactKind // all that may be recorded; nil: any
	Log   *slog.Logger                // is told of entries that cannot be read or removed; default: nothing is logged
}

// Store keeps the artifacts of one agent. It is safe for concurrent use, by many processes too where the kv and blob stores are.
type Store struct {
	entries *kv.Store
	blobs   *blob.Store
	opts    Options
	prefix  string // of the keys
}

// New returns a store over entries and blobs. It panics if Options.Agent is no slug, which would mix up the keys of agents.
func New(entries *kv.Store, blobs *blob.Store, opts Options) *Store {
	if opts.Agent == "" || strings.Contains(opts.Agent, "/") {
		panic(fmt.Sprintf("artifact: Options.Agent is %q", opts.Agent))
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	if opts.Max == 0 {
		opts.Max = DefaultMax
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{entries: entries, blobs: blobs, opts: opts, prefix: "artifact/" + opts.Agent + "/"}
}

// Tag records an artifact in the place of the one of the same owner, kind and key: its title, data, file and session are replaced, its
// id and CreatedAt stay. The error is bdkerr.InvalidRequest or PayloadTooLarge for what cannot be recorded, and
// bdkerr.Conflict if too many others tag the same artifact at once: the last one of those who succeed is kept.
//
// A Tag that made a new artifact removes those beyond Options.Max that were updated longest ago, as well as it can. That reads all
// artifacts of the agent. Contents stay, which others may have in common.
func (s *Store) Tag(ctx context.Context, in Tagged) (bdk.ArtifactRecord, error) {
	in.Title = cmp.Or(in.Title, in.Key)
	if err := in.check(); err != nil {
		return bdk.ArtifactRecord{}, err
	}
	if err := s.checkDeclared(in); err != nil {
		return bdk.ArtifactRecord{}, err
	}
	v := stored{ArtifactRecord: bdk.ArtifactRecord{
		ID: idOf(in.Owner, in.Kind, in.Key), Kind: in.Kind, Key: in.Key, Title: in.Title, SessionID: in.SessionID, Owner: in.Owner, Data: compact(in.Data),
	}}
	if in.File != "" {
		ref, err := s.blobs.Put(ctx, in.Content)
		if err != nil {
			return bdk.ArtifactRecord{}, fmt.Errorf("keeping the file of an artifact: %w", err)
		}
		v.File, v.Bytes, v.Blob = in.File, int64(len(in.Content)), ref
	}
	for range maxTries {
		created, err := s.put(ctx, &v)
		switch {
		case errors.Is(err, kv.ErrExists), errors.Is(err, kv.ErrVersion):
			continue
		case err != nil:
			return bdk.ArtifactRecord{}, fmt.Errorf("recording an artifact: %w", err)
		case created && s.opts.Max > 0:
			s.evict(ctx, v.ID)
		}
		return v.ArtifactRecord, nil
	}
	return bdk.ArtifactRecord{}, bdkerr.New(bdkerr.Conflict, "the artifact %q of kind %q is being recorded by too many at once: try again", in.Key, in.Kind)
}

// checkDeclared fails for what is of no kind that there is, and for data that is not as its kind wants it.
func (s *Store) checkDeclared(in Tagged) error {
	if s.opts.Kinds == nil {
		return nil
	}
	kind, ok := s.opts.Kinds[in.Kind]
	switch {
	case !ok:
		return bdkerr.New(bdkerr.InvalidRequest, "there is no kind %q of artifacts: the kinds are %s", in.Kind, strings.Join(slices.Sorted(maps.Keys(s.opts.Kinds)), ", "))
	case kind.Data.JSON() == nil:
		return nil
	case len(in.Data) == 0:
		return bdkerr.New(bdkerr.InvalidRequest, "an artifact of the kind %q needs data", in.Kind)
	}
	if err := kind.Data.Check(string(in.Data)); err != nil {
		return bdkerr.New(bdkerr.InvalidRequest, "the data of an artifact of the kind %q is not as it must be: %s", in.Kind, err)
	}
	return nil
}

// put tries once to store v, with the times that follow from what there is. An entry that cannot be read is replaced.
func (s *Store) put(ctx context.Context, v *stored) (created bool, err error) {
	key := s.prefix + v.ID
	old, err := s.entries.Get(ctx, key)
	created = errors.Is(err, kv.ErrNotFound)
	if err != nil && !created {
		return false, err
	}
	v.UpdatedAt = s.opts.Clock.Now().UTC().Truncate(time.Millisecond)
	v.CreatedAt = v.UpdatedAt
	if was, err := decode(old.Value, v.ID); err == nil {
		v.CreatedAt = was.CreatedAt
		if was.UpdatedAt.After(v.UpdatedAt) { // clocks differ
			v.UpdatedAt = was.UpdatedAt
		}
	}
	raw, err := v.encode()
	if err != nil {
		return false, err
	}
	if created {
		return true, s.entries.Create(ctx, key, raw, 0)
	}
	return false, s.entries.Swap(ctx, key, old.Version, raw, 0)
}

// Get returns an artifact of the agent, whoever owns it, or a bdkerr.NotFound error.
func (s *Store) Get(ctx context.Context, id string) (bdk.ArtifactRecord, error) {
	v, err := s.get(ctx, id)
	return v.ArtifactRecord, err
}

// Content returns an artifact of the agent, whoever owns it, and the bytes of its file. The error is bdkerr.NotFound if
// there is no artifact or it has no file.
func (s *Store) Content(ctx context.Context, id string) (bdk.ArtifactRecord, []byte, error) {
	v, err := s.get(ctx, id)
	if err != nil {
		return bdk.ArtifactRecord{}, nil, err
	}
	if v.File == "" {
		return bdk.ArtifactRecord{}, nil, bdkerr.New(bdkerr.NotFound, "artifact %s has no file", id)
	}
	content, err := s.blobs.Get(ctx, v.Blob)
	if errors.Is(err, blob.ErrNotFound) {
		return bdk.ArtifactRecord{}, nil, &bdkerr.Error{Code: bdkerr.NotFound, Message: fmt.Sprintf("the file of artifact %s is gone", id), Err: err}
	}
	if err != nil {
		return bdk.ArtifactRecord{}, nil, fmt.Errorf("reading the file of artifact %s: %w", id, err)
	}
	return v.ArtifactRecord, content, nil
}

func (s *Store) get(ctx context.Context, id string) (stored, error) {
	none := bdkerr.New(bdkerr.NotFound, "no artifact %.80q", id)
	if !isID(id) { // nothing else reaches the store
		return stored{}, none
	}
	e, err := s.entries.Get(ctx, s.prefix+id)
	if errors.Is(err, kv.ErrNotFound) {
		return stored{}, none
	}
	if err != nil {
		return stored{}, fmt.Errorf("reading artifact %s: %w", id, err)
	}
	return decode(e.Value, id)
}

// Query selects artifacts. The zero value selects the newest [DefaultLimit] of all owners.
type Query struct {
	Owner     string // a principal; "" for all
	Kind      string // "" for all
	SessionID string // that tagged it last; "" for all
	Limit     int    // at most MaxLimit; 0: DefaultLimit
}

// List returns artifacts, the newest update first, by id where updates are equally old. The error is bdkerr.InvalidRequest for a kind that
// cannot be and a limit out of range. Entries that cannot be read are logged and left out: one must not hide the others.
//
// It reads all artifacts of the agent, whatever the query selects: there is no index.
func (s *Store) List(ctx context.Context, q Query) ([]bdk.ArtifactRecord, error) {
	if q.Kind != "" {
		if err := checkKind(q.Kind); err != nil {
			return nil, err
		}
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return nil, bdkerr.New(bdkerr.InvalidRequest, "the limit is %d: at most %d artifacts are listed; 0 stands for %d", q.Limit, MaxLimit, DefaultLimit)
	}
	limit := cmp.Or(q.Limit, DefaultLimit)
	var found []bdk.ArtifactRecord
	err := s.each(ctx, func(entries []kv.Entry) {
		for _, e := range entries {
			v, err := decode(e.Value, e.Key[len(s.prefix):])
			if err != nil {
				s.opts.Log.WarnContext(ctx, "artifact left out of a list", slog.String("key", e.Key), slog.Any("error", err))
				continue
			}
			if q.selects(v.ArtifactRecord) {
				found = append(found, v.ArtifactRecord)
			}
		}
		slices.SortFunc(found, func(a, b bdk.ArtifactRecord) int {
			return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.ID, b.ID))
		})
		clear(found[min(len(found), limit):]) // what is cut off may be large
		found = found[:min(len(found), limit)]
	})
	return found, err
}

func (q Query) selects(r bdk.ArtifactRecord) bool {
	return (q.Owner == "" || r.Owner == q.Owner) && (q.Kind == "" || r.Kind == q.Kind) && (q.SessionID == "" || r.SessionID == q.SessionID)
}

// each calls f with all entries of the agent, a page at a time.
func (s *Store) each(ctx context.Context, f func([]kv.Entry)) error {
	after := ""
	for {
		entries, err := s.entries.List(ctx, s.prefix, after, page)
		if err != nil {
			return fmt.Errorf("listing artifacts: %w", err)
		}
		f(entries)
		if len(entries) < page {
			return nil
		}
		after = entries[len(entries)-1].Key
	}
}

// evict removes what is beyond Options.Max, but never the artifact with the given id. Entries that cannot be read go first; one that is
// tagged meanwhile stays. What fails is logged: the next new artifact makes up for it.
func (s *Store) evict(ctx context.Context, newest string) {
	type candidate struct {
		key     string
		version int64
		updated time.Time
	}
	var all []candidate
	err := s.each(ctx, func(entries []kv.Entry) {
		for _, e := range entries {
			if id := e.Key[len(s.prefix):]; id != newest {
				v, _ := decode(e.Value, id)
				all = append(all, candidate{e.Key, e.Version, v.UpdatedAt})
			}
		}
	})
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(b.key, a.key)) })
	beyond := max(len(all)+1-s.opts.Max, 0)
	for _, c := range all[:beyond] {
		if err != nil {
			break
		}
		if err = s.entries.Delete(ctx, c.key, c.version); errors.Is(err, kv.ErrVersion) {
			err = nil
		}
	}
	if err != nil {
		s.opts.Log.WarnContext(ctx, "old artifacts were not removed", slog.Any("error", err))
	}
}

const (
	idPrefix = "art_"
	idDigits = 26 // 130 bits
	alphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// idOf returns the id of an artifact. None of the three parts contains a NUL.
func idOf(owner, kind, key string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + kind + "\x00" + key))
	return idPrefix + base32.NewEncoding(alphabet).EncodeToString(sum[:])[:idDigits]
}

func isID(id string) bool {
	digits, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(digits) == idDigits && strings.Trim(digits, alphabet) == ""
}
