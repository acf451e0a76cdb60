// Package audit has the hook that keeps a trail.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Trail writes down what it is told of sessions whose message begins with trail, for the tool trail to read.
var Trail = bdk.DefineHook(bdk.HookSpec{},
	bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, data bdk.MessageReceived) error {
		if !strings.HasPrefix(data.Text, "trail") {
			return nil
		}
		return keep(ctx, h, e, true)
	}),
	bdk.On(func(ctx context.Context, h *bdk.HookContext, e bdk.Event, _ bdk.TurnCompleted) error {
		return keep(ctx, h, e, false)
	}),
)

// keep adds an event to the trail of its session, which only some events begin.
func keep(ctx context.Context, h *bdk.HookContext, e bdk.Event, begin bool) error {
	key := "trail/" + h.Session.ID
	entry, err := h.KV.Get(ctx, key)
	if errors.Is(err, bdk.ErrNotFound) && begin {
		err = nil
	}
	if errors.Is(err, bdk.ErrNotFound) {
		return nil
	}
	var trail []string
	if err == nil && entry.Version != 0 {
		err = json.Unmarshal(entry.Value, &trail)
	}
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%d %s %s %s", e.Index, e.Type, h.Channel.ID, h.Session.Owner)
	return h.KV.Swap(ctx, key, entry.Version, append(trail, line))
}
