package httpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/harness"
)

// Info is what was discovered of an agent, as GET /v1/info and bdk info show it.
type Info struct {
	Slug          string           `json:"slug"`
	Name          string           `json:"name"`
	Description   string           `json:"description,omitempty"`
	Model         string           `json:"model"`     // provider:name; "" if none is configured
	Fallbacks     []string         `json:"fallbacks"` // asked when the model cannot answer
	Instructions  instructionsInfo `json:"instructions"`
	Tools         []toolInfo       `json:"tools"`            // in name order
	Harness       []string         `json:"harness"`          // the tools of the harness that the model is offered, in name order
	Result        json.RawMessage  `json:"result,omitempty"` // the schema of the last text of a turn; absent if it may be any
	Skills        []skillInfo      `json:"skills"`           // in name order
	ArtifactKinds []kindInfo       `json:"artifactKinds"`    // in name order; empty if there may be any
	Connections   []connectionInfo `json:"connections"`      // in name order; those for code only are not shown
	Subagents     []subagentInfo   `json:"subagents"`        // in name order
	Seed          string           `json:"seed,omitempty"`   // the folder with the first files of each session; absent if there is none
	Channels      []struct{}       `json:"channels"`
	Schedules     []scheduleInfo   `json:"schedules"`   // in name order
	Hooks         []hookInfo       `json:"hooks"`       // in name order
	Diagnostics   json.RawMessage  `json:"diagnostics"` // a JSON array
}

// Describe returns the Info of an agent with the given model and fallbacks, as it is now. Diagnostics may be empty.
func Describe(p bdk.Project, models []string, diagnostics json.RawMessage, now time.Time) Info {
	info := Info{
		Slug: p.Slug, Name: cmp.Or(p.Agent.Name, p.Slug), Description: p.Agent.Description, Fallbacks: []string{},
		Instructions: instructions(p), Tools: tools(p.Tools), Harness: harnessTools(p), Result: p.Agent.Result.JSON(), Diagnostics: diagnostics,
		Skills: skills(p.Skills), Subagents: subagents(p, models), Seed: p.Seed, Connections: connections(p.Connections), Channels: []struct{}{}, Schedules: schedules(p.Schedules, now), Hooks: hooks(p.Hooks), ArtifactKinds: kinds(p.ArtifactKinds),
	}
	if len(models) > 0 {
		info.Model, info.Fallbacks = models[0], append(info.Fallbacks, models[1:]...)
	}
	if len(diagnostics) == 0 {
		info.Diagnostics = json.RawMessage("[]")
	}
	return info
}

func harnessTools(p bdk.Project) []string {
	names := []string{}
	offered, _ := harness.Tools(harness.Options{Allow: p.Agent.Tools, Skills: p.Skills, Subagents: p.Subagents, Kinds: p.ArtifactKinds}) // a mistake is among the diagnostics
	for _, t := range offered {
		names = append(names, t.Name)
	}
	return names
}

// toolInfo is a tool as Info and GET /v1/tools/{name} show it.
type toolInfo struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	Execution    string          `json:"execution"`           // server: in the host; agent: a script beside the session's files
	Approval     string          `json:"approval"`            // never, always, or conditional: it depends on the input
	Approvers    []string        `json:"approvers,omitempty"` // who may decide; absent if nobody has to
	Effect       string          `json:"effect"`              // read, write, or conditional: it depends on the input
	TimeArgs     []string        `json:"timeArgs"`            // properties of the input that a frozen session bounds
	Source       string          `json:"source,omitempty"`
	Error        string          `json:"error,omitempty"` // what is wrong with the definition: the agent cannot start
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

const conditional = "conditional"

func tools(named []bdk.NamedTool) []toolInfo {
	infos := make([]toolInfo, 0, len(named))
	for _, n := range named {
		infos = append(infos, describeTool(n))
	}
	return infos
}

func describeTool(n bdk.NamedTool) toolInfo {
	s := n.Tool.Spec()
	info := toolInfo{
		Name: n.Name, Title: s.Title, Description: s.Description, Execution: "server", Approval: "never", Effect: conditional,
		TimeArgs: append([]string{}, s.TimeArgs...), Source: n.Source,
		InputSchema: readable(n.Tool.InputSchema()), OutputSchema: readable(s.OutputSchema),
	}
	if n.Tool.Script() != "" {
		info.Execution = "agent"
	}
	switch s.NeedsApproval.(type) {
	case nil:
	case bdk.ApprovalKind:
		info.Approval, info.Approvers = "always", s.Approvers
	default:
		info.Approval, info.Approvers = conditional, s.Approvers
	}
	if kind, ok := s.Effect.(bdk.EffectKind); ok {
		info.Effect = string(kind)
	}
	if err := n.Tool.Err(); err != nil {
		info.Error = err.Error()
	}
	return info
}

// skillInfo is a skill as Info shows it.
type skillInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"`
}

func skills(named []bdk.NamedSkill) []skillInfo {
	infos := make([]skillInfo, 0, len(named))
	for _, n := range named {
		infos = append(infos, skillInfo{n.Name, n.Skill.Description, n.Source})
	}
	return infos
}

