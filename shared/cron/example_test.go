package cron_test

import (
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/shared/cron"
)

func Example() {
	s, err := cron.Parse("0 9 1 * MON")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range s.NextN(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), 3) {
		fmt.Println(at.Format(time.RFC3339))
	}
	for _, expression := range s.AWS() {
		fmt.Println(expression)
	}
	// Output:
	// 2026-12-07T09:00:00Z
	// 2026-12-14T09:00:00Z
	// 2026-12-21T09:00:00Z
	// cron(0 9 1 * ? *)
	// cron(0 9 ? * MON *)
}
