package tools

import (
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Hasty waits for its approval for two seconds only.
var Hasty = bdk.DefineTool(bdk.ToolSpec{Description: "Promote a build, soon.", NeedsApproval: bdk.Always, ApprovalTimeout: 2 * time.Second}, promote)
