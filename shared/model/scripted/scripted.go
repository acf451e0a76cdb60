// Package scripted is a model that plays a YAML script: offline, the same each time, and at once.
// The first rule that matches the request gives the answer:
//
//	rules:
//	  - when: {message: "^tool"}                   # regexp on the newest user message
//	    calls: [{tool: add, args: {a: 2, b: 3}}]   # or rawArgs: '{"a":' for malformed JSON
//	  - when: {toolResult: add}                    # the newest message holds a result of this tool
//	    text: "five"
//	  - when: {toolFailed: sub}                    # it holds one that says that the tool failed
//	    text: "no idea"
//	  - when: {step: 3}                            # the third model call of the turn
//	    error: {kind: throttled, message: "slow down"}
//	    times: 2                                   # applies at most twice per session
//	  - text: "ok"                                 # no when: always
//	    chunks: ["o", "k"]                         # the exact pieces of the text; default: one piece
//	    reasoning: "hm"                            # one piece, before the text
//	    delay: 50ms                                # before the first piece
//	    chunkDelay: 10ms                           # between two pieces of text
//	    usage: {inputTokens: 10, outputTokens: 2}
//
// The conditions of one when must all hold. A message condition alone holds only while that message is the newest one:
// once tool results follow it, a rule that should still look at it needs toolResult, toolFailed or step beside it. A condition
// toolResult holds for failures, too: put the rules with toolFailed first.
//
// Calls get the ids call_STEP_N, N counting from 0. A rule may have text and calls. A rule with an error may have text
// too: the answer then breaks off after it. Kinds are throttled, overloaded, unavailable, invalid, context_length and
// denied; retryAfter (a duration) goes with the first three.
//
// A piece of chunks may be any bytes, also half a character: write those that are no text in base64, as YAML does,
// for example chunks: ["a", !!binary "5L0=", !!binary "oA=="]. (A "\xNN" in a YAML string is the character U+00NN, not a byte.)
// When a rule has text and chunks, the pieces must add up to the text.
//
// Without usage, one token is counted for every four bytes, rounded up: output over everything in the answer, input over
// the instructions and the newest message only, so that the model answers as fast in a long session as in a new one.
package scripted

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/model"
)

// maxSessions bounds the sessions whose uses of rules with times are remembered.
const maxSessions = 10_000

var _ model.Model = (*Model)(nil)

// Model plays a [Script]. It is safe for concurrent use. How often a rule applied in a session is kept in memory, for the
// 10,000 sessions used last.
type Model struct {
	script *Script
	clock  clock.Clock
	uses   *uses
}

// New returns a model that plays script and waits with clk.
func New(script *Script, clk clock.Clock) *Model {
	return &Model{script: script, clock: clk, uses: newUses(maxSessions)}
}

// Stream plays the first rule that matches req. When none does it yields a [model.Error] of kind [model.Invalid].
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := context.Cause(ctx); err != nil {
			yield(model.Delta{}, err)
			return
		}
		r := m.match(req)
		if r == nil {
			yield(model.Delta{}, noRule(req))
			return
		}
		m.play(ctx, r, req, yield)
	}
}

func (m *Model) match(req *model.Request) *rule {
	v := view{req: req}
	for i := range m.script.rules {
		r := &m.script.rules[i]
		if r.matches(&v) && (r.times == 0 || m.uses.take(req.SessionID, i, r.times)) {
			return r
		}
	}
	return nil
}

// play yields the answer of r and stops early when ctx ends or the consumer does.
func (m *Model) play(ctx context.Context, r *rule, req *model.Request, yield func(model.Delta, error) bool) {
	if err := clock.Sleep(ctx, m.clock, r.delay); err != nil {
		yield(model.Delta{}, err)
		return
	}
	if r.reasoning != "" && !yield(model.Delta{Reasoning: r.reasoning}, nil) {
		return
	}
	for i, piece := range r.chunks {
		wait := r.chunkDelay
		if i == 0 {
			wait = 0
		}
		if err := clock.Sleep(ctx, m.clock, wait); err != nil {
			yield(model.Delta{}, err)
			return
		}
		if !yield(model.Delta{Text: piece}, nil) {
			return
		}
	}
	if r.fault != nil {
		fault := *r.fault
		yield(model.Delta{}, &fault)
		return
	}
	for i, c := range r.calls {
		d := &model.CallDelta{Index: i, ID: fmt.Sprintf("call_%d_%d", req.Step, i), Name: c.tool, Args: c.args}
		if !yield(model.Delta{Call: d}, nil) {
			return
		}
	}
	finish := model.FinishStop
	if len(r.calls) > 0 {
		finish = model.FinishToolCalls
	}
	yield(model.Delta{Finish: finish, Usage: r.usageFor(req)}, nil)
}

// A view is what the rules look at. It never walks the history further than to the newest user message.
type view struct {
	req     *model.Request
	message *string // the newest user message, once looked up
}

func (v *view) newest() *model.Message {
	if len(v.req.Messages) == 0 {
		return &model.Message{}
	}
	return &v.req.Messages[len(v.req.Messages)-1]
}

func (v *view) userMessage() string {
	if v.message == nil {
		v.message = new(string)
		for i := len(v.req.Messages) - 1; i >= 0; i-- {
			if v.req.Messages[i].Role == model.User {
				v.message = &v.req.Messages[i].Text
				break
			}
		}
	}
	return *v.message
}

func (v *view) hasResultOf(tool string, failed bool) bool {
	for _, r := range v.newest().Results {
		if r.Name == tool && (r.IsError || !failed) {
			return true
		}
	}
	return false
}

func (r *rule) matches(v *view) bool {
	if r.step != 0 && r.step != v.req.Step {
		return false
	}
	if r.toolResult != "" && !v.hasResultOf(r.toolResult, false) {
		return false
	}
	if r.toolFailed != "" && !v.hasResultOf(r.toolFailed, true) {
		return false
	}
	if r.message == nil {
		return true
	}
	alone := r.step == 0 && r.toolResult == "" && r.toolFailed == ""
	if alone && v.newest().Role != model.User {
		return false
	}
	return r.message.MatchString(v.userMessage())
}

func (r *rule) usageFor(req *model.Request) *model.Usage {
	if r.usage != nil {
		u := *r.usage
		return &u
	}
	v := view{req: req}
	newest := v.newest()
	in := len(req.Instructions) + len(newest.Text)
	for _, res := range newest.Results {
		in += len(res.Output)
	}
	return &model.Usage{InputTokens: tokens(in), OutputTokens: r.outputTokens}
}

// tokens estimates the tokens of n bytes.
func tokens(n int) int64 { return int64(n+3) / 4 }

func noRule(req *model.Request) *model.Error {
	v := view{req: req}
	var what strings.Builder
	fmt.Fprintf(&what, "no rule of the script matches step %d", req.Step)
	if newest := v.newest(); newest.Role == model.Results {
		names := make([]string, len(newest.Results))
		for i, r := range newest.Results {
			names[i] = r.Name
		}
		fmt.Fprintf(&what, " after results of %s", strings.Join(names, ", "))
	}
	text := v.userMessage()
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	fmt.Fprintf(&what, ", newest user message %q: add a rule for it, or a last rule without when", text)
	return &model.Error{Kind: model.Invalid, Message: what.String()}
}

// outputOf returns the size in bytes of everything the rule answers.
func outputOf(r *rule) int {
	n := len(r.reasoning)
	for _, piece := range r.chunks {
		n += len(piece)
	}
	for _, c := range r.calls {
		n += len(c.tool) + len(c.args)
	}
	return n
}
