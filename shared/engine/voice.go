package engine

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// How deltas are gathered into events: the first is written at once, then what came within deltaEvery or deltaBytes.
const (
	deltaEvery = 250 * time.Millisecond
	deltaBytes = 900
)

// voice turns the deltas of one answer into events. Text leaves it in whole characters only, and what it has given out
// as deltas adds up to exactly what it gives as the whole.
type voice struct {
	model     string // provider:name
	parent    string // call id of the delegation that speaks; "" for the agent itself
	answer    *model.Accumulator
	text      spoken
	reasoning spoken
	out       []event.Data // complete events that wait to be written
	wrote     time.Time    // when deltas were last given out; zero before the first
}

// spoken is one kind of text: what waits to be given out, and all that was.
type spoken struct {
	pending []byte
	whole   strings.Builder
}

func newVoice(modelID, parent string) *voice {
	return &voice{model: modelID, parent: parent, answer: model.NewAccumulator(modelID)}
}

// take adds a delta.
func (v *voice) take(d model.Delta) {
	v.answer.Add(d)
	if d.Text != "" || d.Call != nil {
		v.endReasoning("")
	}
	v.text.pending = append(v.text.pending, d.Text...)
	v.reasoning.pending = append(v.reasoning.pending, d.Reasoning...)
	if d.Signature != "" {
		v.endReasoning(d.Signature)
	}
}

// endReasoning completes the open block of reasoning, if there is one.
func (v *voice) endReasoning(signature string) {
	if rest := v.reasoning.speak(true); rest != "" {
		v.out = append(v.out, event.ReasoningAppended{Text: rest, ParentCallID: v.parent})
	}
	if v.reasoning.whole.Len() == 0 && signature == "" {
		return
	}
	done := event.ReasoningCompleted{Text: v.reasoning.whole.String(), Signature: signature, ParentCallID: v.parent}
	if signature != "" {
		done.Model = v.model
	}
	v.out = append(v.out, done)
	v.reasoning.whole.Reset()
}

// wait returns how long the text that waits may wait longer; ok is false if none waits.
func (v *voice) wait(now time.Time) (d time.Duration, ok bool) {
	waiting := len(v.text.pending) + len(v.reasoning.pending)
	switch {
	case waiting == 0 && len(v.out) == 0:
		return 0, false
	case waiting >= deltaBytes || len(v.out) > 0:
		return 0, true
	}
	return max(0, deltaEvery-now.Sub(v.wrote)), true
}

// speak returns the events that are due now.
func (v *voice) speak(now time.Time) []event.Data {
	v.wrote = now
	out := v.out
	v.out = nil
	if s := v.reasoning.speak(false); s != "" {
		out = append(out, event.ReasoningAppended{Text: s, ParentCallID: v.parent})
	}
	if s := v.text.speak(false); s != "" {
		out = append(out, event.MessageAppended{Text: s, ParentCallID: v.parent})
	}
	return out
}

// rest returns the events that remain once the answer has ended.
func (v *voice) rest() []event.Data {
	v.endReasoning("")
	out := v.out
	v.out = nil
	if s := v.text.speak(true); s != "" {
		out = append(out, event.MessageAppended{Text: s, ParentCallID: v.parent})
	}
	return out
}

// speak gives out what waits, up to the last whole character unless it is the end. Bytes that are no characters become U+FFFD.
func (s *spoken) speak(end bool) string {
	n := len(s.pending)
	if !end {
		n -= partial(s.pending)
	}
	if n == 0 {
		return ""
	}
	text := strings.ToValidUTF8(string(s.pending[:n]), "\uFFFD")
	s.pending = append(s.pending[:0], s.pending[n:]...)
	s.whole.WriteString(text)
	return text
}

// partial returns how many bytes at the end of b are the beginning of a character.
func partial(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return i
		}
	}
	return 0
}
