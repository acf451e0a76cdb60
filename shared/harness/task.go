package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type taskInput struct {
	Name   string `json:"name"`
	Prompt string `json:"prompt"`
}

func taskTool(subagents []bdk.Subagent) bdk.Tool {
	var b strings.Builder
	b.WriteString("Delegates a task to a subagent: a specialist that works on it alone, with the same tools and files, and answers with its result. " +
		"It knows nothing of this conversation but the prompt. Tasks that do not depend on each other can be delegated at the same time. The subagents are:")
	names := make([]string, 0, len(subagents))
	for _, s := range subagents {
		names = append(names, s.Name)
		fmt.Fprintf(&b, "\n- %s: %s", s.Name, oneLine(s.Agent.Description))
	}
	return bdk.DefineTool(bdk.ToolSpec{
		Description: b.String(),
		InputSchema: taskSchema(names),
		Effect:      bdk.Read, // what the subagent calls has effects of its own
	}, func(context.Context, *bdk.Call, taskInput) (string, error) {
		return "", errors.New("only a turn can delegate: nothing was done")
	})
}

// taskSchema returns the input schema of task, which has the names.
func taskSchema(names []string) json.RawMessage {
	type property struct {
		Type        string   `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum,omitempty"`
	}
	raw, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings always encode
		"type": "object",
		"properties": map[string]property{
			"name":   {Type: "string", Description: "the subagent", Enum: names},
			"prompt": {Type: "string", Description: "all that the subagent has to know: the task, what is known already, and what to answer"},
		},
		"required":             []string{"name", "prompt"},
		"additionalProperties": false,
	})
	return raw
}
