package bdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// An agent's configuration, in bot/agent.go.
func ExampleAgent() {
	agent := bdk.Agent{
		Name:      "PR approver",
		Model:     "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
		Fallbacks: []string{"anthropic:claude-sonnet-4-5"},
	}
	fmt.Println(agent.Name, "may write", agent.WithDefaults().MaxOutputTokens, "tokens at once")
	// Output: PR approver may write 8192 tokens at once
}

// What is not limited has the documented default.
func ExampleLimits() {
	agent := bdk.Agent{
		Model:  "openai:gpt-5",
		Limits: bdk.Limits{StepsPerTurn: 10, TurnTime: 5 * time.Minute, USDPerSession: 2.50},
	}
	limits := agent.WithDefaults().Limits
	fmt.Println(limits.StepsPerTurn, limits.TurnTime, limits.ParallelTools)
	// Output: 10 5m0s 8
}

// Instructions that are generated, in bot/instructions.go. Most agents have bot/instructions.md instead.
func ExampleInstructions() {
	team := "payments" // for instance from the environment
	instructions := bdk.Instructions(bdk.Prompt(`
		You are the on-call assistant of the ` + team + ` team.
		Call read_alerts before you answer a question about them.`))
	fmt.Println(instructions)
	// Output:
	// You are the on-call assistant of the payments team.
	// Call read_alerts before you answer a question about them.
}

type weatherInput struct {
	City string `json:"city" jsonschema:"its English name"`
	Days int    `json:"days,omitempty" jsonschema:"how many days ahead, today by default"`
}

type weather struct {
	Sky         string  `json:"sky"`
	Temperature float64 `json:"temperature"`
}

// Weather is a tool with typed input, in bot/tools/weather.go.
var Weather = bdk.DefineTool(bdk.ToolSpec{
	Description: "Read the weather of a city.",
	Effect:      bdk.Read,
}, readWeather)

func readWeather(_ context.Context, _ *bdk.Call, in weatherInput) (weather, error) {
	if in.City == "Atlantis" {
		return weather{}, errors.New("no station there: ask for another city")
	}
	return weather{Sky: "clear", Temperature: 21.5 - float64(in.Days)}, nil
}

// The schema of the input is that of the Go type, and what does not match it never reaches the function.
func ExampleDefineTool() {
	fmt.Println(Weather.CheckInput(json.RawMessage(`{"City":"Lisbon","days":"two"}`)))
	// Output:
	// city: required, but missing
	// unknown property "City"; did you mean "city"?
	// days: must be an integer, but is a string
}

// With a schema of your own, take the input as the model sent it.
func ExampleDefineTool_rawSchema() {
	query := bdk.DefineTool(bdk.ToolSpec{
		Description: "Query the metrics.",
		Effect:      bdk.Read,
		InputSchema: json.RawMessage(`{
			"type": "object",
			"properties": {"series": {"type": "array", "items": {"type": "string"}}},
			"required": ["series"]
		}`),
	}, func(_ context.Context, _ *bdk.Call, in json.RawMessage) (string, error) {
		return "sent on: " + string(in), nil
	})
	fmt.Println(query.Run(context.Background(), &bdk.Call{}, json.RawMessage(`{"series":["cpu"]}`)))
	// Output: sent on: {"series":["cpu"]} <nil>
}

type deployInput struct {
	Service string `json:"service"`
	DryRun  bool   `json:"dryRun,omitempty"`
}

// A tool that writes only sometimes says when.
func ExampleEffectOf() {
	deploy := bdk.DefineTool(bdk.ToolSpec{
		Description: "Deploy a service, or say what would be deployed.",
		Effect: bdk.EffectOf(func(in deployInput) bdk.EffectKind {
			if in.DryRun {
				return bdk.Read
			}
			return bdk.Write
		}),
	}, func(_ context.Context, _ *bdk.Call, in deployInput) (string, error) {
		return in.Service + " deployed", nil
	})
	fmt.Println(deploy.EffectOf(json.RawMessage(`{"service":"cart","dryRun":true}`)))
	fmt.Println(deploy.EffectOf(json.RawMessage(`{"service":"cart"}`)))
	// Output:
	// read
	// write
}

// A unit test calls a tool's function directly, with typed input; the zero Call will do unless the function needs more.
func ExampleCall() {
	call := &bdk.Call{ID: "call_1", Session: bdk.SessionInfo{AsOf: time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)}}
	got, err := readWeather(context.Background(), call, weatherInput{City: "Lisbon", Days: 2})
	fmt.Println(got, err)
	fmt.Println(call.Now().Format(time.DateOnly))
	// Output:
	// {clear 19.5} <nil>
	// 2030-01-31
}

