package bdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestHookCallsItsHandlers(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	var calls []string
	hook := bdk.DefineHook(bdk.HookSpec{},
		bdk.OnAny(func(_ context.Context, h *bdk.HookContext, e bdk.Event) error {
			calls = append(calls, fmt.Sprint("any ", e.Type, " ", string(e.Data), " ", h.Session.ID))
			return nil
		}),
		bdk.On(func(_ context.Context, _ *bdk.HookContext, e bdk.Event, data bdk.MessageReceived) error {
			calls = append(calls, fmt.Sprint("own ", e.Index, " ", data.Text))
			clear(e.Data)
			return errBoom
		}),
	)
	e := bdk.Event{Type: bdk.EventMessageReceived, Index: 3, Data: json.RawMessage(`{"text":"hi"}`)}
	err := hook.Handle(t.Context(), &bdk.HookContext{Session: bdk.SessionInfo{ID: "s"}}, e)
	if !errors.Is(err, errBoom) {
		t.Errorf("got error %v", err)
	}
	if err := hook.Handle(t.Context(), nil, bdk.Event{Type: "new.type", Data: json.RawMessage(`{}`)}); err != nil {
		t.Error(err)
	}
	want := []string{"own 3 hi", `any message.received {"text":"hi"} s`, "any new.type {} "}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if err := hook.Handle(t.Context(), nil, bdk.Event{Type: bdk.EventMessageReceived, Data: json.RawMessage(`{"text":3}`)}); err == nil {
		t.Error("data of another shape is accepted")
	}
	if diff := cmp.Diff([]bdk.EventType{"*", "message.received"}, hook.Events()); diff != "" {
		t.Error(diff)
	}
}

func TestHooksThatAreWrong(t *testing.T) {
	t.Parallel()
	ok := bdk.On(func(context.Context, *bdk.HookContext, bdk.Event, bdk.TurnFailed) error { return nil })
	for name, test := range map[string]struct {
		hook bdk.Hook
		want string
	}{
		"none":             {bdk.Hook{}, ""},
		"fine":             {bdk.DefineHook(bdk.HookSpec{Timeout: 5 * time.Minute}, ok), ""},
		"two of a type":    {bdk.DefineHook(bdk.HookSpec{}, ok, ok), "there are two handlers for turn.failed: make them one"},
		"without function": {bdk.DefineHook(bdk.HookSpec{}, bdk.OnAny(nil)), "the handler for all events has no function"},
		"typed, without":   {bdk.DefineHook(bdk.HookSpec{}, bdk.On[bdk.TurnCompleted](nil)), "the handler for turn.completed has no function"},
		"too long":         {bdk.DefineHook(bdk.HookSpec{Timeout: time.Hour}, ok), "the Timeout is 1h0m0s: it must be from 0, for 30s, to 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := test.hook.Err(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if err := test.hook.Handle(t.Context(), nil, bdk.Event{Type: bdk.EventTurnFailed, Data: json.RawMessage(`{}`)}); (err != nil) != (test.want != "") {
				t.Errorf("Handle: %v", err)
			}
		})
	}
}
