// Package wake has a host look after what is due at a time, where no process waits for it.
package wake

import (
	"context"
	"time"
)

// Alarm rings for things that are due, each at its time. It is a help, not a record: what is due has to be kept elsewhere, and be
// found some time if an alarm is lost. Implementations are safe for concurrent use.
type Alarm interface {
	// Set has the alarm ring for id at a time, or in the first minute after it, at least once; soon if the time has passed. The same
	// id and time may be set again.
	Set(ctx context.Context, id string, at time.Time) error
	// Unset has it not ring for id any more, as far as it has not begun to. It is no error if it was not set, or has rung.
	Unset(ctx context.Context, id string) error
}