// subagentInfo is a subagent as Info shows it.
type subagentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"` // absent if it is the agent's
	Source      string `json:"source"`
}

func subagents(p bdk.Project, models []string) []subagentInfo {
	infos := make([]subagentInfo, 0, len(p.Subagents))
	own := slices.Equal(models, append([]string{p.Agent.Model}, p.Agent.Fallbacks...)) // others are everybody's
	for _, s := range p.Subagents {
		info := subagentInfo{Name: s.Name, Description: s.Agent.Description, Source: s.Source}
		if own {
			info.Model = s.Agent.Model
		}
		infos = append(infos, info)
	}
	return infos
}

// hookInfo is a hook as Info shows it.
type hookInfo struct {
	Name   string          `json:"name"`
	Events []bdk.EventType `json:"events"` // that it is told, * for all
	Source string          `json:"source"`
	Error  string          `json:"error,omitempty"` // what is wrong with the definition: the agent cannot start
}

func hooks(all []bdk.NamedHook) []hookInfo {
	infos := make([]hookInfo, 0, len(all))
	for _, h := range all {
		info := hookInfo{Name: h.Name, Events: h.Hook.Events(), Source: h.Source}
		if err := h.Hook.Err(); err != nil {
			info.Error = err.Error()
		}
		infos = append(infos, info)
	}
	return infos
}

// scheduleInfo is a schedule as Info shows it.
type scheduleInfo struct {
	Name   string      `json:"name"`
	Source string      `json:"source"`
	Cron   string      `json:"cron"`            // in UTC
	Form   string      `json:"form"`            // prompt: starts a session; run: runs a function
	Next   []time.Time `json:"next"`            // the next three times that it is due
	Error  string      `json:"error,omitempty"` // what is wrong with the definition: the agent cannot start
}

func schedules(named []bdk.NamedSchedule, now time.Time) []scheduleInfo {
	const shown = 3
	infos := make([]scheduleInfo, 0, len(named))
	for _, n := range named {
		spec := n.Schedule.Spec()
		info := scheduleInfo{Name: n.Name, Source: n.Source, Cron: spec.Cron, Form: "prompt", Next: []time.Time{}}
		if spec.Run != nil {
			info.Form = "run"
		}
		if err := n.Schedule.Err(); err != nil {
			info.Error = err.Error()
		}
		for at := n.Schedule.Next(now); !at.IsZero() && len(info.Next) < shown; at = n.Schedule.Next(at) {
			info.Next = append(info.Next, at)
		}
		infos = append(infos, info)
	}
	return infos
}

// connectionInfo is a connection as Info shows it.
type connectionInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Transport   string   `json:"transport"`       // http, stdio, or agent: another agent
	Agent       string   `json:"agent,omitempty"` // the slug of the other agent
	Advertised  bool     `json:"advertised"`      // the model is offered its tools
	Approval    string   `json:"approval"`        // of calls that may change something: never, always, or conditional
	Variables   []string `json:"variables"`       // the names that stand in its definition
	Source      string   `json:"source"`
	Error       string   `json:"error,omitempty"` // what is wrong with the definition: the agent cannot start
}

func connections(named []bdk.NamedConnection) []connectionInfo {
	infos := make([]connectionInfo, 0, len(named))
	for _, n := range named {
		c := n.Connection.WithDefaults()
		info := connectionInfo{
			Name: n.Name, Description: c.Description, Transport: "http", Agent: c.Agent, Advertised: c.AdvertiseTools, Approval: "never",
			Variables: append([]string{}, c.Variables()...), Source: n.Source,
		}
		switch {
		case c.Command != "":
			info.Transport = "stdio"
		case c.Agent != "":
			info.Transport = "agent"
		}
		switch c.NeedsApproval.(type) {
		case nil:
		case bdk.ApprovalKind:
			info.Approval = "always"
		default:
			info.Approval = conditional
		}
		if err := n.Connection.Err(); err != nil {
			info.Error = err.Error()
		}
		infos = append(infos, info)
	}
	return infos
}

// kindInfo is a kind of artifacts as Info shows it.
type kindInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"` // of the data; absent if it may be any
}

func kinds(all bdk.ArtifactKinds) []kindInfo {
	infos := make([]kindInfo, 0, len(all.Kinds))
	for _, name := range slices.Sorted(maps.Keys(all.Kinds)) {
		infos = append(infos, kindInfo{name, all.Kinds[name].Description, all.Kinds[name].Data.JSON()})
	}
	return infos
}

// readable returns a schema, nil if an author wrote what is no JSON, which the tool's error tells.
func readable(schema json.RawMessage) json.RawMessage {
	if !json.Valid(schema) {
		return nil
	}
	return schema
}

// instructionsInfo says how long the instructions are, not what they say.
type instructionsInfo struct {
	Source string `json:"source"` // agent: the field of the agent's configuration; project: a file or folder of its own; none
	Bytes  int    `json:"bytes"`
}

func instructions(p bdk.Project) instructionsInfo {
	switch {
	case p.Agent.Instructions != "":
		return instructionsInfo{"agent", len(p.Agent.Instructions)}
	case p.Instructions != "":
		return instructionsInfo{"project", len(p.Instructions)}
	}
	return instructionsInfo{Source: "none"}
}
