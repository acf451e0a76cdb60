package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/bdk-lambda/bdk/bdkpack/cli/stack"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// destroyRun removes the stack of an agent, whose folder need not be in order.
func destroyRun(ctx context.Context, io *IO, opts deployOptions, at surroundings) error {
	if err := opts.check(); err != nil {
		return err
	}
	if !opts.yes && !io.Asks {
		return usagef("--destroy asks before it removes something: without a terminal say --yes")
	}
	dir, err := project.Resolve(opts.dir)
	if err != nil {
		return err
	}
	slug := filepath.Base(dir)
	where, err := findTarget(ctx, at)
	if err != nil {
		return err
	}
	name := deploy.StackName(slug)
	s, err := stack.Find(ctx, cloudformation.NewFromConfig(where.aws), io.Clock, name)
	if errors.Is(err, stack.ErrNone) {
		return fmt.Errorf("there is no stack %s in %s: if %s is deployed elsewhere, set AWS_REGION or AWS_PROFILE", name, where, slug)
	}
	if err != nil {
		return err
	}
	kept, err := s.Kept(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(io.Err, consequences(name, where, kept))
	if !opts.yes {
		if err := confirm(ctx, io); err != nil {
			return err
		}
	}
	if err := s.Delete(ctx, countdown(io)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "%s is no longer deployed in %s.\n", slug, where)
	return err
}

// consequences tells what the removal of a stack means.
func consequences(name string, where target, kept []stack.Resource) string {
	var b strings.Builder
	fmt.Fprintf(&b, "removing the stack %s in %s, and its secret with the tokens of callers.\n", name, where)
	if len(kept) == 0 {
		b.WriteString("Nothing of it stays: the sessions are removed too.\n")
		return b.String()
	}
	b.WriteString("What stays, until you remove it yourself:\n")
	for _, r := range kept {
		fmt.Fprintf(&b, "  %-24s %s\n", r.Type, r.Name)
	}
	return b.String()
}

// confirm asks whether to go on.
func confirm(ctx context.Context, io *IO) error {
	fmt.Fprint(io.Err, "Go on? [y/N] ")
	answer := make(chan string, 1)
	go func() { // reading cannot be interrupted
		text, _ := bufio.NewReader(io.In).ReadString('\n') // no answer is one as well
		answer <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case text := <-answer:
		if text != "y" && text != "yes" {
			return errors.New("nothing was removed")
		}
		return nil
	}
}

// countdown returns what shows how much is still there, now and then.
func countdown(io *IO) func(left int) {
	const pause = 10 * time.Second
	var last time.Time
	return func(left int) {
		if now := io.Clock.Now(); now.Sub(last) >= pause {
			last = now
			fmt.Fprintf(io.Err, "removing, %d resources are left\n", left)
		}
	}
}