// Run calls a tool the way a host does, once the input was checked.
func ExampleTool_Run() {
	result, err := Weather.Run(context.Background(), nil, json.RawMessage(`{"city":"Atlantis"}`))
	fmt.Println(result, err)
	// Output: { 0} no station there: ask for another city
}

// Events are read from the stream of a session, one a line.
func ExampleDecodeEvent() {
	stream := json.NewDecoder(strings.NewReader(`
{"type":"message.received","index":1,"sessionId":"ses_1","at":"2030-01-31T12:00:00.000Z","data":{"text":"Review 42"}}
{"type":"turn.completed","index":9,"sessionId":"ses_1","turnId":"turn_1","at":"2030-01-31T12:00:02.500Z","data":{"result":"Ready."}}`))
	for stream.More() {
		var e bdk.Event
		if err := stream.Decode(&e); err != nil {
			fmt.Println(err)
			return
		}
		if e.Type != bdk.EventTurnCompleted {
			continue
		}
		done, err := bdk.DecodeEvent[bdk.TurnCompleted](e)
		fmt.Println(done.Result, err)
	}
	// Output: Ready. <nil>
}

// A hook counts what finished turns have used. It is a variable in a file of bot/hooks/.
func ExampleDefineHook() {
	var total int64
	usage := bdk.DefineHook(bdk.HookSpec{Timeout: 5 * time.Second},
		bdk.On(func(_ context.Context, h *bdk.HookContext, _ bdk.Event, data bdk.TurnCompleted) error {
			if h.Session.Purpose != "eval" && data.Usage != nil {
				total += data.Usage.InputTokens + data.Usage.OutputTokens
			}
			return nil
		}))

	completed := bdk.Event{Type: bdk.EventTurnCompleted, Data: json.RawMessage(`{"usage":{"inputTokens":10,"outputTokens":2}}`)}
	err := usage.Handle(context.Background(), nil, completed)
	fmt.Println(total, err)
	// Output: 12 <nil>
}

// The file bot/mcp-connections/linear.go. The model is offered the tools linear__list_issues and so on.
func ExampleConnection() {
	linear := bdk.Connection{
		Description:    "The issues of the team.",
		URL:            "https://mcp.linear.example/mcp",
		Headers:        map[string]string{"Authorization": "Bearer ${LINEAR_TOKEN}"},
		AdvertiseTools: true,
		Deny:           []string{"delete_*"},
		Reads:          []string{"list_*", "get_*"},
		NeedsApproval:  bdk.Always,
	}
	fmt.Println(linear.Err(), linear.Variables(), linear.Allows("delete_issue"))
	// Output: <nil> [LINEAR_TOKEN] false
}

// stock stands for the connection inventory.
type stock struct{ bdk.MCP }

func (stock) Call(_ context.Context, connection, tool string, args any) (bdk.Output, error) {
	return bdk.Output{Content: []bdk.Content{{Text: fmt.Sprint(connection, " ", tool, " ", args)}}}, nil
}

// An MCP calls tools of connections, and other agents, from code: from tools, hooks, schedules and channels.
func ExampleMCP() {
	type input struct {
		Part string `json:"part"`
	}
	count := bdk.DefineTool(bdk.ToolSpec{Description: "Tell how many are in stock.", Effect: bdk.Read},
		func(ctx context.Context, call *bdk.Call, in input) (bdk.Output, error) {
			return call.MCP.Call(ctx, "inventory", "count", map[string]any{"part": in.Part})
		})

	call := &bdk.Call{Services: bdk.Services{MCP: stock{}}}
	out, err := count.Run(context.Background(), call, json.RawMessage(`{"part":"bolt"}`))
	fmt.Println(out.(bdk.Output).Content[0].Text, err)
	// Output: inventory count map[part:bolt] <nil>
}

// The kinds of artifacts that an agent makes, in bot/artifacts.go.
func ExampleArtifactKinds() {
	type report struct {
		Week int `json:"week"`
	}
	artifacts := bdk.ArtifactKinds{
		Kinds: map[string]bdk.ArtifactKind{"report": {Description: "What happened in a week.", Data: bdk.ResultOf[report]()}},
		Tool:  true,
	}
	fmt.Println(artifacts.Err(), artifacts.Kinds["report"].Data.Check(`{"week":49}`))
	// Output: <nil> <nil>
}
