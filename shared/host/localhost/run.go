package localhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/narrate"
	"github.com/bdk-lambda/bdk/shared/session"
)

// run runs one turn of a new session and writes the reply as it comes.
func (p *Program) run(ctx context.Context) error {
	project, err := p.project(p.Config.Agent)
	if err != nil {
		return err
	}
	p.Projects = []bdk.Project{project}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	s.serve(ctx)
	return errors.Join(p.converse(ctx, s.agents[0]), s.close())
}

func (p *Program) converse(ctx context.Context, a *agent) error {
	acc, err := a.Start(ctx, session.Start{Owner: string(auth.Local), Message: p.Config.Message})
	if err != nil {
		return err
	}
	c, n := a.Sessions().Cursor(acc.SessionID, 0), narrate.New(p.Stdout, p.Stderr)
	defer c.Close()
	approver := &narrate.Approver{Mode: p.Config.Approve, In: bufio.NewReader(p.Stdin), Out: p.Stderr}
	for {
		events, err := c.Read(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if done, err := n.Show(e); done {
				return err
			}
			if err := decide(ctx, a, approver, e); err != nil {
				return err
			}
		}
		if len(events) > 0 {
			continue
		}
		if err := c.Wait(ctx); err != nil {
			return fmt.Errorf("waiting for the reply: %w", err)
		}
	}
}

// decide answers an event that asks for an approval.
func decide(ctx context.Context, a *agent, approver *narrate.Approver, e event.Event) error {
	callID, decision, ok, err := approver.Decide(e)
	if err != nil || !ok {
		return err
	}
	_, err = a.Decide(ctx, engine.Decision{SessionID: e.SessionID, CallID: callID, By: string(auth.Local), Approve: decision == event.Approve})
	return err
}
