// Command sample is the program of the functions over an agent in memory, see package memhost. The variable _HANDLER names the function.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/internal/memhost"
	"github.com/bdk-lambda/bdk/functions/internal/table"
)

func main() {
	if err := run(context.Background(), os.Getenv); err != nil { //nolint:forbidigo // where the program begins
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string) error {
	handler, err := table.Handler(getenv("_HANDLER"))
	if err != nil {
		return err
	}
	h, err := memhost.Open(ctx, os.Stdout)
	if err != nil {
		return err
	}
	lambda.Start(handler(h, getenv("AWS_SAM_LOCAL") == "true"))
	return nil
}
