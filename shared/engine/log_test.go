package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/telemetry"
	"github.com/bdk-lambda/bdk/shared/turn"
)

func TestEndedTurnsAreLoggedAndMeasured(t *testing.T) {
	t.Parallel()
	forge := bdk.NamedTool{Name: "forge", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Logs what the engine logs.", Effect: bdk.Read},
		func(ctx context.Context, call *bdk.Call, _ struct{}) (string, error) {
			call.Log().InfoContext(ctx, "turn ended", slog.Bool("failed", true))
			return "ok", nil
		})}
	for name, tc := range map[string]struct {
		script string
		run    func(testing.TB, *engine.Engine, turn.Ref)
		want   []int // turns, failed, model calls, input tokens, output tokens; -1: none
	}{
		"a turn that completes": {
			script: "rules: [{when: {step: 1}, calls: [{tool: forge, args: {}}], usage: {inputTokens: 10, outputTokens: 1}}, {text: ok, usage: {inputTokens: 20, outputTokens: 2}}]",
			run:    step, want: []int{1, 0, 2, 30, 3},
		},
		"a turn that fails": {script: "rules: [{error: {kind: invalid}}]", run: step, want: []int{1, 1, 0, 0, 0}},
		"a turn that is given up": {
			script: "rules: [{text: ok}]",
			run: func(t testing.TB, e *engine.Engine, ref turn.Ref) {
				t.Helper()
				for range 2 {
					if err := e.Fail(t.Context(), ref, "given up"); err != nil {
						t.Fatal(err)
					}
				}
			},
			want: []int{1, 1, -1, -1, -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := slog.New(telemetry.EMF(slog.NewJSONHandler(&out, nil))).With(slog.String(telemetry.SlugKey, "test"))
			e := newEngine(t, config{script: tc.script, tools: []bdk.NamedTool{forge}, log: log})
			ref, _ := start(t, e, "hello")
			tc.run(t, e, ref)

			var measured []map[string]any
			for line := range strings.Lines(out.String()) {
				var entry map[string]any
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatal(err)
				}
				if entry["_aws"] != nil {
					measured = append(measured, entry)
				}
			}
			if len(measured) != 1 {
				t.Fatalf("%d entries have metrics; want 1:\n%s", len(measured), &out)
			}
			entry := measured[0]
			var got []int
			for _, m := range []string{telemetry.Turns, telemetry.TurnsFailed, telemetry.ModelCalls, telemetry.InputTokens, telemetry.OutputTokens} {
				n, ok := entry[m].(float64)
				if !ok {
					n = -1
				}
				got = append(got, int(n))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("metrics (-want +got):\n%s\n%s", diff, &out)
			}
			if entry["session_id"] != ref.SessionID || entry["turn_id"] != ref.TurnID || entry["owner"] != "local" || entry["slug"] != "test" {
				t.Errorf("the entry says not whose turn it was: %v", entry)
			}
		})
	}
}

func TestFailedToolCallsAreLogged(t *testing.T) {
	t.Parallel()
	failed := ""
	picky := bdk.NamedTool{Name: "picky", Tool: bdk.DefineTool(bdk.ToolSpec{Description: "Refuses low numbers.", Effect: bdk.Read},
		func(_ context.Context, call *bdk.Call, in struct{ N int }) (string, error) {
			if in.N < 3000 {
				failed = call.ID
				return "", errors.New("too low")
			}
			return "ok", nil
		})}
	var out bytes.Buffer
	e := newEngine(t, config{
		script: "rules: [{when: {step: 1}, calls: [{tool: picky, args: {N: 2718}}, {tool: picky, args: {N: 3141}}]}, {text: ok}]",
		tools:  []bdk.NamedTool{picky}, log: slog.New(slog.NewJSONHandler(&out, nil)),
	})
	ref, _ := start(t, e, "hello")
	step(t, e, ref)
	if strings.Contains(out.String(), "2718") {
		t.Errorf("the log holds the input:\n%s", &out)
	}
	var warnings []map[string]any
	for line := range strings.Lines(out.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if delete(entry, "time"); entry["level"] == "WARN" {
			warnings = append(warnings, entry)
		}
	}
	want := []map[string]any{{
		"level": "WARN", "msg": "tool call failed", "tool": "picky", "call_id": failed,
		"session_id": ref.SessionID, "turn_id": ref.TurnID, "owner": "local",
	}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
