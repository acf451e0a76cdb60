package localhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// info writes what was discovered of the agents, as JSON: {"agents": [...]}, each as GET /v1/info shows it.
func (p *Program) info(context.Context) error {
	var out struct {
		Agents []httpapi.Info `json:"agents"`
	}
	for _, project := range p.Projects {
		models := append([]string{project.Agent.Model}, project.Agent.Fallbacks...)
		if id := p.Getenv("BDK_MODEL"); id != "" {
			models = []string{id}
		}
		out.Agents = append(out.Agents, httpapi.Describe(project, models, p.Config.Diagnostics, clock.System{}.Now()))
	}
	encoder := json.NewEncoder(p.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("writing the description: %w", err)
	}
	return p.mistakes()
}

// mistakes returns what is wrong with the definitions, which nothing but running them shows.
func (p *Program) mistakes() error {
	var errs []error
	for _, project := range p.Projects {
		if err := project.Err(); err != nil {
			errs = append(errs, fmt.Errorf("agent %s: %w", project.Slug, err))
		}
	}
	return errors.Join(errs...)
}
