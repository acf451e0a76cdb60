package e2e_test

import (
	"fmt"
	"testing"

	"github.com/bdk-lambda/bdk/shared/launch"
)

// TestManyClients: clients at the same time, turn after turn, none of which fails.
func TestManyClients(t *testing.T) {
	t.Parallel()
	const clients, turns = 8, 50
	target := inProcess(t, launch.Config{})
	for i := range clients {
		t.Run(fmt.Sprintf("client %d", i), func(t *testing.T) {
			t.Parallel()
			s := target.Ann(t).Start("add it")
			s.Completed()
			for range turns - 1 {
				s.Say("add more")
				s.Completed()
			}
		})
	}
}
