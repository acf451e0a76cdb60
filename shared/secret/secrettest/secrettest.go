// Package secrettest is the suite that every driver of package secret passes.
package secrettest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/secret"
)

// Harness is one medium under test, with a secret that has no version.
type Harness struct {
	// Open returns a driver over the medium. A medium that lives in memory returns the same driver again.
	Open func(t *testing.T) secret.Driver
	// Put makes version the newest one, the way an operator does.
	Put func(t *testing.T, version string)
}

// Run runs the suite; each case gets its own harness.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"a secret without a version is an error", testNone},
		{"the newest version and the one before are valid", testVersions},
		{"a version that is put again is still the newest", testAgain},
		{"a version comes back as it was put", testTexts},
		{"drivers see the versions of each other", testOpen},
		{"a store shows a new version after its time", testStore},
		{"what is returned is not shared", testAliasing},
		{"many may read while versions change", testRace},
		{"an ended context is an error", testContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newHarness(t))
		})
	}
}

func testNone(t *testing.T, h Harness) {
	if got, err := h.Open(t).Read(t.Context()); err == nil {
		t.Errorf("got %q; want an error", got)
	}
}

func testVersions(t *testing.T, h Harness) {
	d := h.Open(t)
	for _, want := range [][]string{{"1"}, {"2", "1"}, {"3", "2"}, {"4", "3"}} {
		h.Put(t, want[0])
		expect(t, d, want...)
		expect(t, d, want...)
	}
}

func testAgain(t *testing.T, h Harness) {
	d := h.Open(t)
	for _, v := range []string{"a", "b", "a"} {
		h.Put(t, v)
	}
	expect(t, d, "a", "b")
}

func testTexts(t *testing.T, h Harness) {
	d := h.Open(t)
	for _, text := range []string{
		`{"bearer:ci":"s1","KEY":"v"}`, "not JSON", " \t\r\n ", "ümlaut 漢字 \U0001F600 <&> \u2028", `\u0041"\`, strings.Repeat("x", 64<<10),
	} {
		h.Put(t, text)
		got, err := d.Read(t.Context())
		if err != nil || got[0] != text {
			t.Errorf("put %.40q: got %.40q, error %v", text, got, err)
		}
	}
}

func testOpen(t *testing.T, h Harness) {
	one, two := h.Open(t), h.Open(t)
	h.Put(t, "1")
	expect(t, one, "1")
	h.Put(t, "2")
	expect(t, one, "2", "1")
	expect(t, two, "2", "1")
}

func testStore(t *testing.T, h Harness) {
	h.Put(t, `{"KEY":"old","bearer:ci":"t1"}`)
	store := secret.New(h.Open(t), secret.Options{TTL: 1}) // every read is a new one
	want := []secret.Values{{"KEY": "old", "bearer:ci": "t1"}}
	for range 2 {
		got, err := store.Get(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("error %v (-want +got):\n%s", err, diff)
		}
		h.Put(t, `{"KEY":"new","bearer:ci":"t2"}`)
		want = []secret.Values{{"KEY": "new", "bearer:ci": "t2"}, want[0]}
	}
}

func testAliasing(t *testing.T, h Harness) {
	d := h.Open(t)
	h.Put(t, "1")
	got, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got[0] = "changed"
	expect(t, d, "1")
}

func testRace(t *testing.T, h Harness) {
	const versions = 20
	d := h.Open(t)
	h.Put(t, "0")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := 0
			for range versions {
				got, err := d.Read(t.Context())
				if err != nil {
					t.Errorf("reading: %v", err)
					return
				}
				n, err := strconv.Atoi(got[0])
				if err != nil || n < last || len(got) > 2 {
					t.Errorf("got %q after %d, error %v", got, last, err)
					return
				}
				last = n
			}
		})
	}
	for n := 1; n <= versions; n++ {
		h.Put(t, strconv.Itoa(n))
	}
	wg.Wait()
	expect(t, d, "20", "19")
}

func testContext(t *testing.T, h Harness) {
	h.Put(t, "1")
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if got, err := h.Open(t).Read(ctx); !errors.Is(err, cause) {
		t.Errorf("got %q, error %v; want the cause", got, err)
	}
}

func expect(t *testing.T, d secret.Driver, want ...string) {
	t.Helper()
	got, err := d.Read(t.Context())
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("versions (-want +got):\n%s", diff)
	}
}
