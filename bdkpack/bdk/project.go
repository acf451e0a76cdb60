package bdk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Project is one agent with everything that was discovered in its folder. Generated programs build it and pass it to a
// host; authors do not need it.
type Project struct {
	Slug         string       // the name of the agent's folder
	Agent        Agent        // as defined in agent.go; the zero Agent if there is none
	Instructions Instructions // Agent.Instructions wins if it is set
	Tools        []NamedTool  // in name order
	Skills       []NamedSkill // in name order
	Subagents    []Subagent   // in name order

	Hooks           []NamedHook       // in name order
	Channels        []NamedChannel    // in name order
	Schedules       []NamedSchedule   // in name order
	Connections     []NamedConnection // in name order
	HostConnections []NamedConnection // for code only; in name order
	ArtifactKinds   ArtifactKinds     // the zero value if there is no artifacts.go

	Seed string // the folder with the first files of each session, relative to the agent's folder; "" for none
}

// NamedSkill is a skill and the name its path gave it.
type NamedSkill struct {
	Name   string // as the model sees it
	Source string // the file it is defined in, relative to the agent's folder
	Dir    string // the folder whose files belong to it, relative to the agent's folder; "" if Skill.Files has them all
	Skill  Skill  // its definition
}

// Subagent is a specialist that the model can delegate to. It has the tools and files of its parent.
type Subagent struct {
	Name         string       // as the model sees it
	Source       string       // the file it is defined in, relative to the agent's folder
	Agent        Agent        // Description, Model, Fallbacks and Instructions are used; limits and tools are the parent's
	Instructions Instructions // Agent.Instructions wins if it is set; those of its parent if neither is
}

// NamedTool is a tool and the name its path gave it.
type NamedTool struct {
	Name   string // as the model sees it
	Source string // the file it is defined in, relative to the agent's folder
	Tool   Tool   // its definition
}

// NamedHook is a hook and the name its path gave it.
type NamedHook struct {
	Name   string // with slashes, such as audit/usage
	Source string // the file it is defined in, relative to the agent's folder
	Hook   Hook   // its definition
}

// NamedChannel is a channel and the id its path gave it.
type NamedChannel struct {
	Name    string  // the id
	Source  string  // the file it is defined in, relative to the agent's folder
	Channel Channel // its definition
}

// NamedSchedule is a schedule and the id its path gave it.
type NamedSchedule struct {
	Name     string   // the id
	Source   string   // the file it is defined in, relative to the agent's folder
	Schedule Schedule // its definition
}

// NamedConnection is a connection and the name its path gave it.
type NamedConnection struct {
	Name       string     // as its tools are prefixed
	Source     string     // the file it is defined in, relative to the agent's folder
	Connection Connection // its definition
}

// Err returns all that is wrong with the definitions of the agent, one mistake a line, each with the file it is in; nil if nothing is.
func (p Project) Err() error {
	var errs []error
	add := func(what, name, source string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s (%s): %w", what, name, source, err))
		}
	}
	if err := p.Agent.Result.Err(); err != nil {
		errs = append(errs, fmt.Errorf("the Result of the agent: %w", err))
	}
	for _, t := range p.Tools {
		add("tool", t.Name, t.Source, t.Tool.Err())
	}
	for _, s := range p.Skills {
		add("skill", s.Name, s.Source, given("Description", s.Skill.Description))
		add("skill", s.Name, s.Source, given("Markdown", s.Skill.Markdown))
	}
	for _, s := range p.Subagents {
		add("subagent", s.Name, s.Source, given("Description", s.Agent.Description))
	}
	for _, h := range p.Hooks {
		add("hook", h.Name, h.Source, h.Hook.Err())
	}
	for _, s := range p.Schedules {
		add("schedule", s.Name, s.Source, s.Schedule.Err())
	}
	for _, c := range slices.Concat(p.Connections, p.HostConnections) {
		add("connection", c.Name, c.Source, c.Connection.Err())
	}
	if err := p.ArtifactKinds.Err(); err != nil {
		errs = append(errs, fmt.Errorf("the kinds of artifacts: %w", err))
	}
	return errors.Join(errs...)
}

// given returns an error for a text that the model decides by and that is empty.
func given(field, text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("its %s is empty, and the model decides by it", field)
	}
	return nil
}
