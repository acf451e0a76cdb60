package table_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/functions/internal/table"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// TestEveryFunctionHasAHandler: and there are no others.
func TestEveryFunctionHasAHandler(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range deploy.Functions() {
		names = append(names, f.Name)
		if _, err := table.Handler(f.Name); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(names)
	_, err := table.Handler("stepp")
	if err == nil || !strings.HasSuffix(err.Error(), ": it must be one of "+strings.Join(names, ", ")) || !strings.Contains(err.Error(), `"stepp"`) {
		t.Errorf("got error %v", err)
	}
}
