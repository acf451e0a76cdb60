package purge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/functions/purge"
)

// record returns a record of the stream.
func record(seq int, name, by, image string) string {
	identity := ""
	if by != "" {
		identity = fmt.Sprintf(`,"userIdentity":{"type":"Service","principalId":%q}`, by)
	}
	return fmt.Sprintf(`{"eventName":%q,"dynamodb":{"SequenceNumber":"%d","OldImage":%s}%s}`, name, seq, image, identity)
}

const ttl = "dynamodb.amazonaws.com"

// TestPurges: what is left of a session is removed when the table has removed its row, not when somebody else did. The first record
// that fails is named; those behind it are tried.
func TestPurges(t *testing.T) {
	t.Parallel()
	session := func(id string) string {
		return fmt.Sprintf(`{"sid":{"S":%q},"v":{"N":"3"},"snap":{"S":"snap-%s"}}`, id, id)
	}
	for name, tc := range map[string]struct {
		records []string
		fails   string // the session that fails
		purged  []string
		failure string
	}{
		"none":                   {nil, "", nil, ""},
		"removed by the table":   {[]string{record(1, "REMOVE", ttl, session("a"))}, "", []string{"a snap-a"}, ""},
		"without a snapshot":     {[]string{record(1, "REMOVE", ttl, `{"sid":{"S":"a"}}`)}, "", []string{"a "}, ""},
		"a snapshot of no type":  {[]string{record(1, "REMOVE", ttl, `{"sid":{"S":"a"},"snap":{"N":"1"}}`)}, "", []string{"a "}, ""},
		"removed by a user":      {[]string{record(1, "REMOVE", "", session("a"))}, "", nil, ""},
		"removed by replication": {[]string{record(1, "REMOVE", "replication.dynamodb.amazonaws.com", session("a"))}, "", nil, ""},
		"not removed":            {[]string{record(1, "INSERT", ttl, session("a")), record(2, "MODIFY", ttl, session("a"))}, "", nil, ""},
		"no session":             {[]string{record(1, "REMOVE", ttl, `{}`), record(2, "REMOVE", ttl, `{"sid":{"N":"1"}}`)}, "", nil, ""},
		"one fails": {
			[]string{record(7, "REMOVE", ttl, session("a")), record(8, "REMOVE", ttl, session("b")), record(9, "REMOVE", ttl, session("c")), record(10, "REMOVE", ttl, session("b"))},
			"b",
			[]string{"a snap-a", "b snap-b", "c snap-c", "b snap-b"},
			"8",
		},
		"one panics": {[]string{record(3, "REMOVE", ttl, session("panic")), record(4, "REMOVE", ttl, session("a"))}, "", []string{"panic snap-panic", "a snap-a"}, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var purged []string
			var log bytes.Buffer
			h := lambda.NewHandler(purge.New(func(_ context.Context, id, snapshot string) error {
				purged = append(purged, id+" "+snapshot)
				switch id {
				case tc.fails:
					return errors.New("boom")
				case "panic":
					panic("boom")
				}
				return nil
			}, slog.New(slog.NewJSONHandler(&log, nil))))
			out, err := h.Invoke(t.Context(), []byte(`{"Records":[`+strings.Join(tc.records, ",")+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			var res struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			if err := json.Unmarshal(out, &res); err != nil || res.BatchItemFailures == nil {
				t.Errorf("got %s, %v", out, err)
			}
			failure := ""
			for _, f := range res.BatchItemFailures {
				failure += f.ItemIdentifier
			}
			if d := cmp.Diff(tc.purged, purged); d != "" || failure != tc.failure {
				t.Errorf("failed from %q on; purged, -want +got:\n%s", failure, d)
			}
			if n := strings.Count(log.String(), `"function":"purge"`); n != len(tc.purged) || (tc.failure != "") != strings.Contains(log.String(), "boom") {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}
