// Package invocation is what workers have in common: each invocation leaves one record in the log, and a panic becomes its error.
package invocation

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Run does the work of one invocation of the named function, and logs it with the given attributes, those that work returns, and
// the id of the invocation. A panic of work is an error: it must not end a process that other work depends on.
func Run(ctx context.Context, log *slog.Logger, function string, work func() ([]slog.Attr, error), attrs ...slog.Attr) error {
	found, err := safely(work)
	all := append([]slog.Attr{slog.String("function", function)}, attrs...)
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		all = append(all, slog.String("request_id", lc.AwsRequestID))
	}
	all = append(all, found...)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelError
		all = append(all, slog.Any("error", err))
	}
	log.LogAttrs(ctx, level, "invocation", all...)
	return err
}

func safely(work func() ([]slog.Attr, error)) (attrs []slog.Attr, err error) {
	defer func() {
		if v := recover(); v != nil {
			attrs = []slog.Attr{slog.String("stack", string(debug.Stack()))}
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return work()
}
