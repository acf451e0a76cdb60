package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/templates/pr-approver/bot/lib/prs"
)

type approvePRInput struct {
	PRURL  string `json:"prUrl" jsonschema:"the address of the pull request, as given to inspect_pr"`
	Reason string `json:"reason" jsonschema:"one sentence: why it may be merged"`
}

// approval is a line of approvals.jsonl.
type approval struct {
	CallID     string    `json:"callId"`
	PRURL      string    `json:"prUrl"`
	Reason     string    `json:"reason"`
	ApprovedBy string    `json:"approvedBy"` // who asked the agent
	At         time.Time `json:"at"`
}

// ApprovePR approves a pull request, once a person has said yes.
var ApprovePR = bdk.DefineTool(bdk.ToolSpec{
	Description:   "Approve a pull request that inspect_pr reported as ready. Drafts and failing checks are refused.",
	Effect:        bdk.Write,
	NeedsApproval: bdk.Always,
}, approvePR)

// approvePR looks at the pull request itself, whatever the model believes to know about it.
func approvePR(ctx context.Context, call *bdk.Call, in approvePRInput) (approval, error) {
	pr, err := prs.Get(ctx, in.PRURL)
	if err != nil {
		return approval{}, err
	}
	if blockers := pr.Blockers(); len(blockers) > 0 {
		return approval{}, fmt.Errorf("not approved: %s", strings.Join(blockers, "; "))
	}
	a := approval{CallID: call.ID, PRURL: pr.URL, Reason: in.Reason, ApprovedBy: call.Session.Owner, At: call.Now()}
	if err := record(ctx, call, a); err != nil {
		return approval{}, fmt.Errorf("recording the approval: %w", err)
	}
	return a, nil
}

// record appends the approval to approvals.jsonl, or to the agent's log where the host has no folder for it, as on AWS. Two
// records with one callId would be a call that ran twice.
func record(ctx context.Context, call *bdk.Call, a approval) error {
	if call.StateRoot == "" {
		call.Log().InfoContext(ctx, "approved", slog.Any("approval", a))
		return nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(call.StateRoot, "approvals.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
