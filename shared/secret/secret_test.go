package secret_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/secret/memsecret"
)

// driver counts reads, and has them fail or wait.
type driver struct {
	memsecret.Driver

	mu    sync.Mutex
	reads int
	fault error
	gate  chan struct{} // nil: open
}

func (d *driver) Read(ctx context.Context) ([]string, error) {
	d.mu.Lock()
	d.reads++
	fault, gate := d.fault, d.gate
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if fault != nil {
		return nil, fault
	}
	return d.Driver.Read(ctx)
}

func (d *driver) set(fault error, gate chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.gate = fault, gate
}

func (d *driver) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads
}

// expect gets the value of KEY and compares it and the number of reads so far.
func expect(t *testing.T, s *secret.Store, d *driver, want string, reads int) {
	t.Helper()
	got, err := s.Lookup(t.Context(), "KEY")
	if got != want || err != nil || d.count() != reads {
		t.Fatalf("got %q, error %v, %d reads; want %q after %d reads", got, err, d.count(), want, reads)
	}
}

func TestValuesAreReadAgainAfterTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(driver)
		d.Put(`{"KEY":"1"}`)
		s := secret.New(d, secret.Options{})
		expect(t, s, d, "1", 1)
		d.Put(`{"KEY":"2"}`)
		time.Sleep(5*time.Minute - 1)
		expect(t, s, d, "1", 1)
		time.Sleep(time.Nanosecond)
		expect(t, s, d, "2", 2)
		expect(t, s, d, "2", 2)
	})
}

func TestTheFirstReadThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	d := new(driver)
	d.Put(`{"KEY":"1"}`)
	fault := errors.New("away")
	d.set(fault, nil)
	s := secret.New(d, secret.Options{})
	if got, err := s.Get(t.Context()); !errors.Is(err, fault) || got != nil {
		t.Errorf("got %v, error %v", got, err)
	}
	if got, err := s.Lookup(t.Context(), "KEY"); !errors.Is(err, fault) || got != "" {
		t.Errorf("got %q, error %v", got, err)
	}
	d.set(nil, nil)
	expect(t, s, d, "1", 3)
}

func TestLastValuesStayWhileReadingFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := new(driver)
		d.Put(`{"KEY":"1"}`)
		s := secret.New(d, secret.Options{TTL: time.Minute, Log: slog.New(slog.NewTextHandler(&out, nil))})
		expect(t, s, d, "1", 1)
		d.Put(`{"KEY":"2"}`)
		d.set(errors.New("away"), nil)
		time.Sleep(time.Minute)
		for reads := 2; reads < 5; reads++ {
			expect(t, s, d, "1", reads)
			time.Sleep(15*time.Second - 1)
			expect(t, s, d, "1", reads)
			time.Sleep(time.Nanosecond)
		}
		if n := strings.Count(out.String(), "error=away"); n != 3 {
			t.Errorf("the fault was logged %d times; want 3:\n%s", n, &out)
		}
		d.set(nil, nil)
		expect(t, s, d, "2", 5)
		d.Put("broken")
		time.Sleep(time.Minute)
		expect(t, s, d, "2", 6)
	})
}

func TestCallersShareOneRead(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"that succeeds": nil, "that fails": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, gate := new(driver), make(chan struct{})
				d.Put(`{"KEY":"1"}`)
				d.set(fault, gate)
				s := secret.New(d, secret.Options{})
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						if _, err := s.Get(t.Context()); !errors.Is(err, fault) {
							t.Errorf("got error %v; want %v", err, fault)
						}
					})
				}
				synctest.Wait()
				impatient, cancel := context.WithCancelCause(t.Context())
				cancel(errors.New("enough"))
				if _, err := s.Get(impatient); err == nil || err.Error() != "enough" {
					t.Errorf("a caller whose context ends while it waits got error %v", err)
				}
				close(gate)
				wg.Wait()
				if d.count() != 1 {
					t.Errorf("%d reads; want 1", d.count())
				}
			})
		})
	}
}

func TestAReadOutlivesTheContextOfItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, gate := new(driver), make(chan struct{})
		d.Put(`{"KEY":"1"}`)
		d.set(nil, gate)
		s := secret.New(d, secret.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{ctx, t.Context()} {
			wg.Go(func() {
				if _, err := s.Get(ctx); err != nil {
					t.Errorf("got error %v", err)
				}
			})
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(gate)
		wg.Wait()
	})
}

func TestAReadTakesTenSecondsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(driver)
		d.Put(`{"KEY":"1"}`)
		s := secret.New(d, secret.Options{})
		expect(t, s, d, "1", 1)
		time.Sleep(5 * time.Minute)
		d.set(nil, make(chan struct{}))
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { expect(t, s, d, "1", 2) })
		synctest.Wait()
		expect(t, s, d, "1", 2) // who has values does not wait
		if waited := time.Since(began); waited != 0 {
			t.Errorf("another caller waited %s", waited)
		}
		wg.Wait()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the read took %s; want 10s", took)
		}
	})
}

func TestADriverThatPanicsLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := secret.New(panicking{}, secret.Options{})
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = s.Get(t.Context())
		}()
	}
}

type panicking struct{}

func (panicking) Read(context.Context) ([]string, error) { panic("boom") }

type fixed []string

func (f fixed) Read(context.Context) ([]string, error) { return f, nil }

