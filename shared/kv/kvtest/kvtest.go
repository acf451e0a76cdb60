// Package kvtest is the suite that every driver of package kv passes.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/kv"
)

// Harness is one empty medium under test.
type Harness struct {
	// Open returns a driver over the medium. What one driver has written, every later one sees; a medium that lives in
	// memory returns the same driver again.
	Open func(t *testing.T) kv.Driver
}

// Run runs the suite; each case gets its own harness.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"an entry is kept until it is changed", testLifecycle},
		{"a key is created once", testCreate},
		{"a swap needs the current version", testSwap},
		{"a delete needs the current version", testDelete},
		{"a version is not used twice", testVersions},
		{"a try that is repeated succeeds", testRetry},
		{"an expired entry does not exist", testExpiry},
		{"a swap renews the expiry", testRenew},
		{"a sweep removes the expired only", testSweep},
		{"any value comes back", testValues},
		{"values are not shared with the caller", testAliasing},
		{"keys and values have limits", testLimits},
		{"keys are told apart by their bytes", testKeys},
		{"a list is ordered, selected and paged", testList},
		{"a list of many expired entries is full", testListExpired},
		{"one of many creators wins", testCreateRace},
		{"racing swaps lose no update", testSwapRace},
		{"an ended context is an error", testContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := &handClock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
			h := newHarness(t)
			b := &bed{harness: h, driver: h.Open(t), clock: now}
			b.Store = kv.New(b.driver, kv.Options{Clock: now})
			c.run(t, b)
		})
	}
}

// bed is what a case works with.
type bed struct {
	*kv.Store

	harness Harness
	driver  kv.Driver
	clock   *handClock
}

