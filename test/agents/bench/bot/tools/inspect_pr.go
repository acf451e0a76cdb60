package tools

import "github.com/bdk-lambda/bdk/bdkpack/templates/pr-approver/bot/tools"

// InspectPR is the tool of the template.
var InspectPR = tools.InspectPR
