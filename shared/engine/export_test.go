package engine

import (
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/session"
)

// What tests see of the transcript.
type Transcript = transcript

func NewTranscript(budget int) *Transcript {
	t := &transcript{}
	t.limit(budget)
	return t
}

func Revive(snap session.Snapshot, budget int) *Transcript {
	t := revive(snap)
	t.limit(budget)
	return t
}

func Freeze(t *Transcript) session.Snapshot {
	snap, err := freeze(t)
	if err != nil {
		panic(err)
	}
	return snap
}

func (t *transcript) Fold(e event.Event) error { return t.fold(e) }

func (t *thread) Open() []event.ActionCall { return t.open() }

func SizeOf(m model.Message) int { return sizeOf(m) }

func HeadAndTail(text string, limit int) string { return headAndTail(text, limit) }

func Shorten(results []model.Result, budget int) []model.Result { return shorten(results, budget) }

// Cached returns how many transcripts the engine keeps and how large they are taken to be.
func (e *Engine) Cached() (sessions, bytes int) {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	return e.cache.order.Len(), e.cache.held
}
