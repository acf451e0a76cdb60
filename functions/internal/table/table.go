// Package table knows the functions by the names that Lambda is given.
package table

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/functions/await"
	"github.com/bdk-lambda/bdk/functions/discovery"
	"github.com/bdk-lambda/bdk/functions/dispatch"
	"github.com/bdk-lambda/bdk/functions/exec"
	"github.com/bdk-lambda/bdk/functions/gateway"
	hookfn "github.com/bdk-lambda/bdk/functions/hook"
	"github.com/bdk-lambda/bdk/functions/purge"
	"github.com/bdk-lambda/bdk/functions/sessions"
	"github.com/bdk-lambda/bdk/functions/step"
	"github.com/bdk-lambda/bdk/functions/stream"
	"github.com/bdk-lambda/bdk/functions/sweep"
	"github.com/bdk-lambda/bdk/functions/tools"
	"github.com/bdk-lambda/bdk/functions/wake"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
)

// Host is what the functions ask of the agent they serve. Implementations are safe for concurrent use.
type Host interface {
	step.Turns
	sweep.Turns
	wake.Schedules

	// API returns the HTTP surface, at /<slug>/v1. If buffered is set, answers do not follow what they tell of.
	API(ctx context.Context, buffered bool) (http.Handler, error)
	workers
	telling
	named
}

// workers are what single functions do.
type workers interface {
	Await(ctx context.Context, in sfnturn.AwaitInput) error
	Exec(ctx context.Context, req lambdaexec.Request) lambdaexec.Answer
	Purge(ctx context.Context, sessionID, snapshot string) error
}

// telling is what subscribers of events are told by.
type telling interface {
	Announce(ctx context.Context, events []event.Event) (failed int, err error)
	Receive(ctx context.Context, m hook.Message) error
}

// named is how a host is called, in paths and in the log.
type named interface {
	Slug() string
	Log() *slog.Logger
}

// Handler returns what makes the Lambda handler of the function with the given name, or an error that tells the names there are.
// A buffered one does not answer in pieces.
func Handler(name string) (func(h Host, buffered bool) any, error) {
	handlers := handlers()
	if handler, ok := handlers[name]; ok {
		return handler, nil
	}
	return nil, fmt.Errorf("the handler is %q: it must be one of %s", name, strings.Join(slices.Sorted(maps.Keys(handlers)), ", "))
}

func handlers() map[string]func(h Host, buffered bool) any {
	return map[string]func(h Host, buffered bool) any{
		deploy.Sessions:  func(h Host, _ bool) any { return sessions.New(api(h, false), options(h)) },
		deploy.Discovery: func(h Host, _ bool) any { return discovery.New(api(h, false), options(h)) },
		deploy.Stream: func(h Host, buffered bool) any {
			if buffered {
				return stream.NewBuffered(api(h, true), options(h))
			}
			return stream.New(api(h, false), options(h))
		},
		deploy.Tools: func(h Host, buffered bool) any {
			if buffered {
				return tools.NewBuffered(api(h, true), options(h))
			}
			return tools.New(api(h, false), options(h))
		},
		deploy.Step:     func(h Host, _ bool) any { return step.New(h, clock.System{}, h.Log()) },
		deploy.Await:    func(h Host, _ bool) any { return await.New(h.Await, h.Log()) },
		deploy.Exec:     func(h Host, _ bool) any { return exec.New(h.Exec, h.Log()) },
		deploy.Sweep:    func(h Host, _ bool) any { return sweep.New(h, h.Log()) },
		deploy.Dispatch: func(h Host, _ bool) any { return dispatch.New(h.Announce, h.Log()) },
		deploy.Hook:     func(h Host, _ bool) any { return hookfn.New(h.Receive, h.Log()) },
		deploy.Purge:    func(h Host, _ bool) any { return purge.New(h.Purge, h.Log()) },
		deploy.Wake:     func(h Host, _ bool) any { return wake.New(h, h.Log()) },
	}
}

// api returns the API of a host.
func api(h Host, buffered bool) http.Handler {
	return gateway.Lazy(func(ctx context.Context) (http.Handler, error) { return h.API(ctx, buffered) }, h.Log())
}

// options returns the gateway's; the stage of the API is the agent's slug.
func options(h Host) gateway.Options { return gateway.Options{Stage: h.Slug(), Log: h.Log()} }
