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
		run  func(*bed)
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
			b := &bed{T: t, harness: h, driver: h.Open(t), clock: now}
			b.Store = kv.New(b.driver, kv.Options{Clock: now})
			c.run(b)
		})
	}
}

// bed is what a case works with.
type bed struct {
	*testing.T
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

func (b *bed) create(key, value string, ttl time.Duration) {
	b.Helper()
	if err := b.Create(b.Context(), key, []byte(value), ttl); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) get(key string) kv.Entry {
	b.Helper()
	e, err := b.Get(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func (b *bed) value(key string) string {
	b.Helper()
	return string(b.get(key).Value)
}

func (b *bed) keys(prefix, after string, limit int) []string {
	b.Helper()
	list, err := b.List(b.Context(), prefix, after, limit)
	if err != nil {
		b.Fatal(err)
	}
	keys := make([]string, 0, len(list))
	for _, e := range list {
		keys = append(keys, e.Key)
	}
	return keys
}

func (b *bed) wantErr(what string, got, want error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func testLifecycle(b *bed) {
	_, err := b.Get(b.Context(), "a/1")
	b.wantErr("Get of nothing", err, kv.ErrNotFound)

	b.create("a/1", "one", 0)
	first := b.get("a/1")
	if first.Version <= 0 {
		b.Errorf("got version %d, want a positive one", first.Version)
	}
	if diff := cmp.Diff(kv.Entry{Key: "a/1", Value: []byte("one"), Version: first.Version}, first); diff != "" {
		b.Errorf("created (-want +got)\n%s", diff)
	}
	b.wantErr("Swap", b.Swap(b.Context(), "a/1", first.Version, []byte("two"), 0), nil)

	reopened := kv.New(b.harness.Open(b.T), kv.Options{Clock: b.clock})
	second, err := reopened.Get(b.Context(), "a/1")
	if err != nil || string(second.Value) != "two" {
		b.Errorf("another driver reads %q, %v, want two", second.Value, err)
	}
	b.wantErr("Delete", reopened.Delete(b.Context(), "a/1", second.Version), nil)
	_, err = b.Get(b.Context(), "a/1")
	b.wantErr("Get of what another driver deleted", err, kv.ErrNotFound)
}

func testCreate(b *bed) {
	b.create("a", "one", time.Hour)
	b.wantErr("Create again", b.Create(b.Context(), "a", []byte("two"), 0), kv.ErrExists)
	b.wantErr("Create of the same value", b.Create(b.Context(), "a", []byte("one"), time.Hour), kv.ErrExists)
	if got := b.value("a"); got != "one" {
		b.Errorf("got %q, want the first value", got)
	}
}

func testSwap(b *bed) {
	b.wantErr("Swap of nothing", b.Swap(b.Context(), "a", 1, nil, 0), kv.ErrVersion)
	b.wantErr("Swap of nothing, version 0", b.Swap(b.Context(), "a", 0, nil, 0), kv.ErrVersion)
	b.create("a", "one", 0)
	one := b.get("a").Version
	b.wantErr("Swap", b.Swap(b.Context(), "a", one, []byte("two"), 0), nil)
	b.wantErr("Swap of an old version", b.Swap(b.Context(), "a", one, []byte("three"), 0), kv.ErrVersion)
	b.wantErr("Swap of version 0", b.Swap(b.Context(), "a", 0, []byte("three"), 0), kv.ErrVersion)
	if got := b.value("a"); got != "two" {
		b.Errorf("got %q, want two", got)
	}
}

func testDelete(b *bed) {
	b.wantErr("Delete of nothing", b.Delete(b.Context(), "a", 1), kv.ErrVersion)
	b.wantErr("Delete of nothing, any version", b.Delete(b.Context(), "a", 0), nil)
	b.create("a", "one", 0)
	b.create("b", "one", 0)
	one := b.get("a").Version
	b.wantErr("Swap", b.Swap(b.Context(), "a", one, []byte("two"), 0), nil)
	b.wantErr("Delete of an old version", b.Delete(b.Context(), "a", one), kv.ErrVersion)
	b.wantErr("Delete", b.Delete(b.Context(), "a", b.get("a").Version), nil)
	b.wantErr("Delete of any version", b.Delete(b.Context(), "b", 0), nil)
	if got := b.keys("", "", 0); len(got) != 0 {
		b.Errorf("left: %q", got)
	}
}

func testVersions(b *bed) {
	seen := map[int64]bool{}
	for i := range 20 {
		b.create("a", strconv.Itoa(i), 0)
		one := b.get("a").Version
		b.wantErr("Swap", b.Swap(b.Context(), "a", one, []byte("x"), 0), nil)
		two := b.get("a").Version
		if seen[one] || seen[two] || one == two {
			b.Fatalf("round %d repeats a version: %d, %d", i, one, two)
		}
		seen[one], seen[two] = true, true
		b.wantErr("Delete", b.Delete(b.Context(), "a", two), nil)
	}
}

// testRetry: a client that does not know whether its call arrived sends it again.
func testRetry(b *bed) {
	ctx, now := b.Context(), b.clock.Now()
	e := kv.Entry{Key: "a", Value: []byte("one"), Version: 7}
	for range 2 {
		b.wantErr("Create", b.driver.Create(ctx, e, now), nil)
	}
	e.Version, e.Value = 8, []byte("two")
	for range 2 {
		b.wantErr("Swap", b.driver.Swap(ctx, e, 7, now), nil)
	}
	e.Version = 9
	b.wantErr("Create of another", b.driver.Create(ctx, e, now), kv.ErrExists)
	b.wantErr("Swap by another", b.driver.Swap(ctx, e, 7, now), kv.ErrVersion)
	if got := b.value("a"); got != "two" {
		b.Errorf("got %q, want two", got)
	}
}

func testExpiry(b *bed) {
	b.create("a", "old", 1500*time.Microsecond) // lives for two milliseconds
	old := b.get("a")
	if want := b.clock.Now().Add(2 * time.Millisecond); !old.ExpiresAt.Equal(want) {
		b.Errorf("expires at %v, want %v", old.ExpiresAt, want)
	}
	b.clock.advance(2*time.Millisecond - 1)
	b.get("a")
	b.wantErr("Create before the expiry", b.Create(b.Context(), "a", []byte("new"), 0), kv.ErrExists)
	b.clock.advance(1)
	_, err := b.Get(b.Context(), "a")
	b.wantErr("Get", err, kv.ErrNotFound)
	b.wantErr("Swap", b.Swap(b.Context(), "a", old.Version, []byte("new"), 0), kv.ErrVersion)
	if got := b.keys("", "", 0); len(got) != 0 {
		b.Errorf("listed: %q", got)
	}
	b.create("a", "new", 0)
	b.wantErr("Swap by the former holder", b.Swap(b.Context(), "a", old.Version, []byte("mine"), 0), kv.ErrVersion)
	b.wantErr("Delete by the former holder", b.Delete(b.Context(), "a", old.Version), kv.ErrVersion)
	b.clock.advance(1000 * time.Hour)
	if got := b.get("a"); string(got.Value) != "new" || !got.ExpiresAt.IsZero() {
		b.Errorf("got %q until %v, want new for ever", got.Value, got.ExpiresAt)
	}
}

func testRenew(b *bed) {
	b.create("a", "x", time.Minute)
	for range 3 {
		b.clock.advance(50 * time.Second)
		b.wantErr("Swap", b.Swap(b.Context(), "a", b.get("a").Version, []byte("x"), time.Minute), nil)
	}
	if got, want := b.get("a").ExpiresAt, b.clock.Now().Add(time.Minute); !got.Equal(want) {
		b.Errorf("expires at %v, want %v", got, want)
	}
}

func testSweep(b *bed) {
	const expired = 1203 // more than two pages
	for i := range expired {
		b.create(fmt.Sprintf("gone/%04d", i), "x", time.Second)
	}
	b.create("kept/ever", "x", 0)
	b.create("kept/longer", "x", time.Hour)
	b.clock.advance(time.Minute)
	_, sweeps := b.driver.(kv.Sweeper)
	want := 0
	if sweeps {
		want = expired
	}
	for _, want := range []int{want, 0} {
		if got, err := b.Sweep(b.Context()); err != nil || got != want {
			b.Errorf("Sweep removed %d, %v, want %d", got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"kept/ever", "kept/longer"}, b.keys("", "", 0)); diff != "" {
		b.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := b.driver.Get(b.Context(), "gone/0000"); sweeps && !errors.Is(err, kv.ErrNotFound) {
		b.Errorf("the driver still has a swept entry: %v", err)
	}
}

func testValues(b *bed) {
	for name, value := range map[string][]byte{
		"nil": nil, "empty": {}, "nul": {0}, "json": []byte(`{"a":"é"}`), "not utf-8": {0xff, 0xfe, 0},
		"largest": bytes.Repeat([]byte{0xa5}, kv.MaxValue),
	} {
		b.create(name, string(value), 0)
		if got := b.get(name).Value; !bytes.Equal(got, value) {
			b.Errorf("%s: got %d bytes, want %d", name, len(got), len(value))
		}
	}
}

func testAliasing(b *bed) {
	value := []byte("one")
	if err := b.Create(b.Context(), "a", value, 0); err != nil {
		b.Fatal(err)
	}
	value[0] = 'X'
	b.get("a").Value[1] = 'X'
	list, err := b.List(b.Context(), "a", "", 0)
	if err != nil {
		b.Fatal(err)
	}
	list[0].Value[2] = 'X'
	if got := b.value("a"); got != "one" {
		b.Errorf("got %q, want one", got)
	}
}

func testLimits(b *bed) {
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
		if got := bdkerr.CodeOf(b.Create(b.Context(), tc.key, tc.value, tc.ttl)); got != tc.want {
			b.Errorf("%s: Create: got code %q, want %q", name, got, tc.want)
		}
		if got := bdkerr.CodeOf(b.Swap(b.Context(), tc.key, 1, tc.value, tc.ttl)); tc.want != "" && got != tc.want {
			b.Errorf("%s: Swap: got code %q, want %q", name, got, tc.want)
		}
	}
	_, err := b.Get(b.Context(), "")
	if get, del := bdkerr.CodeOf(err), bdkerr.CodeOf(b.Delete(b.Context(), "", 0)); get != bdkerr.InvalidRequest || del != bdkerr.InvalidRequest {
		b.Errorf("empty key: Get %q, Delete %q", get, del)
	}
}

func testKeys(b *bed) {
	keys := []string{"A", "a", "a ", "a/", "a/b", "á", "a\u0301", "1", "01", "%", "_"}
	for _, key := range keys {
		b.create(key, key, 0)
	}
	for _, key := range keys {
		if got := b.value(key); got != key {
			b.Errorf("%q: got the value of %q", key, got)
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(keys, b.keys("", "", 0)); diff != "" {
		b.Errorf("(-want +got)\n%s", diff)
	}
}

func testList(b *bed) {
	for _, key := range []string{"b/2", "a/1", "b/1", "b/10", "c/1", "b", "b%/1", "b/é", "B/1"} {
		b.create(key, "x", 0)
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
		if diff := cmp.Diff(tc.want, b.keys(tc.prefix, tc.after, tc.limit)); diff != "" {
			b.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	list, err := b.List(b.Context(), "a/", "", 0)
	if err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff([]kv.Entry{b.get("a/1")}, list); diff != "" {
		b.Errorf("List differs from Get (-get +list)\n%s", diff)
	}
}

func testListExpired(b *bed) {
	for i := range 300 {
		b.create(fmt.Sprintf("a/%03d", i), "x", time.Second)
	}
	b.create("a/300", "x", 0)
	b.create("a/301", "x", 0)
	b.clock.advance(time.Second)
	if diff := cmp.Diff([]string{"a/300", "a/301"}, b.keys("a/", "", 2)); diff != "" {
		b.Errorf("(-want +got)\n%s", diff)
	}
}

func testCreateRace(b *bed) {
	b.create("expired", "x", time.Second)
	b.clock.advance(time.Minute)
	for _, key := range []string{"fresh", "expired"} {
		var won atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 100 {
			wg.Go(func() {
				<-start
				switch err := b.Create(b.Context(), key, []byte(strconv.Itoa(i)), 0); {
				case err == nil:
					won.Add(int64(1 + 1000*i))
				case !errors.Is(err, kv.ErrExists):
					b.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		if winners, who := won.Load()%1000, won.Load()/1000; winners != 1 || b.value(key) != strconv.FormatInt(who, 10) {
			b.Errorf("%s: %d creators won, the value is %q", key, winners, b.value(key))
		}
	}
}

func testSwapRace(b *bed) {
	const workers, each = 8, 20
	b.create("n", "0", 0)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done, tries := 0, 0; done < each; tries++ {
				e, err := b.Get(b.Context(), "n")
				if err != nil || tries == 100*workers*each {
					b.Error("gave up: ", err)
					return
				}
				n, _ := strconv.Atoi(string(e.Value))
				err = b.Swap(b.Context(), "n", e.Version, []byte(strconv.Itoa(n+1)), 0)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kv.ErrVersion):
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := b.value("n"); got != strconv.Itoa(workers*each) {
		b.Errorf("got %s, want %d", got, workers*each)
	}
}

// testContext: a driver may finish what it is asked to do, but it must not report something else than that or the cause.
func testContext(b *bed) {
	cause := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(cause)
	err := b.Create(ctx, "a", []byte("x"), 0)
	_, getErr := b.Get(b.Context(), "a")
	switch {
	case err == nil && getErr != nil:
		b.Errorf("Create reported success, then Get: %v", getErr)
	case err != nil && (!errors.Is(err, cause) || !errors.Is(getErr, kv.ErrNotFound)):
		b.Errorf("Create: %v, then Get: %v; want the cause and nothing stored", err, getErr)
	}
}
