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

// headAndTail returns text cut to about limit bytes, on character boundaries, with a note where the middle was.
func headAndTail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit*2/3, len(text)-limit/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", text[:head], tail-head, len(text), text[tail:])
}
