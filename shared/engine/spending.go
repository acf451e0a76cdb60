package engine

import (
	"context"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/price"
)

// spending adds up tokens and their price.
type spending struct {
	Usage    event.Usage `json:"usage"`
	USD      float64     `json:"usd"`
	Unpriced bool        `json:"unpriced"` // a part of it has no known price
	Model    string      `json:"model"`    // that was used last
}

func (s *spending) add(u event.Usage, modelID string) {
	s.Usage, s.Model = event.Usage(model.Usage(s.Usage).Add(model.Usage(u))), modelID
	usd, known := price.Cost(modelID, model.Usage(u))
	s.USD += usd
	s.Unpriced = s.Unpriced || !known
}

// cost returns what it cost, nil if that is not known.
func (s *spending) cost() *event.Cost {
	usd := s.total()
	if usd == nil {
		return nil
	}
	return &event.Cost{TotalUSD: *usd, Model: s.Model}
}

func (s *spending) total() *float64 {
	if s.Unpriced || s.Model == "" {
		return nil
	}
	usd := s.USD
	return &usd
}

// Cost is what a session used, turn by turn.
type Cost struct {
	Turns    []TurnCost
	Usage    event.Usage
	TotalUSD *float64 // nil if the price of a part is unknown
}

// TurnCost is what a turn used.
type TurnCost struct {
	TurnID   string
	Status   string // completed, failed, cancelled or running
	Usage    event.Usage
	TotalUSD *float64 // nil if the price of a part is unknown
	Model    string   // provider:name of the model that answered last; "" if none did
}

// Cost adds up what the turns of a session used. It reads the whole log.
func (e *Engine) Cost(ctx context.Context, id string) (Cost, error) {
	var c Cost
	var t transcript
	cursor := e.deps.Sessions.Cursor(id, 0)
	defer cursor.Close()
	for {
		events, err := cursor.Read(ctx)
		if err != nil {
			return Cost{}, err
		}
		if len(events) == 0 {
			c.Usage, c.TotalUSD = t.Spent.Usage, t.Spent.total()
			return c, nil
		}
		for _, ev := range events {
			if err := t.fold(ev); err != nil {
				return Cost{}, err
			}
			c.note(ev, &t)
		}
	}
}

// note takes down what an event, folded into t, says about a turn.
func (c *Cost) note(ev event.Event, t *transcript) {
	if ev.Type == event.TypeMessageReceived {
		c.Turns = append(c.Turns, TurnCost{TurnID: ev.TurnID, Status: "running"})
	}
	if len(c.Turns) == 0 || ev.TurnID != t.Turn.ID {
		return
	}
	last, spent := &c.Turns[len(c.Turns)-1], t.Turn.Spent
	last.Usage, last.Model, last.TotalUSD = spent.Usage, spent.Model, spent.total()
	switch ev.Type {
	case event.TypeTurnCompleted:
		last.Status = "completed"
	case event.TypeTurnFailed:
		last.Status = "failed"
		if d, err := event.Decode[event.TurnFailed](ev); err == nil && d.Status == event.StatusCancelled {
			last.Status = event.StatusCancelled
		}
	default:
	}
}
