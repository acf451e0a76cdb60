package engine_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// endless is a model that sends a delta for ever.
type endless func(n int) model.Delta

func (m endless) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for n := 0; yield(m(n), nil); n++ {
		}
	}
}

// A provider that never stops ends its turn, with a limit that is named, and not the process.
func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 4096)
	for name, m := range map[string]endless{
		"text":      func(int) model.Delta { return model.Delta{Text: text} },
		"reasoning": func(int) model.Delta { return model.Delta{Reasoning: text} },
		"arguments": func(int) model.Delta { return model.Delta{Call: &model.CallDelta{Name: "add", Args: text}} },
		"calls":     func(n int) model.Delta { return model.Delta{Call: &model.CallDelta{Index: n, Name: "add"}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStorage()
			e := newEngine(t, config{storage: s, models: []engine.NamedModel{{ID: "openai:endless", Model: m}}})
			ref, _ := start(t, e, "go")
			step(t, e, ref)
			got := find[event.TurnFailed](t, events(t, s.sessions, ref.SessionID))
			if len(got) != 1 || !strings.Contains(got[0].Message, "limit reached: the answer") {
				t.Errorf("turn.failed = %+v", got)
			}
		})
	}
}

// Usage below zero, or beyond reason, does not switch the limits off.
func TestUsageThatCannotBe(t *testing.T) {
	t.Parallel()
	s := newStorage()
	m := &fake{answers: [][]model.Delta{
		{{Text: "a"}, {Usage: &model.Usage{InputTokens: -1 << 60, OutputTokens: -5}}, {Finish: model.FinishStop}},
		{{Text: "b"}, {Usage: &model.Usage{InputTokens: 1<<63 - 1, OutputTokens: 1<<63 - 1}}, {Finish: model.FinishStop}},
	}}
	e := newEngine(t, config{storage: s, models: m.named(), agent: bdk.Agent{Limits: bdk.Limits{TokensPerSession: 1000}}})
	ref, acc := start(t, e, "go")
	step(t, e, ref)
	for range 2 {
		ref, acc = send(t, e, acc, "more")
		step(t, e, ref)
	}
	log := events(t, s.sessions, ref.SessionID)
	if u := find[event.TurnCompleted](t, log)[0].Usage; u.InputTokens != 0 || u.OutputTokens != 0 {
		t.Errorf("usage below zero counts as %+v", u)
	}
	if got := find[event.TurnFailed](t, log); len(got) != 1 || !strings.Contains(got[0].Message, "TokensPerSession") {
		t.Errorf("turn.failed = %+v", got)
	}
}
