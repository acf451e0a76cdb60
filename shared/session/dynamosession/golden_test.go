package dynamosession_test

import (
	"bytes"
	"compress/flate"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
)

var update = flag.Bool("update", false, "write the golden file")

// TestItemsHaveTheFormOfEarlierVersions guards what is in the tables of deployments: a change of the golden file needs code
// that reads both forms.
func TestItemsHaveTheFormOfEarlierVersions(t *testing.T) {
	t.Parallel()
	d := open(t, dynamotest.Start(t), &dynamotest.Transport{})
	at := time.Date(2026, 3, 4, 12, 0, 0, 7e6, time.UTC)
	events := []event.Event{
		event.New("", event.SessionStarted{Agent: "a", ChannelID: "http", Mode: "chat", Purpose: "chat"}),
		event.New("turn_1", event.MessageReceived{Text: "hello"}),
		event.New("turn_1", event.MessageAppended{Text: strings.Repeat("hello ", 200)}),
		event.New("turn_1", event.MessageAppended{Text: noise(30 << 10)}),
	}
	for i := range events {
		events[i].SessionID, events[i].Index, events[i].ID, events[i].At = "ses_1", int64(i), fmt.Sprint("event_", i), at
	}
	row := session.Record{
		ID: "ses_1", Agent: "a", Owner: "bearer:alice", Channel: "http", Mode: session.Chat, Purpose: "chat", Title: "t", DryRun: true,
		AsOf: at, Files: "f", CreatedAt: at, UpdatedAt: at, ExpiresAt: at, TokenHash: "hash",
		Turn: session.Turn{ID: "turn_1", Holder: "here", Until: at}, Next: 4, Ended: "failed",
	}
	key := session.Key{Name: "k", BodyHash: "hash", Answer: []byte("answer"), ExpiresAt: at.Add(time.Hour)}
	if err := d.Commit(t.Context(), session.Batch{SessionID: "ses_1", Events: events, Row: &row, Key: &key}); err != nil {
		t.Fatal(err)
	}
	if err := d.PutSnapshot(t.Context(), "ses_1", session.Snapshot{Next: 4, Data: []byte("snapshot")}); err != nil {
		t.Fatal(err)
	}
	got := d.dump(t)
	path := filepath.Join("testdata", "items.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("items (-want +got)\n%s", diff)
	}
}

// inflated returns what b is the compressed form of, or b itself.
func inflated(b []byte) []byte {
	if plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(b))); err == nil {
		return plain
	}
	return b
}

// dump returns all items as text.
func (s store) dump(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, table := range []string{s.tables.Sessions, s.tables.Events, s.tables.Control} {
		out, err := s.emulator.Client(http.DefaultTransport).Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(table, "-")
		slices.SortFunc(out.Items, func(a, b dynamox.Item) int { return int(dynamox.Int(a, "n") - dynamox.Int(b, "n")) })
		for _, item := range out.Items {
			fmt.Fprintf(&text, "%s\n", name)
			for _, k := range slices.Sorted(maps.Keys(item)) {
				switch v := item[k].(type) {
				case *types.AttributeValueMemberS:
					fmt.Fprintf(&text, "  %s = %q\n", k, v.Value)
				case *types.AttributeValueMemberN:
					fmt.Fprintf(&text, "  %s = %s\n", k, v.Value)
				case *types.AttributeValueMemberB:
					fmt.Fprintf(&text, "  %s = %q\n", k, inflated(v.Value))
				}
			}
		}
	}
	return text.String()
}
