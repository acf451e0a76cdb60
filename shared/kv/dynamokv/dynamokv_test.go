package dynamokv_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/dynamokv"
	"github.com/bdk-lambda/bdk/shared/kv/kvtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func() *dynamotest.Transport { return &dynamotest.Transport{} })
}

// Every now and then a write meets a transaction.
func TestConformanceBesideTransactions(t *testing.T) {
	t.Parallel()
	conformance(t, func() *dynamotest.Transport {
		chance := rand.New(rand.NewPCG(1, 2))
		return &dynamotest.Transport{Spoil: func(operation string, _ int) dynamotest.Fault {
			if operation == "GetItem" || operation == "Query" || chance.IntN(10) > 0 {
				return dynamotest.None
			}
			return dynamotest.Meets
		}}
	})
}

func conformance(t *testing.T, transport func() *dynamotest.Transport) {
	t.Helper()
	e := dynamotest.Start(t)
	kvtest.Run(t, func(t *testing.T) kvtest.Harness {
		t.Helper()
		control := e.Tables(t).Control
		return kvtest.Harness{Open: func(*testing.T) kv.Driver { return dynamokv.New(e.Client(transport()), control) }}
	})
}

func TestRequestsAndUnitsOfEachOperation(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	meter := &dynamotest.Transport{Meter: true}
	s := kv.New(dynamokv.New(e.Client(meter), e.Tables(t).Control), kv.Options{})
	ctx, got := t.Context(), kv.Entry{}
	for _, step := range []struct {
		name, want string
		do         func() error
	}{
		{"create", "[PutItem:1] [write:1]", func() error { return s.Create(ctx, "claim/1", []byte("x"), time.Hour) }},
		{"get", "[GetItem:1] [read:1]", func() (err error) { got, err = s.Get(ctx, "claim/1"); return err }},
		{"swap", "[PutItem:1] [write:1]", func() error { return s.Swap(ctx, "claim/1", got.Version, []byte("y"), 0) }},
		{"delete", "[DeleteItem:1] [write:1]", func() error { return s.Delete(ctx, "claim/1", 0) }},
		{"list", "[Query:8] [read:8]", func() error { _, err := s.List(ctx, "claim/", "", 10); return err }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		calls, units := meter.Counts()
		if got := strings.ReplaceAll(fmt.Sprint(calls, " ", units), "map", ""); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
}

func TestFaultsOfSingleRequestsAreNotSeen(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	for name, fault := range map[string]dynamotest.Fault{
		"the answer is lost": dynamotest.Lost, "the request is lost": dynamotest.Dropped, "a transaction is met": dynamotest.Meets,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoil := func(operation string, try int) dynamotest.Fault {
				if try%2 == 0 || operation == "GetItem" && fault == dynamotest.Meets {
					return dynamotest.None
				}
				return fault
			}
			s := kv.New(dynamokv.New(e.Client(&dynamotest.Transport{Spoil: spoil}), e.Tables(t).Control), kv.Options{})
			if err := s.Create(t.Context(), "a", []byte("one"), 0); err != nil {
				t.Fatal(err)
			}
			one, err := s.Get(t.Context(), "a")
			if err != nil || string(one.Value) != "one" {
				t.Fatalf("got %q, %v, want one", one.Value, err)
			}
			if err := s.Swap(t.Context(), "a", one.Version, []byte("two"), 0); err != nil {
				t.Fatal(err)
			}
			if two, err := s.Get(t.Context(), "a"); err != nil || string(two.Value) != "two" {
				t.Fatalf("got %q, %v, want two", two.Value, err)
			}
			if err := s.Delete(t.Context(), "a", 0); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestChangeThatWasLostAndOvertakenIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	control := e.Tables(t).Control
	other := kv.New(dynamokv.New(e.Client(&dynamotest.Transport{}), control), kv.Options{})
	change := func() {
		now, err := other.Get(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		if err := other.Swap(t.Context(), "a", now.Version, []byte("other"), 0); err != nil {
			t.Error(err)
		}
	}
	for name, fault := range map[string]dynamotest.Fault{"lost": dynamotest.Lost, "throttled": dynamotest.Throttled} {
		spoil := func(operation string, try int) dynamotest.Fault {
			switch {
			case operation == "PutItem" && try == 1:
				return fault
			case operation == "PutItem":
				change()
			}
			return dynamotest.None
		}
		s := kv.New(dynamokv.New(e.Client(&dynamotest.Transport{Spoil: spoil}), control), kv.Options{})
		if err := other.Delete(t.Context(), "a", 0); err != nil {
			t.Fatal(err)
		}
		if err := other.Create(t.Context(), "a", nil, 0); err != nil {
			t.Fatal(err)
		}
		one, err := s.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		err = s.Swap(t.Context(), "a", one.Version, []byte("mine"), 0)
		if unknown := bdkerr.CodeOf(err) == bdkerr.Unavailable; unknown != (fault == dynamotest.Lost) || unknown == errors.Is(err, kv.ErrVersion) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
