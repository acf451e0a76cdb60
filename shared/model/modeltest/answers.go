package modeltest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/model"
)

// hard is a text whose characters have one to four bytes and join to clusters.
const hard = "a你好🌍👩‍👩‍👧e\u0301 \"\\\n\t\u2028</x>"

func (h *Harness) conversations() map[string][]model.Delta {
	const long = `{"a":[1,2.50,1e3],"b":"你🌍\"\\","c":{"d":null}}`
	out := map[string][]model.Delta{
		"plain text":                       {text("Hello"), text(", "), text("world"), end(model.FinishStop)},
		"empty answer":                     {end(model.FinishStop)},
		"hard characters":                  {text(hard), text(hard), end(model.FinishStop)},
		"long text":                        {text(strings.Repeat(hard, 2000)), end(model.FinishLength)},
		"call":                             {call(0, callID(0), "add"), args(0, `{"a":1}`), end(model.FinishToolCalls)},
		"call without arguments":           {call(0, callID(0), "now"), end(model.FinishToolCalls)},
		"broken arguments":                 {call(0, callID(0), "add"), args(0, `{"a":`), end(model.FinishToolCalls)},
		"text and calls":                   {text("Let me see."), call(0, callID(0), "add"), args(0, long), call(1, callID(1), "sub"), args(1, "{}"), end(model.FinishToolCalls)},
		"cut by length":                    {text("and so"), end(model.FinishLength)},
		"filtered":                         {end(model.FinishContentFilter)},
		"usage":                            {text("x"), end(model.FinishStop), {Usage: &model.Usage{InputTokens: 7, OutputTokens: 5, CacheReadTokens: 3}}},
		"a call beside one without pieces": {call(0, callID(0), "now"), call(1, callID(1), "add"), args(1, `{"a":1}`), end(model.FinishToolCalls)},
		"interleaved calls": {
			call(0, callID(0), "add"), args(0, `{"a"`), call(1, callID(1), "sub"), args(1, `{"b"`), args(0, `:1}`), args(1, `:2}`),
			end(model.FinishToolCalls),
		},
	}
	thoughts := []model.Delta{{Reasoning: "Let me "}, {Reasoning: hard}}
	out["reasoning"] = append(thoughts[:2:2], text("Done."), end(model.FinishStop))
	if h.Model != "" {
		signed := append(thoughts[:2:2], model.Delta{Signature: "c2ln+/="})
		out["signed reasoning"] = append(signed[:3:3], text("Done."), end(model.FinishStop))
		out["signed reasoning before a call"] = append(signed[:3:3], call(0, callID(0), "now"), end(model.FinishToolCalls))
		out["two signed blocks"] = append(signed[:3:3], model.Delta{Reasoning: "Then"}, model.Delta{Signature: "c2ln2"}, text("Done."), end(model.FinishStop))
	}
	return out
}

func testAnswers(t *testing.T, h *Harness) {
	for name, deltas := range h.conversations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := h.collect(t, h.model(t, h.answer(t, deltas...)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.want(deltas), got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("unknown finish reason", func(t *testing.T) {
		t.Parallel()
		got, err := h.collect(t, h.model(t, h.answer(t, text("x"), end("brand_new_reason"))))
		if err != nil || got.Finish != model.FinishOther || got.Message.Text != "x" {
			t.Errorf("got %+v, %v, want finish other", got, err)
		}
	})
	t.Run("one finish, pieces of calls well formed", func(t *testing.T) {
		t.Parallel()
		deltas := h.conversations()["text and calls"]
		testShape(t, h.model(t, h.answer(t, append(deltas, model.Delta{Usage: &model.Usage{OutputTokens: 1}})...)))
	})
}

// testShape checks what the accumulated answer does not show.
func testShape(t *testing.T, m model.Model) {
	t.Helper()
	finishes, usages := 0, 0
	named := map[int]bool{}
	for d, err := range m.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if finishes > 0 && d.Usage == nil {
			t.Errorf("%+v after the finish", d)
		}
		if d.Finish != "" {
			finishes++
		}
		if d.Usage != nil {
			usages++
		}
		if c := d.Call; c != nil {
			if first := !named[c.Index]; first != (c.Name != "") || first != (c.ID != "") {
				t.Errorf("id and name must be in the first piece of a call only, got %+v", *c)
			}
			named[c.Index] = true
		}
		if d == (model.Delta{}) {
			t.Error("an empty delta")
		}
	}
	if finishes != 1 || usages != 1 {
		t.Errorf("got %d finishes and %d usages, want one of each", finishes, usages)
	}
}

// testSplits delivers an answer with everything in it cut at every byte of the wire, and cuts the arguments at every character.
func testSplits(t *testing.T, h *Harness) {
	const js = `{"city":"你🌍\"\\n","n":-1.5e3,"l":[true,null]}`
	deltas := []model.Delta{text("a你"), text("🌍"), call(0, callID(0), "add"), args(0, `{"a":"你`), args(0, `"}`), end(model.FinishToolCalls)}
	if h.Model != "" {
		deltas = append([]model.Delta{{Reasoning: "好"}, {Signature: "c2ln"}}, deltas...)
	}
	p := h.answer(t, deltas...)
	want := h.want(deltas)
	size := 0
	for _, f := range p.frames {
		size += len(f)
	}
	for n := range size {
		got, err := h.collect(t, h.New(t, p.sliced(n), p.URL))
		if err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("cut at byte %d (-want +got):\n%s", n, diff)
		}
	}
	for i := range js {
		deltas := []model.Delta{call(0, callID(0), "add"), args(0, js[:i]), args(0, js[i:]), end(model.FinishToolCalls)}
		got, err := h.collect(t, h.model(t, h.answer(t, deltas...)))
		if err != nil {
			t.Fatalf("arguments cut at %d: %v", i, err)
		}
		if len(got.Message.Calls) != 1 || string(got.Message.Calls[0].Args) != js {
			t.Fatalf("arguments cut at %d: got %+v", i, got.Message.Calls)
		}
	}
}

// testConcurrent asks one model from several goroutines.
func testConcurrent(t *testing.T, h *Harness) {
	deltas := h.conversations()["text and calls"]
	p := h.answer(t, deltas...)
	m := h.model(t, p)
	want := h.want(deltas)
	const clients = 8
	diffs := make(chan string, clients)
	for range clients {
		go func() {
			got, err := model.Collect(h.Model, m.Stream(t.Context(), hello()))
			if err != nil {
				diffs <- err.Error()
				return
			}
			diffs <- cmp.Diff(want, got)
		}()
	}
	for range clients {
		if diff := <-diffs; diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
	}
}
