package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/engine"
)

const (
	maxNote   = 4 << 10 // bytes
	maxCallID = 256     // bytes
)

// pending is a call that waits for approval.
type pending struct {
	CallID       string          `json:"callId"`
	ToolName     string          `json:"toolName"`
	Args         json.RawMessage `json:"args"`
	ParentCallID string          `json:"parentCallId,omitempty"` // of the delegation that made the call
	ExpiresAt    time.Time       `json:"expiresAt"`
}

// approvals shows the calls of a session that wait for approval. Who may see which of them is for the engine to say: those who may
// decide need not own the session.
func (x *exchange) approvals() error {
	if _, err := x.query(); err != nil {
		return err
	}
	if err := x.find(); err != nil {
		return err
	}
	waiting, err := x.agent.Approvals(x.r.Context(), x.row.ID, string(x.caller))
	if err != nil {
		return err
	}
	answer := struct {
		OK        bool      `json:"ok"`
		Approvals []pending `json:"approvals"` // in the order in which they were asked for
	}{OK: true, Approvals: make([]pending, 0, len(waiting))}
	for _, w := range waiting {
		answer.Approvals = append(answer.Approvals, pending{w.CallID, w.ToolName, w.Args, w.ParentCallID, w.ExpiresAt.UTC()})
	}
	x.json(http.StatusOK, answer)
	return nil
}

// decide approves or denies one call.
func (x *exchange) decide() error {
	if _, err := x.query(); err != nil {
		return err
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	if err := x.find(); err != nil {
		return err
	}
	d, err := decodeDecision(body)
	if err != nil {
		return err
	}
	d.SessionID, d.CallID, d.By = x.row.ID, x.r.PathValue("callId"), string(x.caller)
	if len(d.CallID) > maxCallID || strings.ContainsFunc(d.CallID, func(c rune) bool { return c < ' ' }) {
		return bdkerr.New(bdkerr.NotFound, "no call %.80q waits for approval", d.CallID)
	}
	ctx, cancel := x.durable()
	defer cancel()
	decided, err := x.agent.Decide(ctx, d)
	if err != nil {
		return err
	}
	x.json(http.StatusOK, struct {
		OK       bool   `json:"ok"`
		CallID   string `json:"callId"`
		Decision string `json:"decision"`
		By       string `json:"by"`
		Note     string `json:"note,omitempty"`
		Repeated bool   `json:"repeated"` // it had been decided so before
	}{true, decided.CallID, decided.Decision, decided.By, decided.Note, decided.Again})
	return nil
}

func decodeDecision(body []byte) (d engine.Decision, err error) {
	fields, err := decode(body, "decision", "note")
	if err != nil {
		return d, err
	}
	decision, err := fields.required("decision")
	if err != nil {
		return d, err
	}
	if decision != "approve" && decision != "deny" {
		return d, invalid("field \"decision\" must be \"approve\" or \"deny\", not %.80q", decision)
	}
	d.Approve = decision == "approve"
	if d.Note, err = fields.text("note"); err == nil && len(d.Note) > maxNote {
		err = tooLarge("field \"note\" has %d bytes: the limit is %d", len(d.Note), maxNote)
	}
	return d, err
}
