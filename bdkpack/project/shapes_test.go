//nolint:staticcheck,unused // these types are odd on purpose
package project_test

import (
	"encoding/json"
	"math/big"
	"time"
	"unsafe"
)

// The types of TestInputsAreRefusedAsBySchema, which are compiled as well as type-checked.
type (
	chanIn     struct{ A chan int }
	funcIn     struct{ A []func() }
	complexIn  struct{ A map[string]complex64 }
	unsafeIn   struct{ A unsafe.Pointer }
	intKeyIn   struct{ A map[int]string }
	nameKeyIn  struct{ A map[name]string }
	textKeyIn  struct{ A map[text]string }
	timeKeyIn  struct{ A map[time.Time]string }
	selfIn     struct{ A *selfIn }
	selfListIn struct{ A selfList }
	mutualIn   struct{ A []other }
	twiceIn    struct{ A, B plain }
	skippedIn  struct {
		A chan int `json:"-"`
		b chan int
	}
	dashIn struct {
		A chan int `json:"-,"`
	}
	omittedIn struct {
		A chan int `json:",omitempty"`
	}
	ownIn      struct{ A own }
	ownValueIn struct{ A ownValue }
	writerIn   struct{ A writer }
	textIn     struct{ A text }
	stdIn      struct {
		A time.Time
		B time.Duration
		C json.Number
		D big.Int
		E json.RawMessage
		F *time.Time
		G []byte
		H any
		I error
		J big.Float
		K uintptr
	}
	embedIn     struct{ plain }
	embedPtrIn  struct{ *plain }
	embedChanIn struct{ withChan }
	embedDashIn struct {
		withChan `json:"-"`
	}
	shadowedIn struct {
		withChan
		C int
	}
	ambiguousIn struct {
		withChan
		withChan2
	}
	embedNamedIn struct {
		plain `json:"plain"`
	}
	embedTextIn struct{ name }
	embedTimeIn struct {
		time.Time
		A int
	}
	embedTimesIn struct {
		time.Time
		*stamp
	}
	embedSelfIn struct {
		*embedSelfIn
		A int
	}
	stringIn struct {
		A int `json:"a,string"`
	}
	stringOwnIn struct{ A ownString }
	tagIn       struct {
		A int `jsonschema:"required"`
	}
	badTagIn struct {
		A int `jsonschema:"description=x"`
	}
	emptyTagIn struct {
		A int `jsonschema:""`
	}
	genericIn struct{ A box[chan int] }
	fitIn     struct{ A box[int] }
	arrayIn   struct{ A [2]chan int }

	name      string
	text      struct{ c chan int }
	stamp     struct{ X int }
	plain     struct{ X int }
	withChan  struct{ C chan int }
	withChan2 struct{ C chan int }
	other     struct{ B *mutualIn }
	selfList  []selfList
	own       struct{ C chan int }
	ownValue  chan int
	writer    chan int
	ownString struct {
		A int `json:"a,string"`
	}
	box[T any] struct{ V T }
)

func (text) MarshalText() ([]byte, error)         { return nil, nil }
func (*text) UnmarshalText([]byte) error          { return nil }
func (*own) UnmarshalJSON([]byte) error           { return nil }
func (ownValue) UnmarshalJSON([]byte) error       { return nil }
func (writer) MarshalJSON() ([]byte, error)       { return nil, nil }
func (*ownString) UnmarshalJSON(raw []byte) error { return nil }
func (*stamp) UnmarshalJSON([]byte) error         { return nil }
func (*stamp) UnmarshalText([]byte) error         { return nil }
