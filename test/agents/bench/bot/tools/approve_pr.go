// Package tools has the tools of the agent that is measured.
package tools

import "github.com/bdk-lambda/bdk/bdkpack/templates/pr-approver/bot/tools"

// ApprovePR is the tool of the template.
var ApprovePR = tools.ApprovePR
