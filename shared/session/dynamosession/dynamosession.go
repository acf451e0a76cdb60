// Package dynamosession keeps sessions in DynamoDB: rows in one table, events in another under the session and their
// index, idempotency keys in the control table.
//
// An event that is appended alone is one conditional put at the next index, which is the cheapest write there is; several
// that must appear together, or with the row, are one transaction. A batch without a row is not checked against the row, so
// to a session that does not exist the driver appends at any index but 0: who tries an index knows that the one before
// is taken.
//
// Data of more than a kilobyte is compressed, and what then is over 16 kB goes to the blob store, with its beginning left in
// the log for people to see. Snapshots go there too. Readers get everything back whole.
//
// Rows and keys that have expired are removed by the tables themselves, some time later. [Driver.Purge] then removes what
// belongs to a row. Listings are read from indexes, which follow the rows within moments; everything else is consistent.
package dynamosession

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// Driver implements [session.Driver] and [session.Header]. It is safe for concurrent use.
type Driver struct {
	client *dynamodb.Client
	tables tables.Names
	blobs  *blob.Store
}

var (
	_ session.Driver = (*Driver)(nil)
	_ session.Header = (*Driver)(nil)
)

// New returns a driver over the given tables and blob store.
func New(client *dynamodb.Client, tables tables.Names, blobs *blob.Store) *Driver {
	return &Driver{client: client, tables: tables, blobs: blobs}
}