func TestVersionsAreDecoded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		versions fixed
		want     []secret.Values
	}{
		"one version":                            {fixed{` {"bearer:ci":"s1", "A_1":"", "_b":"any \u00e9 \n"} `}, []secret.Values{{"bearer:ci": "s1", "A_1": "", "_b": "any é \n"}}},
		"two versions":                           {fixed{`{"A":"2"}`, `{"A":"1","B":"1"}`}, []secret.Values{{"A": "2"}, {"A": "1", "B": "1"}}},
		"an older one was broken":                {fixed{`{"A":"2"}`, `{"A":1}`}, []secret.Values{{"A": "2"}}},
		"the newest one is broken":               {fixed{`{"A":`, `{"A":"1"}`}, []secret.Values{{"A": "1"}}},
		"an older one was empty":                 {fixed{`{"A":"2"}`, ""}, []secret.Values{{"A": "2"}}},
		"a variable and a token may be the same": {fixed{`{"A":"s","bearer:a-b_1":"s"}`}, []secret.Values{{"A": "s", "bearer:a-b_1": "s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := secret.New(tc.versions, secret.Options{}).Get(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLookupReadsTheNewestVersionOnly(t *testing.T) {
	t.Parallel()
	s := secret.New(fixed{`{"A":"2"}`, `{"A":"1","GONE":"1"}`}, secret.Options{})
	for name, want := range map[string]string{"A": "2", "GONE": "", "OTHER": ""} {
		if got, err := s.Lookup(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: got %q, error %v; want %q", name, got, err, want)
		}
	}
}

func TestUnusableSecretsAreRefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                    {"", "not JSON"},
		"no JSON":                    {"hunter2", "not JSON"},
		"cut off":                    {`{"A":"hunter2"`, "not JSON"},
		"something behind":           {`{"A":"hunter2"} hunter2`, "not JSON"},
		"a comma too many":           {`{"A":"hunter2",}`, "not JSON"},
		"bytes that are not UTF-8":   {"{\"A\":\"hunter2\xff\"}", "not UTF-8"},
		"too large":                  {`{"A":"` + strings.Repeat("hunter2", 10_000) + `"}`, "bytes"},
		"an array":                   {`["hunter2"]`, "not a JSON object"},
		"a string":                   {`"hunter2"`, "not a JSON object"},
		"null":                       {`null`, "not a JSON object"},
		"no keys":                    {`{}`, "no keys"},
		"a number":                   {`{"A":"hunter2","B":4711}`, `"B": its value is not a string`},
		"an object":                  {`{"B":{"C":"hunter2"}}`, `"B": its value is not a string`},
		"null as a value":            {`{"B":null}`, `"B": its value is not a string`},
		"a key twice":                {`{"B":"hunter2","B":"hunter2"}`, `"B": it is there twice`},
		"a key twice, once escaped":  {`{"B":"hunter2","\u0042":"hunter2"}`, `"B": it is there twice`},
		"an empty key":               {`{"":"hunter2"}`, `key "": a key is`},
		"a key that is no variable":  {`{"my-key":"hunter2"}`, `"my-key": a key is`},
		"a key with a digit first":   {`{"1A":"hunter2"}`, `"1A": a key is`},
		"another prefix":             {`{"Bearer:ci":"hunter2"}`, `"Bearer:ci": a key is`},
		"a token without a name":     {`{"bearer:":"hunter2"}`, `"bearer:": the name`},
		"a name in capitals":         {`{"bearer:CI":"hunter2"}`, `"bearer:CI": the name`},
		"a name with a digit first":  {`{"bearer:1":"hunter2"}`, `"bearer:1": the name`},
		"an empty token":             {`{"A":"hunter2","bearer:ci":""}`, `"bearer:ci": a token`},
		"a token with a space":       {`{"bearer:ci":"hunter2 "}`, `"bearer:ci": a token`},
		"a token with a line end":    {`{"bearer:ci":"hunter2\n"}`, `"bearer:ci": a token`},
		"a token beyond ASCII":       {`{"bearer:ci":"hunter2é"}`, `"bearer:ci": a token`},
		"one token for two":          {`{"bearer:a":"hunter2","bearer:b":"hunter2"}`, `"bearer:b": its token is that of key "bearer:a" too`},
		"a value in place of a key":  {`{"` + strings.Repeat("k", 70_000/10) + `-":"hunter2"}`, "a key is"},
		"several mistakes, in order": {`{"bearer:ci":"hunter2 ","B":1}`, `"bearer:ci"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := secret.New(fixed{tc.text, `{"A":1}`}, secret.Options{}).Get(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || got != nil {
				t.Fatalf("got %v, error %v; want an error with %s", got, err, tc.want)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4711") || len(err.Error()) > 300 {
				t.Errorf("the error shows too much: %v", err)
			}
		})
	}
	if _, err := secret.New(fixed{}, secret.Options{}).Get(t.Context()); err == nil {
		t.Error("a secret without versions: no error")
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"bearer:ci":"s1","KEY":"v"}`, `{"a":"b",}`, `{"bearer:a":"x","bearer:b":"x"}`, "", `{"a":{}}`, `{"\u0061":"\ud800"}`, "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := secret.New(fixed{text}, secret.Options{}).Get(t.Context())
		if err != nil {
			if got != nil {
				t.Errorf("error %v and values", err)
			}
			return
		}
		if len(got) != 1 || len(got[0]) == 0 {
			t.Fatalf("got %v", got)
		}
		owners := make(map[string]bool)
		for key, value := range got[0] {
			name, isToken := strings.CutPrefix(key, secret.BearerPrefix)
			if strings.ContainsAny(name, ": \"\n") || isToken && (value == "" || owners[value] || fmt.Sprintf("%+q", value) != fmt.Sprintf("%q", value)) {
				t.Errorf("key %q was accepted", key)
			}
			owners[value] = owners[value] || isToken
		}
	})
}
