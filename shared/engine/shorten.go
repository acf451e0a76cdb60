package engine

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/model"
)

// shorten cuts the outputs of one step so that they share budget bytes. Small outputs stay whole; what they leave is
// divided among the large ones, of which head and tail are kept.
func shorten(results []model.Result, budget int) []model.Result {
	total := 0
	for _, r := range results {
		total += len(r.Output)
	}
	if budget <= 0 || total <= budget {
		return results
	}
	limit := fairShare(results, budget)
	for i := range results {
		results[i].Output = headAndTail(results[i].Output, limit)
	}
	return results
}

// fairShare returns the size to which the largest outputs must be cut so that all fit the budget.
func fairShare(results []model.Result, budget int) int {
	sizes := make([]int, len(results))
	for i, r := range results {
		sizes[i] = len(r.Output)
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share := budget / (len(sizes) - i)
		if size > share {
			return share
		}
		budget -= size
	}
	return budget
}

// headAndTail returns text cut to at most limit bytes, on character boundaries, with a note where the middle was. Where
// there is no room for the note only the head stays.
func headAndTail(text string, limit int) string {
	const note = "\n[… %d of %d bytes left out …]\n"
	if len(text) <= limit {
		return text
	}
	room := limit - len(fmt.Sprintf(note, len(text), len(text)))
	head, tail := room*2/3, len(text)-room/3
	if room <= 0 {
		head, tail = max(0, limit), len(text)
	}
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	if room <= 0 {
		return text[:head]
	}
	return text[:head] + fmt.Sprintf(note, tail-head, len(text)) + text[tail:]
}
