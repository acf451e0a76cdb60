package bdk_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type promoteInput struct {
	Service     string `json:"service"`
	Environment string `json:"environment"`
}

type promoted struct {
	Promoted bool   `json:"promoted"`
	Service  string `json:"service"`
}

func promote(_ context.Context, _ *bdk.Call, in promoteInput) (promoted, error) {
	return promoted{true, in.Service}, nil
}

// A call to production waits until the owner of the session or somebody of the operators approves it.
func ExampleApproveWhen() {
	tool := bdk.DefineTool(bdk.ToolSpec{
		Description:   "Promote a verified build to an environment.",
		NeedsApproval: bdk.ApproveWhen(func(in promoteInput) bool { return in.Environment == "production" }),
		Approvers:     []string{bdk.SessionOwner, "bearer:ops"},
	}, promote)
	fmt.Println(tool.NeedsApproval(json.RawMessage(`{"service":"cart","environment":"staging"}`)))
	fmt.Println(tool.NeedsApproval(json.RawMessage(`{"service":"cart","environment":"production"}`)))
	// Output:
	// false
	// true
}

// A dry-run session is answered in the shape of the real result.
func ExampleDryRunOf() {
	tool := bdk.DefineTool(bdk.ToolSpec{
		Description:  "Promote a verified build to an environment.",
		DryRunResult: bdk.DryRunOf(func(in promoteInput) promoted { return promoted{false, in.Service} }),
	}, promote)
	answer, err := tool.DryRunAnswer(json.RawMessage(`{"service":"cart","environment":"staging"}`))
	fmt.Printf("%+v %v\n", answer, err)
	// Output: {Promoted:false Service:cart} <nil>
}

type telemetryInput struct {
	Since string `json:"since" jsonschema:"an absolute time with a zone"`
	Until string `json:"until" jsonschema:"an absolute time with a zone"`
}

// In a session that is frozen at an instant, a call of this tool never sees what came later.
func ExampleToolSpec_timeArgs() {
	tool := bdk.DefineTool(bdk.ToolSpec{
		Description: "Query telemetry between two instants.",
		Effect:      bdk.Read,
		TimeArgs:    []string{"since", "until"},
	}, func(_ context.Context, _ *bdk.Call, in telemetryInput) (string, error) {
		return "from " + in.Since + " to " + in.Until, nil
	})
	fmt.Println(tool.Spec().TimeArgs, tool.Err())
	// Output: [since until] <nil>
}

type echoInput struct {
	Message string `json:"message"`
}

// A script runs beside the session's files.
func ExampleDefineScript() {
	tool := bdk.DefineScript[echoInput](bdk.ToolSpec{
		Description: "Echo a message from the workspace.",
		Effect:      bdk.Read,
	}, bdk.Prompt(`
		#!/usr/bin/env bash
		set -euo pipefail
		python3 -c 'import json, sys; print(json.load(sys.stdin)["message"])'
	`))
	fmt.Println(tool.Err(), tool.CheckInput(json.RawMessage(`{}`)))
	// Output: <nil> message: required, but missing
}

// A result may have several parts, and a value for programs beside them.
func ExampleOutput() {
	png := []byte("\x89PNG…")
	raw, err := json.Marshal(bdk.Output{
		Content:    []bdk.Content{{Text: "requests per minute"}, {Data: png, MIMEType: "image/png"}},
		Structured: map[string]int{"max": 120},
	})
	fmt.Println(string(raw), err)
	// Output: {"content":[{"type":"text","text":"requests per minute"},{"type":"image","data":"iVBOR+KApg==","mimeType":"image/png"}],"structuredContent":{"max":120}} <nil>
}

// A skill that is generated, in bot/skills/research.go. Most skills are bot/skills/research.md or a folder instead.
func ExampleSkill() {
	skill := bdk.Skill{
		Description: "Use when a topic is unfamiliar.",
		Markdown:    "Gather evidence first. Then follow references/checklist.md.",
		Files:       map[string]string{"references/checklist.md": "- two sources for each claim"},
	}
	fmt.Println(skill.Description, len(skill.Files))
	// Output: Use when a topic is unfamiliar. 1
}

type review struct {
	Approve bool   `json:"approve"`
	Reason  string `json:"reason"`
}

// The last text of each turn is JSON that fits the type. What does not fit is told to the model, once.
func ExampleResultOf() {
	agent := bdk.Agent{Model: "scripted:model.yaml", Result: bdk.ResultOf[review]()}
	fmt.Println(agent.Result.Check(`{"approve":true,"reason":"all checks are green"}`))
	fmt.Println(agent.Result.Check(`Approved.`))
	fmt.Println(agent.Result.Check(`{"approve":"yes","reason":"all checks are green"}`))
	// Output:
	// <nil>
	// the text is not valid JSON: byte 1: invalid character 'A' looking for beginning of value
	// approve: must be a boolean, but is a string
}
