// Package tables says what the DynamoDB tables of a deployment look like, to those that make them and those that use them.
package tables

// Names are the names of the tables of one deployment.
type Names struct {
	Sessions string // a row for each session
	Events   string // the logs
	Control  string // idempotency keys, and the entries of package kv
}

// The attributes that the tables are built on. Adapters add their own.
const (
	SessionID = "sid"
	Index     = "n" // of an event
	EventType = "t"
	EventTurn = "turn" // the turn of an event, if it belongs to one
	Partition = "pk"   // of the control table
	Sort      = "sk"   // of the control table
	Expires   = "exp"  // epoch seconds after which an item may be removed

	SessionRow     = "row"
	SessionVersion = "v"
	Snapshot       = "snap" // of a session: the reference of its blob

	ByOwner    = "byOwner" // an index of the sessions, with its keys
	OwnerShard = "ow"
	OwnerPlace = "op"
	ByAgent    = "byAgent" // another one
	AgentShard = "ag"
	AgentPlace = "ap"
)

// A Table says how to make a table. All are billed by request.
type Table struct {
	Name      string
	Partition Key
	Sort      Key    // the zero Key if there is none
	Expires   string // the attribute with the time to live, "" if items stay
	Stream    string // NEW_IMAGE: of new events, which hooks are told; OLD_IMAGE: of removed sessions, which are to be purged; "" for none
	Indexes   []SecondaryIndex
}

// A Key is an attribute that items are found by.
type Key struct {
	Name string
	Type string // S or N
}

// A SecondaryIndex is a global secondary index with keys that are strings.
type SecondaryIndex struct {
	Name, Partition, Sort string
	Include               []string // further attributes it holds
}

// All returns what to make for a deployment.
func All(n Names) []Table {
	const str, number = "S", "N"
	index := func(name, partition, sort string) SecondaryIndex {
		return SecondaryIndex{Name: name, Partition: partition, Sort: sort, Include: []string{SessionRow, SessionVersion}}
	}
	return []Table{
		{
			Name: n.Sessions, Partition: Key{SessionID, str}, Expires: Expires, Stream: "OLD_IMAGE",
			Indexes: []SecondaryIndex{index(ByOwner, OwnerShard, OwnerPlace), index(ByAgent, AgentShard, AgentPlace)},
		},
		{Name: n.Events, Partition: Key{SessionID, str}, Sort: Key{Index, number}, Stream: "NEW_IMAGE"},
		{Name: n.Control, Partition: Key{Partition, str}, Sort: Key{Sort, str}, Expires: Expires},
	}
}
