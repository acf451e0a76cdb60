// Package functions is the program of all Lambda functions of an agent: the name of the handler says which one a process is.
// The packages below are the functions.
package functions

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/functions/internal/table"
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
	handler, err := table.Handler(getenv("_HANDLER"))
	if err != nil {
		return nil, err
	}
	h, err := awshost.Open(ctx, projects[0], awshost.Options{Getenv: getenv, Stdout: stdout})
	if err != nil {
		return nil, err
	}
	// the API Gateway of SAM does not take an answer in pieces
	return handler(h, getenv("AWS_SAM_LOCAL") == "true"), nil
}
