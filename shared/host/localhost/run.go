package localhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/session"
)

// errTurnFailed says that a turn failed and that the user was told so.
var errTurnFailed = errors.New("the turn failed")

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
	c := a.Sessions().Cursor(acc.SessionID, 0)
	defer c.Close()
	for {
		events, err := c.Read(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			if done, err := p.show(e); done {
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

// show writes what an event says to the user. It reports whether the turn has ended, and how.
func (p *Program) show(e event.Event) (done bool, err error) {
	switch e.Type {
	case event.TypeMessageAppended:
		if d, err := event.Decode[event.MessageAppended](e); err == nil {
			_, _ = fmt.Fprint(p.Stdout, d.Text)
		}
	case event.TypeMessageCompleted:
		if d, err := event.Decode[event.MessageCompleted](e); err == nil && d.Text != "" {
			_, _ = fmt.Fprintln(p.Stdout)
		}
	case event.TypeStepRestarted:
		_, _ = fmt.Fprintln(p.Stderr, "\n[the model is asked again]")
	case event.TypeActionsRequested:
		if d, err := event.Decode[event.ActionsRequested](e); err == nil {
			for _, c := range d.Calls {
				_, _ = fmt.Fprintf(p.Stderr, "[%s %s]\n", c.ToolName, c.Args)
			}
		}
	case event.TypeTurnCompleted:
		return true, nil
	case event.TypeTurnFailed:
		d, _ := event.Decode[event.TurnFailed](e)
		_, _ = fmt.Fprintf(p.Stderr, "the turn failed: %s\n", d.Message)
		return true, errTurnFailed
	default:
	}
	return false, nil
}
