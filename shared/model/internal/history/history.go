// Package history brings a conversation into a shape that strict providers take: user and assistant alternate, no text is
// blank, call ids and names have only the characters all providers allow, ids are unique, and arguments are JSON objects.
package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/shared/model"
)

// What stands for texts that providers refuse because they are blank.
const (
	NoMessage = "(empty message)"
	NoOutput  = "(no output)"
)

const noInput = `{"type":"object","properties":{}}`

// maxName is the longest call id or name, in bytes, that all providers take.
const maxName = 64

// A Turn is a run of messages of one side.
type Turn struct {
	Assistant bool
	Results   []model.Result    // what the user's side begins with
	Reasoning []model.Reasoning // the blocks that the given model signed
	Text      string            // never blank if there is nothing else; texts of several messages are joined by an empty line
	Calls     []model.Call
}

// Turns returns the conversation as alternating turns. Reasoning is kept if the model of that id signed it.
func Turns(messages []model.Message, modelID string) []Turn {
	var turns []Turn
	ids := idTable{used: map[string]int{}}
	for i := range messages {
		m := &messages[i]
		assistant := m.Role == model.Assistant
		if assistant && blank(m.Text) && len(m.Calls) == 0 {
			continue
		}
		if len(turns) == 0 || turns[len(turns)-1].Assistant != assistant {
			turns = append(turns, Turn{Assistant: assistant})
		}
		turns[len(turns)-1].add(m, modelID, &ids)
	}
	return turns
}

func (t *Turn) add(m *model.Message, modelID string, ids *idTable) {
	switch m.Role {
	case model.User:
		t.join(m.Text, NoMessage)
	case model.Results:
		for _, r := range m.Results {
			r.CallID = ids.of(r.CallID)
			r.Name = Name(r.Name)
			if blank(r.Output) {
				r.Output = NoOutput
			}
			t.Results = append(t.Results, r)
		}
	case model.Assistant:
		for _, r := range m.Reasoning {
			if r.Model == modelID && r.Signature != "" {
				t.Reasoning = append(t.Reasoning, r)
			}
		}
		t.join(m.Text, "")
		ids.begin()
		for _, c := range m.Calls {
			t.Calls = append(t.Calls, model.Call{ID: ids.add(c.ID), Name: Name(c.Name), Args: object(c.Args)})
		}
	}
}

func (t *Turn) join(text, instead string) {
	if blank(text) {
		text = instead
	}
	if t.Text != "" && text != "" {
		t.Text += "\n\n"
	}
	t.Text += text
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Tools returns the tools of the request, each with a schema.
func Tools(req *model.Request) []model.Tool {
	tools := slices.Clone(req.Tools)
	for i := range tools {
		if len(tools[i].InputSchema) == 0 {
			tools[i].InputSchema = json.RawMessage(noInput)
		}
	}
	return tools
}

// ToolsOrStub is [Tools] for providers that refuse a conversation with calls when no tool is declared: if the request has
// no tools it returns a stub of the first one that was called.
func ToolsOrStub(req *model.Request, turns []Turn) []model.Tool {
	for _, t := range turns {
		if len(req.Tools) == 0 && len(t.Calls) > 0 {
			return []model.Tool{{
				Name: t.Calls[0].Name, Description: "No longer available.", InputSchema: json.RawMessage(noInput),
			}}
		}
	}
	return Tools(req)
}

// object returns args if they are a JSON object, else an empty one.
func object(args json.RawMessage) json.RawMessage {
	trimmed := bytes.TrimSpace(args)
	if !bytes.HasPrefix(trimmed, []byte("{")) || !json.Valid(trimmed) {
		return json.RawMessage("{}")
	}
	return bytes.ToValidUTF8(trimmed, []byte("\ufffd"))
}

// Name returns name with an underscore for each character that is not a letter, digit, dash or underscore of ASCII, cut to 64 bytes.
func Name(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), maxName)]
}

// An idTable makes the ids of calls unique over the conversation and remembers those of the last assistant message.
type idTable struct {
	used map[string]int // how many calls had this id
	last map[string]string
}

func (t *idTable) begin() { t.last = map[string]string{} }

func (t *idTable) add(id string) string {
	unique := Name(id)
	for t.used[unique]++; t.used[unique] > 1; t.used[unique]++ {
		suffix := fmt.Sprintf("_%d", t.used[unique])
		next := unique[:min(len(unique), maxName-len(suffix))] + suffix
		if t.used[next] == 0 {
			t.used[next]++
			unique = next
			break
		}
	}
	t.last[id] = unique
	return unique
}

func (t *idTable) of(id string) string {
	if unique, ok := t.last[id]; ok {
		return unique
	}
	return Name(id)
}
