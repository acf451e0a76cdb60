package tools

import (
	"context"
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type promoteInput struct {
	Build string `json:"build"`
	MS    int    `json:"ms,omitempty"`
}

// Promote writes down that it ran, once a person has approved.
var Promote = bdk.DefineTool(bdk.ToolSpec{Description: "Promote a build.", NeedsApproval: bdk.Always}, promote)

func promote(ctx context.Context, call *bdk.Call, in promoteInput) (string, error) {
	_, err := note(ctx, call, waitInput{MS: in.MS})
	return fmt.Sprintf("promoted %s for %s", in.Build, call.Session.Owner), err
}
