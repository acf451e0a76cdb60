package sqlitesession

import "github.com/bdk-lambda/bdk/shared/internal/sqlitex"

// Schema returns the tables of this package, for sqlitex.Options.
//
// Times are milliseconds since 1970, NULL when there is none. A session has a number, so that its id is stored once; the key
// of an event is that number and the event's index, see eventKey: a log is one run of the table. Events of
// removed sessions are deleted bit by bit; until then the session's number is in sessions_trash.
func Schema() sqlitex.Schema {
	return sqlitex.Schema{Name: "session", Steps: []string{`
CREATE TABLE sessions(
	no         INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE,
	version    INTEGER NOT NULL,
	agent      TEXT NOT NULL,
	owner      TEXT NOT NULL,
	channel    TEXT NOT NULL,
	mode       TEXT NOT NULL,
	purpose    TEXT NOT NULL,
	title      TEXT NOT NULL,
	dry_run    INTEGER NOT NULL,
	as_of      INTEGER,
	files      TEXT NOT NULL,
	created    INTEGER,
	updated    INTEGER NOT NULL,
	expires    INTEGER,
	token_hash TEXT NOT NULL,
	turn       TEXT,
	holder     TEXT NOT NULL,
	until      INTEGER,
	next       INTEGER NOT NULL,
	ended      TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_owner ON sessions(agent, owner, updated, no);
CREATE INDEX sessions_updated ON sessions(agent, updated, no);
CREATE INDEX sessions_active ON sessions(agent, no) WHERE turn IS NOT NULL;
CREATE INDEX sessions_expiry ON sessions(expires) WHERE expires IS NOT NULL;

CREATE TABLE session_events(
	key  INTEGER PRIMARY KEY,
	id   TEXT NOT NULL,
	type TEXT NOT NULL,
	turn TEXT NOT NULL,
	at   INTEGER NOT NULL,
	data BLOB
) STRICT;

CREATE TABLE session_snapshots(
	session INTEGER PRIMARY KEY,
	next    INTEGER NOT NULL,
	data    BLOB
) STRICT;

CREATE TABLE session_keys(
	name      TEXT PRIMARY KEY,
	body_hash TEXT NOT NULL,
	answer    BLOB,
	expires   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_keys_expiry ON session_keys(expires);

CREATE TABLE sessions_trash(session INTEGER PRIMARY KEY) STRICT;
`, `
ALTER TABLE sessions ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN approvals TEXT; -- JSON; NULL for none
`}}
}
