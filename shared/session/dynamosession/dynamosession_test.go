package dynamosession_test

import (
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
)

// store is a driver whose tables are known.
type store struct {
	*dynamosession.Driver

	emulator *dynamotest.Emulator
	tables   dynamox.Names
	blobs    *blob.Store
}

// other returns a driver over the same store whose requests go through transport.
func (s store) other(transport *dynamotest.Transport) store {
	s.Driver = dynamosession.New(s.emulator.Client(transport), s.tables, s.blobs)
	return s
}

func open(tb testing.TB, e *dynamotest.Emulator, transport *dynamotest.Transport) store {
	tb.Helper()
	return store{emulator: e, tables: e.Tables(tb), blobs: blob.New(memblob.New())}.other(transport)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	e := dynamotest.Start(t)
	sessiontest.Run(t, sessiontest.Harness{
		New: func(t *testing.T) session.Driver {
			t.Helper()
			return open(t, e, &dynamotest.Transport{})
		},
		Other: func(_ *testing.T, d session.Driver) session.Driver {
			return d.(store).other(&dynamotest.Transport{})
		},
		Plant: func(t *testing.T, d session.Driver, e event.Event) {
			t.Helper()
			if err := d.Commit(t.Context(), session.Batch{SessionID: e.SessionID, At: e.Index, Events: []event.Event{e}}); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// removeRow does what the table does with a row that has expired, and returns the reference of its snapshot.
func (s store) removeRow(t *testing.T, id string) string {
	t.Helper()
	out, err := s.emulator.Client(http.DefaultTransport).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &s.tables.Sessions, Key: dynamox.Item{dynamox.SessionID: dynamox.S(id)}, ReturnValues: types.ReturnValueAllOld,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dynamox.Str(out.Attributes, "snap")
}
