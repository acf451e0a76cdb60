package dynamotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Fault is what becomes of a request.
type Fault int

// The faults.
const (
	None      Fault = iota
	Lost            // it is carried out, but the connection ends before the answer
	Dropped         // the connection ends before it is carried out
	Throttled       // it is refused: too many requests
	Meets           // it is refused: another transaction holds an item
	Terse           // it is carried out; if it is a transaction that is cancelled, one reason is told at most
)

// Transport carries requests to the emulator, counts them and what they cost, and spoils some. It is safe for concurrent use.
// The zero value spoils none.
type Transport struct {
	// Spoil decides about each request; try counts those of its operation from 1. It is called by one goroutine at a time.
	Spoil func(operation string, try int) Fault

	// Mercy is the try of one request, as the client counts them, from which on it is not spoilt, so that a client that keeps
	// trying gets through in the end. 0: it never is safe.
	Mercy int

	Meter bool // add up capacity units

	mu    sync.Mutex
	calls map[string]int
	units map[string]float64
}

// Counts returns how many requests of each operation there were since it was called last, those that were spoilt included, and the
// capacity units that were consumed: "write" and "read" of the tables, "index write" and "index read" of their indexes.
func (t *Transport) Counts() (calls map[string]int, units map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls, units = t.calls, t.units
	t.calls, t.units = nil, nil
	return calls, units
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	fault := t.count(operation, attempt(req))
	switch fault {
	case Dropped:
		return nil, errors.New("the connection ended early")
	case Throttled:
		return answer(req, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`), nil
	case Meets:
		return answer(req, meets(operation, body)), nil
	case None, Lost, Terse:
	}
	if t.Meter {
		body = append(bytes.TrimSuffix(body, []byte("}")), `,"ReturnConsumedCapacity":"INDEXES"}`...)
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if t.Meter {
		t.charge(operation, got)
	}
	if fault == Lost {
		return nil, errors.New("the connection ended before the answer")
	}
	if fault == Terse {
		got = terse(got)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(got)), int64(len(got))
	resp.Header.Del("X-Amz-Crc32")
	return resp, err
}

// attempt returns the number of the client's try, from 1.
func attempt(req *http.Request) (n int) {
	_, _ = fmt.Sscanf(req.Header.Get("Amz-Sdk-Request"), "attempt=%d", &n)
	return n
}

func (t *Transport) count(operation string, attempt int) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = make(map[string]int)
	}
	t.calls[operation]++
	if t.Spoil == nil || t.Mercy > 0 && attempt >= t.Mercy {
		return None
	}
	return t.Spoil(operation, t.calls[operation])
}

// charge adds up what the answer to a request says that it cost.
func (t *Transport) charge(operation string, body []byte) {
	type capacity struct {
		Table   struct{ CapacityUnits float64 }
		Indexes map[string]struct{ CapacityUnits float64 } `json:"GlobalSecondaryIndexes"`
	}
	var got struct{ ConsumedCapacity json.RawMessage }
	if json.Unmarshal(body, &got) != nil || got.ConsumedCapacity == nil {
		return
	}
	var all []capacity
	if json.Unmarshal(got.ConsumedCapacity, &all) != nil {
		all = make([]capacity, 1)
		_ = json.Unmarshal(got.ConsumedCapacity, &all[0])
	}
	kind := "write"
	if operation == "GetItem" || operation == "Query" {
		kind = "read"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.units == nil {
		t.units = make(map[string]float64)
	}
	for _, c := range all {
		t.units[kind] += c.Table.CapacityUnits
		for _, i := range c.Indexes {
			t.units["index "+kind] += i.CapacityUnits
		}
	}
}

// terse leaves the first reason why a transaction was cancelled.
func terse(body []byte) []byte {
	var got map[string]any
	if json.Unmarshal(body, &got) != nil {
		return body
	}
	reasons, _ := got["CancellationReasons"].([]any)
	told := false
	for i, r := range reasons {
		switch {
		case r.(map[string]any)["Code"] == "None":
		case told:
			reasons[i] = map[string]any{"Code": "None"}
		default:
			told = true
		}
	}
	out, err := json.Marshal(got)
	if err != nil {
		return body
	}
	return out
}

// meets returns the refusal of a write that meets another one.
func meets(operation string, body []byte) string {
	if operation != "TransactWriteItems" {
		return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"Transaction is ongoing for the item"}`
	}
	var in struct{ TransactItems []json.RawMessage }
	_ = json.Unmarshal(body, &in)
	reasons := strings.Repeat(`,{"Code":"None"}`, max(0, len(in.TransactItems)-1))
	return fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled",`+
		`"CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}%s]}`, reasons)
}

func answer(req *http.Request, body string) *http.Response {
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Request: req, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
