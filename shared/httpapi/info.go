package httpapi

import (
	"cmp"
	"encoding/json"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Info is what was discovered of an agent, as GET /v1/info and bdk info show it.
type Info struct {
	Slug         string           `json:"slug"`
	Name         string           `json:"name"`
	Description  string           `json:"description,omitempty"`
	Model        string           `json:"model"`     // provider:name; "" if none is configured
	Fallbacks    []string         `json:"fallbacks"` // asked when the model cannot answer
	Instructions instructionsInfo `json:"instructions"`
	Tools        []toolInfo       `json:"tools"` // in name order
	Skills       []struct{}       `json:"skills"`
	Connections  []struct{}       `json:"connections"`
	Subagents    []struct{}       `json:"subagents"`
	Channels     []struct{}       `json:"channels"`
	Schedules    []struct{}       `json:"schedules"`
	Hooks        []struct{}       `json:"hooks"`
	Diagnostics  json.RawMessage  `json:"diagnostics"` // a JSON array
}

// Describe returns the Info of an agent with the given model and fallbacks. Diagnostics may be empty.
func Describe(p bdk.Project, models []string, diagnostics json.RawMessage) Info {
	info := Info{
		Slug: p.Slug, Name: cmp.Or(p.Agent.Name, p.Slug), Description: p.Agent.Description, Fallbacks: []string{},
		Instructions: instructions(p), Tools: tools(p.Tools), Diagnostics: diagnostics,
		Skills: []struct{}{}, Connections: []struct{}{}, Subagents: []struct{}{}, Channels: []struct{}{}, Schedules: []struct{}{}, Hooks: []struct{}{},
	}
	if len(models) > 0 {
		info.Model, info.Fallbacks = models[0], append(info.Fallbacks, models[1:]...)
	}
	if len(diagnostics) == 0 {
		info.Diagnostics = json.RawMessage("[]")
	}
	return info
}

// toolInfo is a tool as Info shows it.
type toolInfo struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	Effect       string          `json:"effect,omitempty"` // read or write; absent if it depends on the input
	Source       string          `json:"source,omitempty"`
	Error        string          `json:"error,omitempty"` // what is wrong with the definition: the agent cannot start
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

func tools(named []bdk.NamedTool) []toolInfo {
	infos := make([]toolInfo, 0, len(named))
	for _, n := range named {
		s := n.Tool.Spec()
		kind, _ := s.Effect.(bdk.EffectKind)
		info := toolInfo{
			Name: n.Name, Title: s.Title, Description: s.Description, Effect: string(kind), Source: n.Source,
			InputSchema: readable(n.Tool.InputSchema()), OutputSchema: readable(s.OutputSchema),
		}
		if err := n.Tool.Err(); err != nil {
			info.Error = err.Error()
		}
		infos = append(infos, info)
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
