// Package sqlitesession keeps sessions in the embedded host's database file. The file may be shared by several processes.
//
// Every commit is flushed to the disk before it returns, except renewals of a lease and batches that hold only deltas of a
// reply or the beginning of a turn or step. Those survive the death of the process but not a loss of power, after which a turn
// is resumed from its last whole event anyway.
package sqlitesession

import (
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/sqlitex"
	"github.com/bdk-lambda/bdk/shared/session"
)

// Driver implements [session.Driver] and [session.Expirer]. It is safe for concurrent use.
type Driver struct {
	db    *sqlitex.DB
	types map[string]event.Type // saves a string for every event that is read
}

var (
	_ session.Driver  = (*Driver)(nil)
	_ session.Expirer = (*Driver)(nil)
)

// New returns the driver over db, which was opened with [Schema] and stays the caller's to close.
func New(db *sqlitex.DB) *Driver {
	d := &Driver{db: db, types: make(map[string]event.Type)}
	for _, t := range event.Types() {
		d.types[string(t)] = t
	}
	return d
}
