package event

import (
	"encoding/json"
	"slices"
	"time"
)

// mended returns data without what JSON cannot express.
func mended(data Data) Data {
	switch d := data.(type) {
	case SessionStarted:
		if d.AsOf != nil {
			t := mendedTime(*d.AsOf)
			d.AsOf = &t
		}
		return d
	case ActionsRequested:
		d.Calls = slices.Clone(d.Calls)
		for i := range d.Calls {
			d.Calls[i].Args = mendedRaw(d.Calls[i].Args)
		}
		return d
	case ApprovalRequested:
		d.Args, d.ExpiresAt = mendedRaw(d.Args), mendedTime(d.ExpiresAt)
		return d
	case ActionResult:
		d.Output = mendedRaw(d.Output)
		return d
	case SubagentCompleted:
		d.Output = mendedRaw(d.Output)
		return d
	case TurnCompleted:
		d.Cost = nil
		return d
	default:
		return data
	}
}

// mendedRaw returns raw if it is JSON, and the JSON string of its text if it is not.
func mendedRaw(raw json.RawMessage) json.RawMessage {
	switch {
	case json.Valid(raw):
		return raw
	case len(raw) == 0:
		return nil
	}
	text, _ := json.Marshal(string(raw)) //nolint:errchkjson // a string always encodes
	return text
}

// mendedTime returns t in UTC, or the zero time if its year does not have four digits.
func mendedTime(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
