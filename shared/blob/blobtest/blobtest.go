// Package blobtest is the suite that every driver of package blob passes.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
)

// Harness is one empty medium under test.
type Harness struct {
	// Open returns a driver over the medium. What one driver has written, every later one sees; a medium that lives in
	// memory returns the same driver again.
	Open func(t *testing.T) blob.Driver
	// Damage replaces the bytes stored under ref behind the driver's back.
	Damage func(t *testing.T, ref blob.Ref, data []byte)
}

// Run runs the suite; each case gets its own harness.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*bed)
	}{
		{"a blob is kept until it is deleted", testLifecycle},
		{"the name is the hash of the bytes", testName},
		{"any bytes come back", testValues},
		{"bytes are not shared with the caller", testAliasing},
		{"damage is noticed and mended", testDamage},
		{"a name of another form is refused", testRefs},
		{"a blob has a largest size", testSize},
		{"one blob is put, read and deleted at the same time", testRace},
		{"many blobs are put at the same time", testMany},
		{"an ended context is an error", testContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			c.run(&bed{T: t, Store: blob.New(h.Open(t)), harness: h})
		})
	}
}

// bed is what a case works with.
type bed struct {
	*testing.T
	*blob.Store

	harness Harness
}

func (b *bed) put(data []byte) blob.Ref {
	b.Helper()
	ref, err := b.Put(b.Context(), data)
	if err != nil {
		b.Fatal(err)
	}
	return ref
}

func (b *bed) wantData(ref blob.Ref, want []byte) {
	b.Helper()
	if got, err := b.Get(b.Context(), ref); err != nil || !bytes.Equal(got, want) {
		b.Errorf("Get: got %d bytes, %v, want %d bytes", len(got), err, len(want))
	}
}

func (b *bed) wantErr(ref blob.Ref, want error) {
	b.Helper()
	if got, err := b.Get(b.Context(), ref); !errors.Is(err, want) || got != nil {
		b.Errorf("Get: got %q and error %v, want %v", got, err, want)
	}
}

func (b *bed) wantHas(ref blob.Ref, want bool) {
	b.Helper()
	if got, err := b.Has(b.Context(), ref); err != nil || got != want {
		b.Errorf("Has: got %v, %v, want %v", got, err, want)
	}
}

func testLifecycle(b *bed) {
	data := []byte("one")
	ref := blob.RefOf(data)
	b.wantErr(ref, blob.ErrNotFound)
	b.wantHas(ref, false)
	for range 2 {
		if got := b.put(data); got != ref {
			b.Fatalf("got name %s, want %s", got, ref)
		}
		b.wantData(ref, data)
		b.wantHas(ref, true)
	}
	other := &bed{T: b.T, Store: blob.New(b.harness.Open(b.T)), harness: b.harness}
	other.wantData(ref, data)
	for range 2 {
		if err := other.Delete(b.Context(), ref); err != nil {
			b.Error(err)
		}
		b.wantErr(ref, blob.ErrNotFound)
		b.wantHas(ref, false)
	}
	b.put(data)
	b.wantData(ref, data)
}

func testName(b *bed) {
	const want = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	if got := b.put([]byte("hello\n")); got != want {
		b.Errorf("got %s, want %s", got, want)
	}
}

func testValues(b *bed) {
	for _, data := range [][]byte{nil, {}, {0}, []byte("é"), {0xff, 0xfe}, bytes.Repeat([]byte("0123456789abcdef"), 1<<17)} {
		b.wantData(b.put(data), data)
	}
}

func testAliasing(b *bed) {
	data := []byte("one")
	ref := b.put(data)
	data[0] = 'X'
	got, err := b.Get(b.Context(), ref)
	if err != nil {
		b.Fatal(err)
	}
	got[1] = 'X'
	b.wantData(ref, []byte("one"))
}

func testDamage(b *bed) {
	data := []byte("the right bytes")
	ref := b.put(data)
	for name, bad := range map[string][]byte{
		"empty": {}, "cut": data[:5], "longer": append(slices.Clip(data), '!'), "same length": []byte("the wrong bytes"),
	} {
		b.harness.Damage(b.T, ref, bad)
		if got, err := b.Get(b.Context(), ref); !errors.Is(err, blob.ErrCorrupt) || got != nil {
			b.Errorf("%s: got %q and error %v, want ErrCorrupt", name, got, err)
		}
		b.put(data)
		b.wantData(ref, data)
	}
	b.harness.Damage(b.T, ref, nil)
	if err := b.Delete(b.Context(), ref); err != nil {
		b.Error(err)
	}
	b.wantErr(ref, blob.ErrNotFound)
}

func testRefs(b *bed) {
	good := string(b.put([]byte("x")))
	for name, ref := range map[string]string{
		"empty": "", "short": good[1:], "long": good + "0", "upper case": strings.ToUpper(good), "no hexadecimal": "g" + good[1:],
		"path": "../" + good[3:], "absolute path": "/" + good[1:], "slash": good[:10] + "/" + good[11:], "nul": good[:63] + "\x00",
	} {
		ref := blob.Ref(ref)
		_, getErr := b.Get(b.Context(), ref)
		_, hasErr := b.Has(b.Context(), ref)
		for method, err := range map[string]error{"Get": getErr, "Has": hasErr, "Delete": b.Delete(b.Context(), ref), "Check": ref.Check()} {
			if bdkerr.CodeOf(err) != bdkerr.InvalidRequest {
				b.Errorf("%s: %s: got error %v, want invalid_request", name, method, err)
			}
		}
	}
}

func testSize(b *bed) {
	if _, err := b.Put(b.Context(), make([]byte, blob.MaxSize+1)); bdkerr.CodeOf(err) != bdkerr.PayloadTooLarge {
		b.Errorf("got error %v, want payload_too_large", err)
	}
}

func testRace(b *bed) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	ref := blob.RefOf(data)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 10 {
				var err error
				switch i % 3 {
				case 0:
					_, err = b.Put(b.Context(), data)
				case 1:
					_, err = b.Get(b.Context(), ref) // all of it or nothing
				case 2:
					err = b.Delete(b.Context(), ref)
				}
				if err != nil && !errors.Is(err, blob.ErrNotFound) {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.put(data)
	b.wantData(ref, data)
}

func testMany(b *bed) {
	refs := make([]blob.Ref, 100)
	var wg sync.WaitGroup
	for i := range refs {
		wg.Go(func() {
			var err error
			if refs[i], err = b.Put(b.Context(), []byte{byte(i)}); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	for i, ref := range refs {
		b.wantData(ref, []byte{byte(i)})
	}
}

// testContext: a driver may finish what it is asked to do, but it must not report something else than that or the cause.
func testContext(b *bed) {
	cause := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(cause)
	ref, err := b.Put(ctx, []byte("x"))
	switch {
	case err == nil:
		b.wantData(ref, []byte("x"))
	case errors.Is(err, cause):
		b.wantErr(blob.RefOf([]byte("x")), blob.ErrNotFound)
	default:
		b.Errorf("got error %v, want none or the cause", err)
	}
}
