package dynamosession_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/memblob"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/dynamosession"
	"github.com/bdk-lambda/bdk/shared/session/sessiontest"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// store is a driver whose tables are known.
type store struct {
	*dynamosession.Driver

	emulator *dynamotest.Emulator
	tables   tables.Names
	blobs    *blobs
}

// other returns a driver over the same store whose requests go through transport.
func (s store) other(transport *dynamotest.Transport) store {
	s.Driver = dynamosession.New(s.emulator.Client(transport), s.tables, blob.New(s.blobs))
	return s
}

func open(tb testing.TB, e *dynamotest.Emulator, transport *dynamotest.Transport) store {
	tb.Helper()
	return store{emulator: e, tables: e.Tables(tb), blobs: &blobs{Driver: memblob.New(), refs: make(map[blob.Ref]bool)}}.other(transport)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, func() *dynamotest.Transport { return &dynamotest.Transport{} })
}

// Every now and then a request or an answer is lost, or a write meets another one.
func TestConformanceOverABadConnection(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: it takes long")
	}
	conformance(t, func() *dynamotest.Transport {
		chance := rand.New(rand.NewPCG(1, 2))
		return &dynamotest.Transport{Mercy: 4, Spoil: func(operation string, _ int) dynamotest.Fault {
			fault := [20]dynamotest.Fault{dynamotest.Lost, dynamotest.Dropped, dynamotest.Meets}[chance.IntN(20)]
			if fault == dynamotest.Meets && (operation == "GetItem" || operation == "Query") {
				return dynamotest.None
			}
			return fault
		}}
	})
}

func conformance(t *testing.T, transport func() *dynamotest.Transport) {
	t.Helper()
	e := dynamotest.Start(t)
	sessiontest.Run(t, sessiontest.Harness{
		New: func(t *testing.T) session.Driver {
			t.Helper()
			return open(t, e, transport())
		},
		Other: func(_ *testing.T, d session.Driver) session.Driver {
			return d.(store).other(transport())
		},
		Plant: func(t *testing.T, d session.Driver, e event.Event) {
			t.Helper()
			if err := d.Commit(t.Context(), session.Batch{SessionID: e.SessionID, At: e.Index, Events: []event.Event{e}}); err != nil {
				t.Fatal(err)
			}
		},
		Lose: func(t *testing.T, d session.Driver) {
			t.Helper()
			d.(store).blobs.lose(t)
		},
	})
}

// removeRow does what the table does with a row that has expired, and returns the reference of its snapshot.
func (s store) removeRow(t *testing.T, id string) string {
	t.Helper()
	out, err := s.emulator.Client(http.DefaultTransport).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &s.tables.Sessions, Key: dynamox.Item{tables.SessionID: dynamox.S(id)}, ReturnValues: types.ReturnValueAllOld,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dynamox.Str(out.Attributes, "snap")
}
