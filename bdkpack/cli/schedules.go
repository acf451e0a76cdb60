package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/cron"
)

// nextTimes returns a line about a schedule: when it is due, and the next three times.
func nextTimes(io *IO, name, expression string) string {
	const shown = 3
	s, err := cron.Parse(expression)
	if err != nil {
		return fmt.Sprintf("schedule %s: %v", name, err)
	}
	return dueLine(name, expression, s.NextN(io.Clock.Now(), shown))
}

// dueLine returns a line about a schedule with times at which it is due.
func dueLine(name, expression string, times []time.Time) string {
	if len(times) == 0 {
		return fmt.Sprintf("schedule %s (%s)", name, expression)
	}
	var shown []string
	for _, at := range times {
		shown = append(shown, at.UTC().Format("2006-01-02 15:04"))
	}
	return fmt.Sprintf("schedule %s (%s) is due at %s UTC", name, expression, strings.Join(shown, ", "))
}
