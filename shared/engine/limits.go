package engine

import (
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/model"
)

// checkLimits returns what cannot be meant in the sizes and limits of an agent, whose defaults are filled in.
func checkLimits(a bdk.Agent) error {
	l := a.Limits
	var errs []error
	for _, f := range []struct {
		name     string
		value    any
		negative bool
	}{
		{"MaxOutputTokens", a.MaxOutputTokens, a.MaxOutputTokens < 0},
		{"ContextTokens", a.ContextTokens, a.ContextTokens < 0},
		{"SessionTTL", a.SessionTTL, a.SessionTTL < 0},
		{"StepsPerTurn", l.StepsPerTurn, l.StepsPerTurn < 0},
		{"TurnTime", l.TurnTime, l.TurnTime < 0},
		{"RunningTurns", l.RunningTurns, l.RunningTurns < 0},
		{"ParallelTools", l.ParallelTools, l.ParallelTools < 0},
		{"ToolOutput", l.ToolOutput, l.ToolOutput < 0},
		{"TokensPerSession", l.TokensPerSession, l.TokensPerSession < 0},
		{"USDPerSession", l.USDPerSession, l.USDPerSession < 0},
	} {
		if f.negative {
			errs = append(errs, fmt.Errorf("%s is %v: leave it out for the default", f.name, f.value))
		}
	}
	if len(errs) == 0 && room(a) == 0 {
		errs = append(errs, fmt.Errorf("ContextTokens is %d, which leaves no room to read beside MaxOutputTokens, %d", a.ContextTokens, a.MaxOutputTokens))
	}
	return errors.Join(errs...)
}

// reached returns which limit forbids another model call, "" if none does.
func (l *lane) reached() string {
	l.mu.Lock()
	spent := l.t.Spent
	l.mu.Unlock()
	limits := l.project.Agent.Limits
	tokens := model.Usage(spent.Usage).Total()
	switch {
	case l.th.Steps >= limits.StepsPerTurn:
		return fmt.Sprintf("the turn made %d model calls (StepsPerTurn)", limits.StepsPerTurn)
	case limits.TokensPerSession > 0 && tokens >= limits.TokensPerSession:
		return fmt.Sprintf("the session used %d tokens of %d (TokensPerSession)", tokens, limits.TokensPerSession)
	case limits.USDPerSession > 0 && spent.USD >= limits.USDPerSession:
		return fmt.Sprintf("the session cost about $%.4f of $%.4f (USDPerSession)", spent.USD, limits.USDPerSession)
	}
	return ""
}
