package dynamosession

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// written names the call that wrote a row last, for the call to know its own write again.
const written = "w"

// row is the JSON of a row's attribute of that name. Its id and version are attributes of their own. Times are in milliseconds.
type row struct {
	Agent   string       `json:"agent"`
	Owner   string       `json:"owner"`
	Channel string       `json:"channel,omitempty"`
	Mode    session.Mode `json:"mode,omitempty"`
	Purpose string       `json:"purpose,omitempty"`
	Title   string       `json:"title,omitempty"`
	DryRun  bool         `json:"dryRun,omitempty"`
	AsOf    *int64       `json:"asOf,omitempty"`
	Files   string       `json:"files,omitempty"`
	Created *int64       `json:"created,omitempty"`
	Updated *int64       `json:"updated,omitempty"`
	Expires *int64       `json:"expires,omitempty"`
	Token   string       `json:"token,omitempty"`
	Turn    string       `json:"turn,omitempty"`
	Holder  string       `json:"holder,omitempty"`
	Until   *int64       `json:"until,omitempty"`
	Next    int64        `json:"next,omitempty"`
	Ended   string       `json:"ended,omitempty"`

	Parked    bool               `json:"parked,omitempty"`
	Approvals []session.Approval `json:"approvals,omitempty"`
}

// rowUpdate returns the write of r on condition that the stored version is its own. By is who writes.
func (d *Driver) rowUpdate(r session.Record, by string) (*types.Update, error) {
	text, err := json.Marshal(row{
		r.Agent, r.Owner, r.Channel, r.Mode, r.Purpose, r.Title, r.DryRun, millis(r.AsOf), r.Files, millis(r.CreatedAt),
		millis(r.UpdatedAt), millis(r.ExpiresAt), r.TokenHash, r.Turn.ID, r.Turn.Holder, millis(r.Turn.Until), r.Next, r.Ended,
		r.Turn.Parked, r.Turn.Approvals,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the row of session %s: %w", r.ID, err)
	}
	owner, agent := places(r)
	u := &types.Update{
		TableName: &d.tables.Sessions, Key: rowKey(r.ID), ConditionExpression: aws.String(free),
		ExpressionAttributeNames: map[string]string{
			"#v": tables.SessionVersion, "#row": tables.SessionRow, "#w": written, "#exp": tables.Expires,
			"#ow": tables.OwnerShard, "#op": tables.OwnerPlace, "#ag": tables.AgentShard, "#ap": tables.AgentPlace,
		},
		ExpressionAttributeValues: dynamox.Item{
			":next": dynamox.N(r.Version + 1), ":row": dynamox.S(string(text)), ":w": dynamox.S(by),
			":ow": dynamox.S(owner.shard), ":op": dynamox.S(owner.place), ":ag": dynamox.S(agent.shard), ":ap": dynamox.S(agent.place),
		},
	}
	if r.Version > 0 {
		u.ConditionExpression = aws.String("#v = :v")
		u.ExpressionAttributeValues[":v"] = dynamox.N(r.Version)
	}
	set := "SET #v = :next, #row = :row, #w = :w, #ow = :ow, #op = :op, #ag = :ag, #ap = :ap"
	if r.ExpiresAt.IsZero() {
		set += " REMOVE #exp"
	} else {
		set += ", #exp = :exp"
		u.ExpressionAttributeValues[":exp"] = dynamox.N(dynamox.Seconds(r.ExpiresAt))
	}
	u.UpdateExpression = &set
	return u, nil
}

func rowKey(id string) dynamox.Item { return dynamox.Item{tables.SessionID: dynamox.S(id)} }

// record reads a stored row.
func record(item dynamox.Item) (session.Record, error) {
	var r row
	id := dynamox.Str(item, tables.SessionID)
	if err := json.Unmarshal([]byte(dynamox.Str(item, tables.SessionRow)), &r); err != nil {
		return session.Record{}, fmt.Errorf("reading the row of session %s: %w", id, err)
	}
	return session.Record{
		ID: id, Version: dynamox.Int(item, tables.SessionVersion),
		Agent: r.Agent, Owner: r.Owner, Channel: r.Channel, Mode: r.Mode, Purpose: r.Purpose, Title: r.Title, DryRun: r.DryRun,
		AsOf: instant(r.AsOf), Files: r.Files, CreatedAt: instant(r.Created), UpdatedAt: instant(r.Updated), ExpiresAt: instant(r.Expires),
		TokenHash: r.Token, Next: r.Next, Ended: r.Ended,
		Turn: session.Turn{ID: r.Turn, Holder: r.Holder, Until: instant(r.Until), Parked: r.Parked, Approvals: r.Approvals},
	}, nil
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func instant(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return dynamox.Time(*ms)
}

// project returns what a request for attributes says, nothing if there are none.
func project(attributes []string) (names map[string]string, projection *string) {
	if len(attributes) == 0 {
		return nil, nil
	}
	names = make(map[string]string)
	list := make([]string, len(attributes))
	for i, a := range attributes {
		list[i] = fmt.Sprint("#", i)
		names[list[i]] = a
	}
	return names, aws.String(strings.Join(list, ","))
}

// get returns attributes of the item of a session, nil if there is none.
func (d *Driver) get(ctx context.Context, id string, attributes ...string) (dynamox.Item, error) {
	names, projection := project(attributes)
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.tables.Sessions, Key: rowKey(id), ConsistentRead: aws.Bool(true),
		ProjectionExpression: projection, ExpressionAttributeNames: names,
	})
	if err != nil {
		return nil, dynamox.Fault(ctx, err)
	}
	return out.Item, nil
}

// Get implements [session.Driver].
func (d *Driver) Get(ctx context.Context, id string) (session.Record, error) {
	item, err := d.get(ctx, id, tables.SessionID, tables.SessionVersion, tables.SessionRow)
	switch {
	case err != nil:
		return session.Record{}, err
	case item == nil:
		return session.Record{}, session.ErrNotFound
	}
	return record(item)
}
