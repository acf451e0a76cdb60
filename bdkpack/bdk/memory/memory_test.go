package memory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/bdk/bdktest"
	"github.com/bdk-lambda/bdk/bdkpack/bdk/memory"
)

// journal returns what is written down.
func journal(t *testing.T, h *bdk.HookContext) (all []memory.Record) {
	t.Helper()
	data, err := h.Files.Deployment().Read(t.Context(), memory.Journal)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r memory.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

func TestTurnsAreWrittenDown(t *testing.T) {
	t.Parallel()
	hook, h := memory.Hook(), bdktest.HookContext(t)
	h.Session.Title = "Title"
	tell := func(data bdk.EventData) {
		t.Helper()
		if err := hook.Handle(t.Context(), h, bdktest.Event(data)); err != nil {
			t.Fatal(err)
		}
	}
	usage := &bdk.Usage{InputTokens: 3}
	tell(bdk.MessageReceived{Text: "one"})
	tell(bdk.TurnCompleted{Result: "fine", Usage: usage})
	tell(bdk.MessageReceived{Text: "two" + strings.Repeat("ü", 4<<10)})
	tell(bdk.TurnFailed{Message: "stopped", Status: "cancelled"})
	tell(bdk.TurnFailed{Message: "boom", Status: "error"}) // its message was not told
	h.Session.Purpose = "eval"
	tell(bdk.MessageReceived{Text: "three"})
	tell(bdk.TurnCompleted{Result: "not written"})
	h.Session.Purpose, h.Session.DryRun = "chat", true
	tell(bdk.TurnCompleted{Result: "not written"})
	of := memory.Record{SessionID: "ses_1", ChannelID: "http", Title: "Title"}
	one, two, three := of, of, of
	one.Status, one.UserMessage, one.Result, one.Usage = "completed", "one", "fine", usage
	two.Status, two.UserMessage, two.Result = "cancelled", "two"+strings.Repeat("ü", 2046)+"…", "stopped"
	three.Status, three.Result = "failed", "boom"
	if diff := cmp.Diff([]memory.Record{one, two, three}, journal(t, h), cmpopts.IgnoreFields(memory.Record{}, "At")); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if left, err := h.KV.List(t.Context(), "memory/", "", 0); err != nil || len(left) != 0 {
		t.Errorf("messages are left: %v, %v", left, err)
	}
}

// A journal that is full loses its beginning, not what is added.
func TestAFullJournal(t *testing.T) {
	t.Parallel()
	hook, h := memory.Hook(), bdktest.HookContext(t)
	old := fmt.Sprintf(`{"result":%q}`+"\n", strings.Repeat("x", 1000))
	full := strings.Repeat(old, 16<<20/len(old))
	if err := h.Files.Deployment().Write(t.Context(), memory.Journal, []byte(full)); err != nil {
		t.Fatal(err)
	}
	if err := hook.Handle(t.Context(), h, bdktest.Event(bdk.TurnCompleted{Result: "last" + strings.Repeat("y", 2000)})); err != nil {
		t.Fatal(err)
	}
	all := journal(t, h)
	if n := len(all); n < 4000 || n > 4300 || !strings.HasPrefix(all[n-1].Result, "last") {
		t.Errorf("%d records are left; the last is %.20q", n, all[n-1].Result)
	}
}
