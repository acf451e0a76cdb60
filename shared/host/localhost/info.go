package localhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// mistakes returns what is wrong with the definitions of tools and schedules, which nothing but running them shows.
func (p *Program) mistakes() error {
	var errs []error
	for _, project := range p.Projects {
		for _, t := range project.Tools {
			if err := t.Tool.Err(); err != nil {
				errs = append(errs, fmt.Errorf("agent %s, tool %s (%s): %w", project.Slug, t.Name, t.Source, err))
			}
		}
		if err := project.ArtifactKinds.Err(); err != nil {
			errs = append(errs, fmt.Errorf("agent %s, the kinds of artifacts: %w", project.Slug, err))
		}
		for _, h := range project.Hooks {
			if err := h.Hook.Err(); err != nil {
				errs = append(errs, fmt.Errorf("agent %s, hook %s (%s): %w", project.Slug, h.Name, h.Source, err))
			}
		}
		for _, s := range project.Schedules {
			if err := s.Schedule.Err(); err != nil {
				errs = append(errs, fmt.Errorf("agent %s, schedule %s (%s): %w", project.Slug, s.Name, s.Source, err))
			}
		}
		for _, c := range slices.Concat(project.Connections, project.HostConnections) {
			if err := c.Connection.Err(); err != nil {
				errs = append(errs, fmt.Errorf("agent %s, connection %s (%s): %w", project.Slug, c.Name, c.Source, err))
			}
		}
	}
	return errors.Join(errs...)
}
