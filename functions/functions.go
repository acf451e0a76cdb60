// Package functions is the program of all Lambda functions of an agent: the name of the handler says which one a process is.
// The packages below are the functions.
package functions

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/functions/await"
	"github.com/bdk-lambda/bdk/functions/discovery"
	"github.com/bdk-lambda/bdk/functions/gateway"
	"github.com/bdk-lambda/bdk/functions/purge"
	"github.com/bdk-lambda/bdk/functions/sessions"
	"github.com/bdk-lambda/bdk/functions/step"
	"github.com/bdk-lambda/bdk/functions/stream"
	"github.com/bdk-lambda/bdk/functions/sweep"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/host/awshost"
)

// Main is the whole main function of a packed agent: it serves the function that Lambda has started the process for. It
// returns, with an exit code, only if that cannot be done.
func Main(projects []bdk.Project) int {
	handler, err := open(context.Background(), projects, os.Getenv, os.Stdout) //nolint:forbidigo // where the program begins
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("the function cannot start", slog.Any("error", err))
		return 1
	}
	lambda.Start(handler)
	return 0
}

// open returns the Lambda handler of the function that the environment names.
func open(ctx context.Context, projects []bdk.Project, getenv func(string) string, stdout io.Writer) (any, error) {
	if len(projects) != 1 {
		return nil, fmt.Errorf("the program was built of %d agents: one is packed at a time", len(projects))
	}
	name := getenv("_HANDLER")
	handler, ok := handlers()[name]
	if !ok {
		return nil, fmt.Errorf("the handler is %q: it must be one of %s", name, strings.Join(slices.Sorted(maps.Keys(handlers())), ", "))
	}
	h, err := awshost.Open(ctx, projects[0], awshost.Options{Getenv: getenv, Stdout: stdout})
	if err != nil {
		return nil, err
	}
	// neither the local one of SAM nor an integration that does not stream takes an answer in pieces
	return handler(h, getenv("AWS_SAM_LOCAL") == "true" || getenv(deploy.EnvBuffered) != ""), nil
}

// handlers returns what makes the handler of each function.
func handlers() map[string]func(h *awshost.Host, buffered bool) any {
	return map[string]func(h *awshost.Host, buffered bool) any{
		deploy.Sessions:  func(h *awshost.Host, _ bool) any { return sessions.New(api(h, false), options(h)) },
		deploy.Discovery: func(h *awshost.Host, _ bool) any { return discovery.New(api(h, false), options(h)) },
		deploy.Stream: func(h *awshost.Host, buffered bool) any {
			if buffered {
				return stream.NewBuffered(api(h, true), options(h))
			}
			return stream.New(api(h, false), options(h))
		},
		deploy.Step:  func(h *awshost.Host, _ bool) any { return step.New(h, clock.System{}, h.Log()) },
		deploy.Await: func(h *awshost.Host, _ bool) any { return await.New(h.Await) },
		deploy.Sweep: func(h *awshost.Host, _ bool) any { return sweep.New(h.Sweep) },
		deploy.Purge: func(h *awshost.Host, _ bool) any { return purge.New(h.Purge, h.Log()) },
	}
}

// api returns the API of a host.
func api(h *awshost.Host, buffered bool) http.Handler {
	return gateway.Lazy(func(ctx context.Context) (http.Handler, error) { return h.API(ctx, buffered) }, h.Log())
}

// options returns the gateway's; the stage of the API is the agent's slug.
func options(h *awshost.Host) gateway.Options { return gateway.Options{Stage: h.Slug(), Log: h.Log()} }
