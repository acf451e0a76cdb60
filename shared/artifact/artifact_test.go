package artifact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/memkv"
)

// hand is a clock that the test sets, in seconds. Its After is not used.
type hand struct {
	clock.System

	mu sync.Mutex
	at time.Time
}

func (h *hand) set(seconds int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = second(seconds)
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func second(n int) time.Time {
	return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// bench is a store of agent demo over stores in memory.
type bench struct {
	*artifact.Store

	t       testing.TB
	clock   *hand
	entries *kv.Store
	blobs   *blob.Store
	log     *bytes.Buffer
}

func open(t testing.TB, limit int) bench {
	t.Helper()
	b := bench{t: t, clock: new(hand), entries: kv.New(memkv.New(), kv.Options{}), blobs: blob.New(memblob.New()), log: new(bytes.Buffer)}
	b.clock.set(0)
	b.Store = artifact.New(b.entries, b.blobs, artifact.Options{Agent: "demo", Clock: b.clock, Max: limit, Log: slog.New(slog.NewTextHandler(b.log, nil))})
	return b
}

// tag records an artifact of ann, at a second.
func (b bench) tag(at int, in artifact.Tagged) bdk.ArtifactRecord {
	b.t.Helper()
	b.clock.set(at)
	if in.Owner == "" {
		in.Owner = "ann"
	}
	r, err := b.Tag(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// keys returns the keys of a list, in its order.
func (b bench) keys(q artifact.Query) []string {
	b.t.Helper()
	list, err := b.List(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	keys := []string{}
	for _, r := range list {
		keys = append(keys, r.Key)
	}
	return keys
}

func TestTagIsAnUpsert(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	first := b.tag(1, artifact.Tagged{
		Kind: "report", Key: "weekly", Title: "Week 9", Data: json.RawMessage(`{ "html": "<b>&</b>" }`), File: "w9.md", Content: []byte("# Nine"), SessionID: "ses_1",
	})
	want := bdk.ArtifactRecord{
		ID: first.ID, Kind: "report", Key: "weekly", Title: "Week 9", SessionID: "ses_1", Owner: "ann", Data: json.RawMessage(`{"html":"<b>&</b>"}`),
		File: "w9.md", Bytes: 6, CreatedAt: second(1), UpdatedAt: second(1),
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Errorf("Tag (-want +got):\n%s", d)
	}
	got, content, err := b.Content(t.Context(), first.ID)
	if d := cmp.Diff(want, got); d != "" || err != nil || string(content) != "# Nine" {
		t.Errorf("Content: %q, error %v (-want +got):\n%s", content, err, d)
	}

	again := b.tag(5, artifact.Tagged{Kind: "report", Key: "weekly", SessionID: "ses_2"})
	want = bdk.ArtifactRecord{
		ID: first.ID, Kind: "report", Key: "weekly", Title: "weekly", SessionID: "ses_2", Owner: "ann", CreatedAt: second(1), UpdatedAt: second(5),
	}
	if d := cmp.Diff(want, again); d != "" {
		t.Errorf("Tag again (-want +got):\n%s", d)
	}
	if got, err := b.Get(t.Context(), first.ID); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("Get: error %v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	if _, _, err := b.Content(t.Context(), first.ID); bdkerr.CodeOf(err) != bdkerr.NotFound {
		t.Errorf("the file was taken away; got error %v", err)
	}
	if late := b.tag(3, artifact.Tagged{Kind: "report", Key: "weekly"}); !late.UpdatedAt.Equal(second(5)) {
		t.Errorf("an update by a clock that is behind is of %v", late.UpdatedAt)
	}
}

func TestAnArtifactIsOfItsOwnerKindKeyAndAgent(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	ids := map[string]bool{}
	for _, in := range []artifact.Tagged{
		{Owner: "ann", Kind: "a", Key: "b"},
		{Owner: "bob", Kind: "a", Key: "b"},
		{Owner: "ann", Kind: "b", Key: "b"},
		{Owner: "ann", Kind: "a", Key: "bb"},
		{Owner: "anna", Kind: "a", Key: "b"},
		{Owner: "ann", Kind: "aa", Key: "b"},
	} {
		id := b.tag(1, in).ID
		if len(id) != 30 || !strings.HasPrefix(id, "art_") || strings.ToLower(id) != id || ids[id] {
			t.Errorf("%+v has the id %q", in, id)
		}
		ids[id] = true
	}
	other := artifact.New(b.entries, b.blobs, artifact.Options{Agent: "demo2"})
	for id := range ids {
		if _, err := other.Get(t.Context(), id); bdkerr.CodeOf(err) != bdkerr.NotFound {
			t.Errorf("another agent gets %s: error %v", id, err)
		}
	}
	if list, err := other.List(t.Context(), artifact.Query{}); err != nil || len(list) != 0 {
		t.Errorf("another agent lists %v, error %v", list, err)
	}
}

func TestManyTagsOfOneKeyEndInOneEntry(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			_, err := b.Tag(t.Context(), artifact.Tagged{Owner: "ann", Kind: "k", Key: "one", Title: fmt.Sprint(n), File: "f", Content: fmt.Append(nil, n)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, err := b.entries.List(t.Context(), "", "", 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, error %v", len(entries), err)
	}
	list, err := b.List(t.Context(), artifact.Query{})
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v, error %v", list, err)
	}
	if _, content, err := b.Content(t.Context(), list[0].ID); err != nil || string(content) != list[0].Title {
		t.Errorf("the file is of tag %s, the title of %s, error %v", content, list[0].Title, err)
	}
}

// busy is a driver whose entries somebody else changes all the time.
type busy struct{ kv.Driver }

func (busy) Create(context.Context, kv.Entry, time.Time) error { return kv.ErrExists }

func TestTagGivesUpAgainstTooManyOthers(t *testing.T) {
	t.Parallel()
	s := artifact.New(kv.New(busy{memkv.New()}, kv.Options{}), blob.New(memblob.New()), artifact.Options{Agent: "demo"})
	if _, err := s.Tag(t.Context(), artifact.Tagged{Owner: "ann", Kind: "k", Key: "x"}); bdkerr.CodeOf(err) != bdkerr.Conflict {
		t.Errorf("got error %v", err)
	}
}

func TestTheOldestUpdatesAreEvicted(t *testing.T) {
	t.Parallel()
	b := open(t, 3)
	for n, key := range []string{"a", "b", "c"} {
		b.tag(n, artifact.Tagged{Kind: "k", Key: key})
	}
	b.tag(10, artifact.Tagged{Kind: "k", Key: "a"}) // replaces: nothing goes
	if d := cmp.Diff([]string{"a", "c", "b"}, b.keys(artifact.Query{})); d != "" {
		t.Errorf("after an update (-want +got):\n%s", d)
	}
	b.tag(11, artifact.Tagged{Kind: "k", Key: "d", Owner: "bob"})
	if d := cmp.Diff([]string{"d", "a", "c"}, b.keys(artifact.Query{})); d != "" {
		t.Errorf("after a fourth (-want +got):\n%s", d)
	}
	b.tag(0, artifact.Tagged{Kind: "k", Key: "e"}) // by a clock that is behind: what is new stays
	if d := cmp.Diff([]string{"d", "a", "e"}, b.keys(artifact.Query{})); d != "" {
		t.Errorf("after a fifth (-want +got):\n%s", d)
	}
	if err := b.entries.Create(t.Context(), "artifact/demo/broken", []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	b.tag(12, artifact.Tagged{Kind: "k", Key: "e"})
	b.tag(13, artifact.Tagged{Kind: "k", Key: "f"})
	if _, err := b.entries.Get(t.Context(), "artifact/demo/broken"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("an entry that cannot be read was kept: error %v", err)
	}
	if d := cmp.Diff([]string{"f", "e", "d"}, b.keys(artifact.Query{})); d != "" {
		t.Errorf("after a sixth (-want +got):\n%s", d)
	}
}

// TestRetention: without a word 1,000 are kept, and all only where that is asked for.
func TestRetention(t *testing.T) {
	t.Parallel()
	b := open(t, -1)
	for n := range artifact.DefaultMax + 2 {
		b.tag(n, artifact.Tagged{Kind: "k", Key: fmt.Sprint(n)})
	}
	count := func() (n int) {
		for after := ""; ; {
			list, err := b.entries.List(t.Context(), "", after, 0)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(list); len(list) < kv.MaxList {
				return n
			}
			after = list[len(list)-1].Key
		}
	}
	if got := count(); got != artifact.DefaultMax+2 {
		t.Errorf("without a bound, %d are kept", got)
	}
	b.Store = artifact.New(b.entries, b.blobs, artifact.Options{Agent: "demo", Clock: b.clock})
	b.tag(5000, artifact.Tagged{Kind: "k", Key: "1"}) // not new
	if got := count(); got != artifact.DefaultMax+2 {
		t.Errorf("an update left %d", got)
	}
	b.tag(5001, artifact.Tagged{Kind: "k", Key: "new"})
	if d := cmp.Diff([]string{"new", "1", "1001"}, b.keys(artifact.Query{Limit: 3})); d != "" || count() != artifact.DefaultMax {
		t.Errorf("%d are kept; the newest (-want +got):\n%s", count(), d)
	}
}

// stuck is a driver that deletes nothing.
type stuck struct{ kv.Driver }

func (stuck) Delete(context.Context, string, int64) error { return errors.New("the disk is read-only") }

func TestEvictionThatFailsDoesNotFailTheTag(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := artifact.New(kv.New(stuck{memkv.New()}, kv.Options{}), blob.New(memblob.New()), artifact.Options{Agent: "demo", Max: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, key := range []string{"a", "b"} {
		if _, err := s.Tag(t.Context(), artifact.Tagged{Owner: "ann", Kind: "k", Key: key}); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(log.String(), "read-only") {
		t.Errorf("logged %q", log.String())
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	b.tag(1, artifact.Tagged{Kind: "report", Key: "r1", SessionID: "ses_1"})
	b.tag(2, artifact.Tagged{Kind: "link", Key: "l1", SessionID: "ses_1"})
	b.tag(3, artifact.Tagged{Kind: "report", Key: "r2", SessionID: "ses_2"})
	b.tag(4, artifact.Tagged{Kind: "report", Key: "r3", SessionID: "ses_3", Owner: "bob"})
	b.tag(5, artifact.Tagged{Kind: "report", Key: "r1", SessionID: "ses_2"})
	for name, tc := range map[string]struct {
		q    artifact.Query
		want []string
	}{
		"everything":           {artifact.Query{}, []string{"r1", "r3", "r2", "l1"}},
		"an owner":             {artifact.Query{Owner: "ann"}, []string{"r1", "r2", "l1"}},
		"an owner of nothing":  {artifact.Query{Owner: "carl"}, []string{}},
		"a kind":               {artifact.Query{Kind: "report"}, []string{"r1", "r3", "r2"}},
		"a session":            {artifact.Query{SessionID: "ses_2"}, []string{"r1", "r2"}},
		"the session before":   {artifact.Query{SessionID: "ses_1"}, []string{"l1"}},
		"a limit":              {artifact.Query{Limit: 2}, []string{"r1", "r3"}},
		"all filters":          {artifact.Query{Owner: "ann", Kind: "report", SessionID: "ses_2", Limit: 1}, []string{"r1"}},
		"the limit at its end": {artifact.Query{Limit: artifact.MaxLimit}, []string{"r1", "r3", "r2", "l1"}},
	} {
		if d := cmp.Diff(tc.want, b.keys(tc.q)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, q := range []artifact.Query{{Limit: -1}, {Limit: artifact.MaxLimit + 1}, {Kind: "Report"}, {Kind: "a/b"}} {
		if _, err := b.List(t.Context(), q); bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
			t.Errorf("%+v: got error %v", q, err)
		}
	}
}

// TestLongLists: the newest are found on whatever page they stand, and equal times are in the order of ids.
func TestLongLists(t *testing.T) {
	t.Parallel()
	b := open(t, -1)
	const n = 1050
	for i := range n {
		b.tag(i/2, artifact.Tagged{Kind: "k", Key: fmt.Sprint(i)})
	}
	for limit, want := range map[int]int{0: 100, 1: 1, 101: 101, 1000: 1000} {
		list, err := b.List(t.Context(), artifact.Query{Limit: limit})
		if err != nil || len(list) != want {
			t.Fatalf("limit %d: %d, error %v", limit, len(list), err)
		}
		for i, r := range list {
			if !r.UpdatedAt.Equal(second((n - 1 - i) / 2)) {
				t.Fatalf("limit %d: at %d is an update of %v", limit, i, r.UpdatedAt)
			}
			if i > 0 && r.UpdatedAt.Equal(list[i-1].UpdatedAt) && r.ID <= list[i-1].ID {
				t.Fatalf("limit %d: %s comes after %s", limit, r.ID, list[i-1].ID)
			}
		}
	}
}

func TestWhatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, tc := range map[string]struct {
		change func(*artifact.Tagged)
		code   bdkerr.Code
	}{
		"no kind":              {func(in *artifact.Tagged) { in.Kind = "" }, bdkerr.InvalidRequest},
		"a long kind":          {func(in *artifact.Tagged) { in.Kind = long(65) }, bdkerr.InvalidRequest},
		"upper case":           {func(in *artifact.Tagged) { in.Kind = "Report" }, bdkerr.InvalidRequest},
		"a kind with -":        {func(in *artifact.Tagged) { in.Kind = "-a" }, bdkerr.InvalidRequest},
		"a kind with _":        {func(in *artifact.Tagged) { in.Kind = "_a" }, bdkerr.InvalidRequest},
		"a kind in two lines":  {func(in *artifact.Tagged) { in.Kind = "a\n" }, bdkerr.InvalidRequest},
		"another letter":       {func(in *artifact.Tagged) { in.Kind = "größe" }, bdkerr.InvalidRequest},
		"no key":               {func(in *artifact.Tagged) { in.Key = "" }, bdkerr.InvalidRequest},
		"a long key":           {func(in *artifact.Tagged) { in.Key = long(257) }, bdkerr.InvalidRequest},
		"a key in two lines":   {func(in *artifact.Tagged) { in.Key = "a\nb" }, bdkerr.InvalidRequest},
		"a key with NUL":       {func(in *artifact.Tagged) { in.Key = "a\x00b" }, bdkerr.InvalidRequest},
		"a key in C1":          {func(in *artifact.Tagged) { in.Key = "a\u0085b" }, bdkerr.InvalidRequest},
		"a key in Latin-1":     {func(in *artifact.Tagged) { in.Key = "\xe4" }, bdkerr.InvalidRequest},
		"a long title":         {func(in *artifact.Tagged) { in.Title = long(257) }, bdkerr.InvalidRequest},
		"a title in lines":     {func(in *artifact.Tagged) { in.Title = "a\r\nb" }, bdkerr.InvalidRequest},
		"a title in Latin-1":   {func(in *artifact.Tagged) { in.Title = "\xe4" }, bdkerr.InvalidRequest},
		"data that is none":    {func(in *artifact.Tagged) { in.Data = json.RawMessage("{") }, bdkerr.InvalidRequest},
		"two data":             {func(in *artifact.Tagged) { in.Data = json.RawMessage("{}{}") }, bdkerr.InvalidRequest},
		"data in Latin-1":      {func(in *artifact.Tagged) { in.Data = json.RawMessage("\"\xe4\"") }, bdkerr.InvalidRequest},
		"long data":            {func(in *artifact.Tagged) { in.Data = json.RawMessage(`"` + long(64<<10-1) + `"`) }, bdkerr.PayloadTooLarge},
		"a file in a folder":   {func(in *artifact.Tagged) { in.File = "a/b" }, bdkerr.InvalidRequest},
		"a file of Windows":    {func(in *artifact.Tagged) { in.File = `a\b` }, bdkerr.InvalidRequest},
		"a folder":             {func(in *artifact.Tagged) { in.File = ".." }, bdkerr.InvalidRequest},
		"this folder":          {func(in *artifact.Tagged) { in.File = "." }, bdkerr.InvalidRequest},
		"a file in two lines":  {func(in *artifact.Tagged) { in.File = "a\nb" }, bdkerr.InvalidRequest},
		"a file in Latin-1":    {func(in *artifact.Tagged) { in.File = "\xe4" }, bdkerr.InvalidRequest},
		"a long name":          {func(in *artifact.Tagged) { in.File = long(256) }, bdkerr.InvalidRequest},
		"a file without name":  {func(in *artifact.Tagged) { in.File, in.Content = "", []byte{} }, bdkerr.InvalidRequest},
		"too much content":     {func(in *artifact.Tagged) { in.Content = make([]byte, blob.MaxSize+1) }, bdkerr.PayloadTooLarge},
		"no owner":             {func(in *artifact.Tagged) { in.Owner = "" }, bdkerr.InvalidRequest},
		"an owner with NUL":    {func(in *artifact.Tagged) { in.Owner = "ann\x00k" }, bdkerr.InvalidRequest},
		"an owner in Latin-1":  {func(in *artifact.Tagged) { in.Owner = "\xe4" }, bdkerr.InvalidRequest},
		"an owner out of size": {func(in *artifact.Tagged) { in.Owner = long(1025) }, bdkerr.InvalidRequest},
	} {
		in := artifact.Tagged{Owner: "ann", Kind: "k", Key: "x", File: "f"}
		tc.change(&in)
		_, err := b.Tag(t.Context(), in)
		var e *bdkerr.Error
		if !errors.As(err, &e) || e.Code != tc.code || len(e.Message) > 700 || strings.ContainsAny(e.Message, "\r\n\x00") {
			t.Errorf("%s: got error %.900v; want %s", name, err, tc.code)
		}
	}
	if entries, err := b.entries.List(t.Context(), "", "", 0); err != nil || len(entries) != 0 {
		t.Errorf("there are entries: %v, error %v", entries, err)
	}
}

func TestWhatIsLargeFits(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	content := make([]byte, blob.MaxSize)
	content[7] = 1
	worst := func(n int) string { return strings.Repeat(`"`, n) } // twice as long in JSON
	in := artifact.Tagged{
		Kind: strings.Repeat("k", 64), Key: worst(256), Title: strings.Repeat("\u2028", 85), Owner: worst(1024), File: worst(255), Content: content,
		Data: json.RawMessage(`"` + strings.Repeat("<", 64<<10-2) + `"`), // which HTML escapes would make too long
	}
	r := b.tag(1, in)
	got, all, err := b.Content(t.Context(), r.ID)
	if err != nil || !bytes.Equal(all, content) || cmp.Diff(r, got) != "" || !bytes.Equal(got.Data, in.Data) {
		t.Errorf("error %v, %d bytes", err, len(all))
	}
}

func TestEmptyFilesAreFiles(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	r := b.tag(1, artifact.Tagged{Kind: "k", Key: "x", File: "empty"})
	if got, content, err := b.Content(t.Context(), r.ID); err != nil || got.File != "empty" || len(content) != 0 {
		t.Errorf("got %+v, %q, error %v", got, content, err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	r := b.tag(1, artifact.Tagged{Kind: "k", Key: "x", File: "f", Content: []byte("c")})
	for _, id := range []string{"", "art_", "x", r.ID + "a", r.ID[:29], strings.ToUpper(r.ID), "art_" + strings.Repeat("a", 26), "../demo/" + r.ID, "art_" + strings.Repeat("\x00", 26), "art_" + strings.Repeat("a", 600)} {
		if _, err := b.Get(t.Context(), id); bdkerr.CodeOf(err) != bdkerr.NotFound {
			t.Errorf("Get %.40q: error %v", id, err)
		}
		if _, _, err := b.Content(t.Context(), id); bdkerr.CodeOf(err) != bdkerr.NotFound {
			t.Errorf("Content of %.40q: error %v", id, err)
		}
	}
	if err := b.blobs.Delete(t.Context(), blob.RefOf([]byte("c"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Content(t.Context(), r.ID); bdkerr.CodeOf(err) != bdkerr.NotFound {
		t.Errorf("a file that is gone: error %v", err)
	}
}

// corrupt returns what no Tag writes, made of what it does.
func corrupt(t testing.TB, value []byte) map[string][]byte {
	t.Helper()
	bad := map[string][]byte{
		"nothing": nil, "no JSON": []byte("{"), "an array": []byte("[]"), "null": []byte("null"), "no fields": []byte("{}"),
	}
	for name, field := range map[string]string{
		"another id": `"id":"art_x"`, "another kind": `"kind":"z"`, "another key": `"key":"z"`, "another owner": `"owner":"bob"`, "no title": `"title":""`,
		"a file in a folder": `"file":"a/b"`, "no such blob": `"blob":"x"`, "no creation": `"createdAt":"0001-01-01T00:00:00Z"`,
		"an update too early": `"updatedAt":"2000-01-01T00:00:00Z"`, "no time": `"updatedAt":7`,
	} {
		bad[name] = fmt.Appendf(nil, `%s,%s}`, bytes.TrimSuffix(value, []byte("}")), field) // the last of two fields counts
		if !json.Valid(bad[name]) {
			t.Fatalf("%s: %s", name, bad[name])
		}
	}
	return bad
}

func TestEntriesThatCannotBeReadHideNoOthersAndAreMended(t *testing.T) {
	t.Parallel()
	b := open(t, 0)
	b.tag(1, artifact.Tagged{Kind: "k", Key: "good"})
	in := artifact.Tagged{Kind: "k", Key: "bad", File: "f", Content: []byte("c")}
	r := b.tag(2, in)
	key := "artifact/demo/" + r.ID
	e, err := b.entries.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range corrupt(t, e.Value) {
		if err := errors.Join(b.entries.Delete(t.Context(), key, 0), b.entries.Create(t.Context(), key, value, 0)); err != nil {
			t.Fatal(err)
		}
		b.log.Reset()
		if d := cmp.Diff([]string{"good"}, b.keys(artifact.Query{})); d != "" || !strings.Contains(b.log.String(), r.ID) {
			t.Errorf("%s: logged %q, listed (-want +got):\n%s", name, b.log.String(), d)
		}
		if _, err := b.Get(t.Context(), r.ID); bdkerr.CodeOf(err) != bdkerr.Internal {
			t.Errorf("%s: got error %v", name, err)
		}
		if got := b.tag(3, in); !got.CreatedAt.Equal(second(3)) {
			t.Errorf("%s: tagged again, it is of %v", name, got.CreatedAt)
		}
		if d := cmp.Diff([]string{"bad", "good"}, b.keys(artifact.Query{})); d != "" {
			t.Errorf("%s: tagged again (-want +got):\n%s", name, d)
		}
	}
}

func TestNewRefusesWhatIsNoSlug(t *testing.T) {
	t.Parallel()
	for _, slug := range []string{"", "a/b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken", slug)
				}
			}()
			artifact.New(nil, nil, artifact.Options{Agent: slug})
		}()
	}
}

// FuzzEntries: whatever stands in the store, reading it is no panic, and what is read can be recorded again as it is.
func FuzzEntries(f *testing.F) {
	b := open(f, 0)
	r := b.tag(1, artifact.Tagged{Kind: "k", Key: "x", Data: json.RawMessage(`{"a":[1]}`), File: "f", Content: []byte("c")})
	key := "artifact/demo/" + r.ID
	e, err := b.entries.Get(f.Context(), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.Value)
	for _, value := range corrupt(f, e.Value) {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		b := open(t, 0)
		if b.entries.Create(t.Context(), key, value, 0) != nil {
			t.Skip("no value")
		}
		list, err := b.List(t.Context(), artifact.Query{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Get(t.Context(), r.ID)
		if (err == nil) != (len(list) == 1) {
			t.Fatalf("Get: error %v; List: %v", err, list)
		}
		if err != nil {
			return
		}
		in := artifact.Tagged{Kind: got.Kind, Key: got.Key, Title: got.Title, Data: got.Data, File: got.File, Owner: got.Owner, SessionID: got.SessionID}
		if again, err := b.Tag(t.Context(), in); err != nil || again.ID != r.ID || !again.CreatedAt.Equal(got.CreatedAt) {
			t.Fatalf("got %+v, error %v", again, err)
		}
	})
}

// BenchmarkTagNew measures a new artifact beside as many as are kept by default, of which it evicts one.
func BenchmarkTagNew(b *testing.B) {
	s := open(b, 0)
	for n := range artifact.DefaultMax {
		s.tag(n, artifact.Tagged{Kind: "k", Key: fmt.Sprint(n)})
	}
	for n := 0; b.Loop(); n++ {
		s.tag(n, artifact.Tagged{Kind: "k", Key: fmt.Sprint("new", n)})
	}
}
