package tools

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Release is for bob to approve, whoever asked for it.
var Release = bdk.DefineTool(bdk.ToolSpec{
	Description: "Release a build.", NeedsApproval: bdk.ApproveWhen(func(in promoteInput) bool { return in.Build != "nightly" }),
	Approvers:    []string{"bearer:bob"},
	DryRunResult: bdk.DryRunOf(func(in promoteInput) string { return "would release " + in.Build }),
}, promote)