// handClock is a clock that is moved by hand.
type handClock struct {
	clock.System

	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (b *bed) create(t *testing.T, key, value string, ttl time.Duration) {
	t.Helper()
	if err := b.Create(t.Context(), key, []byte(value), ttl); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) get(t *testing.T, key string) kv.Entry {
	t.Helper()
	e, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (b *bed) value(t *testing.T, key string) string {
	t.Helper()
	return string(b.get(t, key).Value)
}

func (b *bed) keys(t *testing.T, prefix, after string, limit int) []string {
	t.Helper()
	list, err := b.List(t.Context(), prefix, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, 0, len(list))
	for _, e := range list {
		keys = append(keys, e.Key)
	}
	return keys
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func testLifecycle(t *testing.T, b *bed) {
	_, err := b.Get(t.Context(), "a/1")
	wantErr(t, "Get of nothing", err, kv.ErrNotFound)

	b.create(t, "a/1", "one", 0)
	first := b.get(t, "a/1")
	if first.Version <= 0 {
		t.Errorf("got version %d, want a positive one", first.Version)
	}
	if diff := cmp.Diff(kv.Entry{Key: "a/1", Value: []byte("one"), Version: first.Version}, first); diff != "" {
		t.Errorf("created (-want +got)\n%s", diff)
	}
	wantErr(t, "Swap", b.Swap(t.Context(), "a/1", first.Version, []byte("two"), 0), nil)

	reopened := kv.New(b.harness.Open(t), kv.Options{Clock: b.clock})
	second, err := reopened.Get(t.Context(), "a/1")
	if err != nil || string(second.Value) != "two" {
		t.Errorf("another driver reads %q, %v, want two", second.Value, err)
	}
	wantErr(t, "Delete", reopened.Delete(t.Context(), "a/1", second.Version), nil)
	_, err = b.Get(t.Context(), "a/1")
	wantErr(t, "Get of what another driver deleted", err, kv.ErrNotFound)
}

func testCreate(t *testing.T, b *bed) {
	b.create(t, "a", "one", time.Hour)
	wantErr(t, "Create again", b.Create(t.Context(), "a", []byte("two"), 0), kv.ErrExists)
	wantErr(t, "Create of the same value", b.Create(t.Context(), "a", []byte("one"), time.Hour), kv.ErrExists)
	if got := b.value(t, "a"); got != "one" {
		t.Errorf("got %q, want the first value", got)
	}
}

func testSwap(t *testing.T, b *bed) {
	wantErr(t, "Swap of nothing", b.Swap(t.Context(), "a", 1, nil, 0), kv.ErrVersion)
	wantErr(t, "Swap of nothing, version 0", b.Swap(t.Context(), "a", 0, nil, 0), kv.ErrVersion)
	b.create(t, "a", "one", 0)
	one := b.get(t, "a").Version
	wantErr(t, "Swap", b.Swap(t.Context(), "a", one, []byte("two"), 0), nil)
	wantErr(t, "Swap of an old version", b.Swap(t.Context(), "a", one, []byte("three"), 0), kv.ErrVersion)
	wantErr(t, "Swap of version 0", b.Swap(t.Context(), "a", 0, []byte("three"), 0), kv.ErrVersion)
	if got := b.value(t, "a"); got != "two" {
		t.Errorf("got %q, want two", got)
	}
}

func testDelete(t *testing.T, b *bed) {
	wantErr(t, "Delete of nothing", b.Delete(t.Context(), "a", 1), kv.ErrVersion)
	wantErr(t, "Delete of nothing, any version", b.Delete(t.Context(), "a", 0), nil)
	b.create(t, "a", "one", 0)
	b.create(t, "b", "one", 0)
	one := b.get(t, "a").Version
	wantErr(t, "Swap", b.Swap(t.Context(), "a", one, []byte("two"), 0), nil)
	wantErr(t, "Delete of an old version", b.Delete(t.Context(), "a", one), kv.ErrVersion)
	wantErr(t, "Delete", b.Delete(t.Context(), "a", b.get(t, "a").Version), nil)
	wantErr(t, "Delete of any version", b.Delete(t.Context(), "b", 0), nil)
	if got := b.keys(t, "", "", 0); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func testVersions(t *testing.T, b *bed) {
	seen := map[int64]bool{}
	for i := range 20 {
		b.create(t, "a", strconv.Itoa(i), 0)
		one := b.get(t, "a").Version
		wantErr(t, "Swap", b.Swap(t.Context(), "a", one, []byte("x"), 0), nil)
		two := b.get(t, "a").Version
		if seen[one] || seen[two] || one == two {
			t.Fatalf("round %d repeats a version: %d, %d", i, one, two)
		}
		seen[one], seen[two] = true, true
		wantErr(t, "Delete", b.Delete(t.Context(), "a", two), nil)
	}
}

// testRetry: a client that does not know whether its call arrived sends it again.
func testRetry(t *testing.T, b *bed) {
	ctx, now := t.Context(), b.clock.Now()
	e := kv.Entry{Key: "a", Value: []byte("one"), Version: 7}
	for range 2 {
		wantErr(t, "Create", b.driver.Create(ctx, e, now), nil)
	}
	e.Version, e.Value = 8, []byte("two")
	for range 2 {
		wantErr(t, "Swap", b.driver.Swap(ctx, e, 7, now), nil)
	}
	e.Version = 9
	wantErr(t, "Create of another", b.driver.Create(ctx, e, now), kv.ErrExists)
	wantErr(t, "Swap by another", b.driver.Swap(ctx, e, 7, now), kv.ErrVersion)
	if got := b.value(t, "a"); got != "two" {
		t.Errorf("got %q, want two", got)
	}
}

func testExpiry(t *testing.T, b *bed) {
	b.create(t, "a", "old", 1500*time.Microsecond) // lives for two milliseconds
	old := b.get(t, "a")
	if want := b.clock.Now().Add(2 * time.Millisecond); !old.ExpiresAt.Equal(want) {
		t.Errorf("expires at %v, want %v", old.ExpiresAt, want)
	}
	b.clock.advance(2*time.Millisecond - 1)
	b.get(t, "a")
	wantErr(t, "Create before the expiry", b.Create(t.Context(), "a", []byte("new"), 0), kv.ErrExists)
	b.clock.advance(1)
	_, err := b.Get(t.Context(), "a")
	wantErr(t, "Get", err, kv.ErrNotFound)
	wantErr(t, "Swap", b.Swap(t.Context(), "a", old.Version, []byte("new"), 0), kv.ErrVersion)
	if got := b.keys(t, "", "", 0); len(got) != 0 {
		t.Errorf("listed: %q", got)
	}
	b.create(t, "a", "new", 0)
	wantErr(t, "Swap by the former holder", b.Swap(t.Context(), "a", old.Version, []byte("mine"), 0), kv.ErrVersion)
	wantErr(t, "Delete by the former holder", b.Delete(t.Context(), "a", old.Version), kv.ErrVersion)
	b.clock.advance(1000 * time.Hour)
	if got := b.get(t, "a"); string(got.Value) != "new" || !got.ExpiresAt.IsZero() {
		t.Errorf("got %q until %v, want new for ever", got.Value, got.ExpiresAt)
	}
}

func testRenew(t *testing.T, b *bed) {
	b.create(t, "a", "x", time.Minute)
	for range 3 {
		b.clock.advance(50 * time.Second)
		wantErr(t, "Swap", b.Swap(t.Context(), "a", b.get(t, "a").Version, []byte("x"), time.Minute), nil)
	}
	if got, want := b.get(t, "a").ExpiresAt, b.clock.Now().Add(time.Minute); !got.Equal(want) {
		t.Errorf("expires at %v, want %v", got, want)
	}
}

func testSweep(t *testing.T, b *bed) {
	const expired = 1203 // more than two pages
	for i := range expired {
		b.create(t, fmt.Sprintf("gone/%04d", i), "x", time.Second)
	}
	b.create(t, "kept/ever", "x", 0)
	b.create(t, "kept/longer", "x", time.Hour)
	b.clock.advance(time.Minute)
	_, sweeps := b.driver.(kv.Sweeper)
	want := 0
	if sweeps {
		want = expired
	}
	for _, want := range []int{want, 0} {
		if got, err := b.Sweep(t.Context()); err != nil || got != want {
			t.Errorf("Sweep removed %d, %v, want %d", got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"kept/ever", "kept/longer"}, b.keys(t, "", "", 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := b.driver.Get(t.Context(), "gone/0000"); sweeps && !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the driver still has a swept entry: %v", err)
	}
}

func testValues(t *testing.T, b *bed) {
	for name, value := range map[string][]byte{
		"nil": nil, "empty": {}, "nul": {0}, "json": []byte(`{"a":"é"}`), "not utf-8": {0xff, 0xfe, 0},
		"largest": bytes.Repeat([]byte{0xa5}, kv.MaxValue),
	} {
		b.create(t, name, string(value), 0)
		if got := b.get(t, name).Value; !bytes.Equal(got, value) {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(value))
		}
	}
}

func testAliasing(t *testing.T, b *bed) {
	value := []byte("one")
	if err := b.Create(t.Context(), "a", value, 0); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	b.get(t, "a").Value[1] = 'X'
	list, err := b.List(t.Context(), "a", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	list[0].Value[2] = 'X'
	if got := b.value(t, "a"); got != "one" {
		t.Errorf("got %q, want one", got)
	}
}

func testLimits(t *testing.T, b *bed) {
	for name, tc := range map[string]struct {
		key   string
		value []byte
		ttl   time.Duration
		want  bdkerr.Code
	}{
		"empty key":      {"", nil, 0, bdkerr.InvalidRequest},
		"longest key":    {strings.Repeat("k", kv.MaxKey), nil, 0, ""},
		"long key":       {strings.Repeat("k", kv.MaxKey+1), nil, 0, bdkerr.InvalidRequest},
		"not utf-8":      {"a\xff", nil, 0, bdkerr.InvalidRequest},
		"nul":            {"a\x00b", nil, 0, bdkerr.InvalidRequest},
		"large value":    {"v", make([]byte, kv.MaxValue+1), 0, bdkerr.PayloadTooLarge},
		"negative ttl":   {"t", nil, -1, bdkerr.InvalidRequest},
		"longest ttl":    {"l", nil, 100 * 365 * 24 * time.Hour, ""},
		"every odd sign": {"../%00 \"'`\n\\é漢🙂", nil, 0, ""},
	} {
		if got := bdkerr.CodeOf(b.Create(t.Context(), tc.key, tc.value, tc.ttl)); got != tc.want {
			t.Errorf("%s: Create: got code %q, want %q", name, got, tc.want)
		}
		if got := bdkerr.CodeOf(b.Swap(t.Context(), tc.key, 1, tc.value, tc.ttl)); tc.want != "" && got != tc.want {
			t.Errorf("%s: Swap: got code %q, want %q", name, got, tc.want)
		}
	}
	_, err := b.Get(t.Context(), "")
	if get, del := bdkerr.CodeOf(err), bdkerr.CodeOf(b.Delete(t.Context(), "", 0)); get != bdkerr.InvalidRequest || del != bdkerr.InvalidRequest {
		t.Errorf("empty key: Get %q, Delete %q", get, del)
	}
}

func testKeys(t *testing.T, b *bed) {
	keys := []string{"A", "a", "a ", "a/", "a/b", "á", "a\u0301", "1", "01", "%", "_"}
	for _, key := range keys {
		b.create(t, key, key, 0)
	}
	for _, key := range keys {
		if got := b.value(t, key); got != key {
			t.Errorf("%q: got the value of %q", key, got)
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(keys, b.keys(t, "", "", 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func testList(t *testing.T, b *bed) {
	for _, key := range []string{"b/2", "a/1", "b/1", "b/10", "c/1", "b", "b%/1", "b/é", "B/1"} {
		b.create(t, key, "x", 0)
	}
	for name, tc := range map[string]struct {
		prefix, after string
		limit         int
		want          []string
	}{
		"all":                   {"", "", 0, []string{"B/1", "a/1", "b", "b%/1", "b/1", "b/10", "b/2", "b/é", "c/1"}},
		"prefix":                {"b/", "", 0, []string{"b/1", "b/10", "b/2", "b/é"}},
		"first page":            {"b/", "", 2, []string{"b/1", "b/10"}},
		"second page":           {"b/", "b/10", 2, []string{"b/2", "b/é"}},
		"after the last":        {"b/", "b/é", 2, []string{}},
		"after what is missing": {"b/", "b/11", 1, []string{"b/2"}},
		"after lies before":     {"b/", "a", 1, []string{"b/1"}},
		"after lies behind":     {"b/", "c", 1, []string{}},
		"none":                  {"z", "", 0, []string{}},
		"wildcards are signs":   {"b%", "", 0, []string{"b%/1"}},
		"the key itself":        {"b/10", "", 0, []string{"b/10"}},
		"limit too large":       {"c", "", 1 << 30, []string{"c/1"}},
	} {
		if diff := cmp.Diff(tc.want, b.keys(t, tc.prefix, tc.after, tc.limit)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	list, err := b.List(t.Context(), "a/", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]kv.Entry{b.get(t, "a/1")}, list); diff != "" {
		t.Errorf("List differs from Get (-get +list)\n%s", diff)
	}
}

func testListExpired(t *testing.T, b *bed) {
	for i := range 300 {
		b.create(t, fmt.Sprintf("a/%03d", i), "x", time.Second)
	}
	b.create(t, "a/300", "x", 0)
	b.create(t, "a/301", "x", 0)
	b.clock.advance(time.Second)
	if diff := cmp.Diff([]string{"a/300", "a/301"}, b.keys(t, "a/", "", 2)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func testCreateRace(t *testing.T, b *bed) {
	b.create(t, "expired", "x", time.Second)
	b.clock.advance(time.Minute)
	for _, key := range []string{"fresh", "expired"} {
		var won atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 100 {
			wg.Go(func() {
				<-start
				switch err := b.Create(t.Context(), key, []byte(strconv.Itoa(i)), 0); {
				case err == nil:
					won.Add(int64(1 + 1000*i))
				case !errors.Is(err, kv.ErrExists):
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		if winners, who := won.Load()%1000, won.Load()/1000; winners != 1 || b.value(t, key) != strconv.FormatInt(who, 10) {
			t.Errorf("%s: %d creators won, the value is %q", key, winners, b.value(t, key))
		}
	}
}

func testSwapRace(t *testing.T, b *bed) {
	const workers, each = 8, 20
	b.create(t, "n", "0", 0)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done, tries := 0, 0; done < each; tries++ {
				e, err := b.Get(t.Context(), "n")
				if err != nil || tries == 100*workers*each {
					t.Error("gave up: ", err)
					return
				}
				n, _ := strconv.Atoi(string(e.Value))
				err = b.Swap(t.Context(), "n", e.Version, []byte(strconv.Itoa(n+1)), 0)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kv.ErrVersion):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := b.value(t, "n"); got != strconv.Itoa(workers*each) {
		t.Errorf("got %s, want %d", got, workers*each)
	}
}

// testContext: a driver may finish what it is asked to do, but it must not report something else than that or the cause.
func testContext(t *testing.T, b *bed) {
	cause := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := b.Create(ctx, "a", []byte("x"), 0)
	_, getErr := b.Get(t.Context(), "a")
	switch {
	case err == nil && getErr != nil:
		t.Errorf("Create reported success, then Get: %v", getErr)
	case err != nil && (!errors.Is(err, cause) || !errors.Is(getErr, kv.ErrNotFound)):
		t.Errorf("Create: %v, then Get: %v; want the cause and nothing stored", err, getErr)
	}
}
