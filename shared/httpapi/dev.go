package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
)

// dispatch has a schedule happen now, and answers when that is over. A function that fails is told as it is: only in development there is
// this route.
func (x *exchange) dispatch() error {
	if err := x.empty(); err != nil {
		return err
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // there is nothing to read any more; not every host has deadlines
	ctx, cancel := x.lasting()
	defer cancel()
	name := x.r.PathValue("scheduleId")
	done, err := x.agent.Dispatch(ctx, engine.Tick{Schedule: name, At: x.opts.Clock.Now(), ByHand: true})
	if err == nil && done.Failed != nil {
		err = bdkerr.New(bdkerr.ScheduleFailed, "the schedule failed, and is not tried again: %v", done.Failed)
	}
	if err != nil {
		return err
	}
	x.json(http.StatusOK, struct {
		OK         bool     `json:"ok"`
		ScheduleID string   `json:"scheduleId"`
		SessionIDs []string `json:"sessionIds"` // that it started or sent to
	}{true, name, append([]string{}, done.SessionIDs...)})
	return nil
}

// maxReminders bounds how many reminders are shown.
const maxReminders = 1000

// reminders shows the open reminders of all sessions.
func (x *exchange) reminders() error {
	if _, err := x.query(); err != nil {
		return err
	}
	list, err := x.agent.Reminders(x.r.Context(), maxReminders)
	if err != nil {
		return err
	}
	x.json(http.StatusOK, struct {
		OK        bool                 `json:"ok"`
		Reminders []bdk.ReminderRecord `json:"reminders"` // the next one first
	}{true, list})
	return nil
}

// remind sends a reminder now.
func (x *exchange) remind() error {
	if err := x.empty(); err != nil {
		return err
	}
	ctx, cancel := x.durable()
	defer cancel()
	id := x.r.PathValue("reminderId")
	err := x.agent.Remind(ctx, id)
	if errors.Is(err, bdk.ErrNotFound) {
		err = bdkerr.New(bdkerr.NotFound, "there is no open reminder %.80q of a session that goes on", id)
	}
	if err != nil {
		return err
	}
	x.json(http.StatusOK, struct {
		OK         bool   `json:"ok"`
		ReminderID string `json:"reminderId"`
	}{true, id})
	return nil
}

// empty refuses a request that asks for anything beside its path.
func (x *exchange) empty() error {
	if _, err := x.query(); err != nil {
		return err
	}
	body, err := x.body()
	if err == nil && body != nil {
		_, err = decode(body)
	}
	return err
}
