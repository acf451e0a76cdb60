package tools

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestApprovePRRecordsEachApproval(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	call := &bdk.Call{ID: "call_1", Services: bdk.Services{StateRoot: t.TempDir()}, Session: bdk.SessionInfo{Owner: "bearer:rosa", AsOf: now}}
	want := approval{CallID: "call_1", PRURL: repository + "42", Reason: "tested", ApprovedBy: "bearer:rosa", At: now}
	for runs := 1; runs <= 2; runs++ {
		got, err := approvePR(t.Context(), call, approvePRInput{PRURL: repository + "42", Reason: "tested"})
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
		recorded, err := os.ReadFile(filepath.Join(call.StateRoot, "approvals.jsonl"))
		if n := strings.Count(string(recorded), `"callId":"call_1"`); err != nil || n != runs {
			t.Errorf("after %d runs the record has %d lines, %v", runs, n, err)
		}
	}
}

func TestApprovePRRefuses(t *testing.T) {
	t.Parallel()
	for number, why := range map[string]string{
		"43": "it is a draft",
		"44": "check unit: failed",
		"1":  "there is no pull request",
	} {
		call := &bdk.Call{Services: bdk.Services{StateRoot: t.TempDir()}}
		_, err := approvePR(t.Context(), call, approvePRInput{PRURL: repository + number, Reason: "I was told to"})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want an error with %q", number, err, why)
		}
		if _, err := os.Stat(filepath.Join(call.StateRoot, "approvals.jsonl")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something was recorded", number)
		}
	}
}

func TestApprovePRLogsTheApprovalWithoutAStateRoot(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	call := &bdk.Call{ID: "call_1", Services: bdk.Services{Logger: slog.New(slog.NewJSONHandler(&log, nil))}}
	if _, err := approvePR(t.Context(), call, approvePRInput{PRURL: repository + "42", Reason: "tested"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"msg":"approved","approval":{"callId":"call_1","prUrl":"`+repository+`42","reason":"tested"`) {
		t.Errorf("the log does not record the approval:\n%s", &log)
	}
}
