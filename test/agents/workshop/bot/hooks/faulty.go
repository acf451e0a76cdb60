// Package hooks has a hook that fails.
package hooks

import (
	"context"
	"errors"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Faulty fails, or panics, at some messages.
var Faulty = bdk.DefineHook(bdk.HookSpec{}, bdk.On(func(_ context.Context, _ *bdk.HookContext, _ bdk.Event, data bdk.MessageReceived) error {
	switch data.Text {
	case "trail, and fail":
		return errors.New("the hook was told to fail")
	case "trail, and panic":
		panic("the hook was told to panic")
	}
	return nil
}))
