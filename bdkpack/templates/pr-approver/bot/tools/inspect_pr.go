// Package tools holds the agent's tools, one in a file.
package tools

import (
	"context"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/templates/pr-approver/bot/lib/prs"
)

type inspectPRInput struct {
	PRURL string `json:"prUrl" jsonschema:"the address of the pull request, such as https://example.com/acme/checkout/pull/42"`
}

type inspection struct {
	prs.PR
	Complexity string   `json:"complexity"`         // trivial, ordinary or large
	Ready      bool     `json:"ready"`              // nothing keeps it from being approved
	Blockers   []string `json:"blockers,omitempty"` // what does
}

// InspectPR reads a pull request.
var InspectPR = bdk.DefineTool(bdk.ToolSpec{
	Description: bdk.Prompt(`
		Read a pull request: what it changes, its checks, how complex it is and whether it is ready to be approved.
		Use it before you say anything about a pull request.`),
	Effect: bdk.Read,
}, inspectPR)

func inspectPR(ctx context.Context, _ *bdk.Call, in inspectPRInput) (inspection, error) {
	pr, err := prs.Get(ctx, in.PRURL)
	if err != nil {
		return inspection{}, err
	}
	blockers := pr.Blockers()
	return inspection{PR: pr, Complexity: pr.Complexity(), Ready: len(blockers) == 0, Blockers: blockers}, nil
}
