package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/bdk-lambda/bdk/shared/event"
	"github.com/bdk-lambda/bdk/shared/model"
)

// transcript is what the log of a session amounts to: the conversation as the model sees it, how far the current turn
// got, and which files there are. It is a pure fold over events, so it can be thrown away and built again at any time.
type transcript struct {
	thread // of the agent itself

	Next  int64    `json:"next"`            // index of the next event to fold
	Files string   `json:"files,omitempty"` // blob with the list of the session's files; "" for the first ones
	Spent spending `json:"spent"`           // of the whole session
	Turn  progress `json:"turn"`

	kept int64 // Next of the snapshot it was read from or last stored as
}

// progress is how far a turn got.
type progress struct {
	ID        string           `json:"id"`
	StartedAt time.Time        `json:"startedAt"`
	LastAt    time.Time        `json:"lastAt"`            // when it recorded something the last time
	Waited    time.Duration    `json:"waited,omitempty"`  // for approvals
	Tasks     map[string]*task `json:"tasks,omitempty"`   // delegations that run, by call id
	Refused   int              `json:"refused,omitempty"` // last texts that did not match the result schema
	Spent     spending         `json:"spent"`
	Ended     bool             `json:"ended"`
}

// task is a delegation to a subagent.
type task struct {
	thread

	Name string `json:"name"`
}

// errUnreadable says that a log is not one that engines write. No later try will read it.
var errUnreadable = errors.New("the session's log cannot be read")

// fold takes the next event of the log in.
func (t *transcript) fold(e event.Event) error {
	if e.Index != t.Next {
		return fmt.Errorf("%w: event %d stands where %d is next", errUnreadable, e.Index, t.Next)
	}
	t.Next++
	if e.Type == event.TypeMessageReceived {
		return with(e, func(d event.MessageReceived) { t.beginTurn(e.TurnID, d.Text) })
	}
	if e.Type == event.TypeActionResult {
		return with(e, func(d event.ActionResult) { t.result(e.TurnID, e.At, d) })
	}
	if e.TurnID == "" || e.TurnID != t.Turn.ID {
		return nil
	}
	err := t.foldTurn(e)
	t.Turn.LastAt = e.At
	return err
}

// foldTurn takes an event of the current turn in. Types it does not know do not matter to the conversation.
func (t *transcript) foldTurn(e event.Event) error {
	p := &t.Turn
	switch e.Type {
	case event.TypeTurnStarted:
		p.StartedAt = e.At
	case event.TypeReasoningAppended:
		return with(e, func(d event.ReasoningAppended) { t.of(d.ParentCallID).Begun = true })
	case event.TypeReasoningCompleted:
		return with(e, func(d event.ReasoningCompleted) {
			th := t.of(d.ParentCallID)
			th.Reasoning = append(th.Reasoning, model.Reasoning{Text: d.Text, Signature: d.Signature, Model: d.Model})
		})
	case event.TypeMessageAppended:
		return with(e, func(d event.MessageAppended) {
			th := t.of(d.ParentCallID)
			th.Begun, th.Partial = true, th.Partial+d.Text
		})
	case event.TypeMessageCompleted:
		return with(e, func(d event.MessageCompleted) {
			t.of(d.ParentCallID).finishStep(d)
			t.spend(d.Usage, d.UsageOf)
		})
	case event.TypeActionsRequested:
		return with(e, func(d event.ActionsRequested) { t.of(d.ParentCallID).request(d) })
	case event.TypeStepRestarted:
		return with(e, func(d event.StepRestarted) { t.of(d.ParentCallID).restart() })
	case event.TypeContextCompacted:
		return with(e, func(d event.ContextCompacted) {
			t.of(d.ParentCallID).replace(d)
			t.spend(d.Usage, d.UsageOf)
		})
	case event.TypeApprovalResolved:
		p.Waited += max(0, e.At.Sub(p.LastAt)) // a parked turn records nothing
		return with(e, t.cancel)
	case event.TypeSubagentCalled:
		return with(e, t.delegate)
	case event.TypeResultRejected:
		return with(e, func(d event.ResultRejected) {
			p.Refused++
			t.push(model.Message{Role: model.User, Text: d.Reason})
		})
	case event.TypeTurnCompleted, event.TypeTurnFailed:
		t.endTurn()
	default:
	}
	return nil
}

func with[T event.Data](e event.Event, take func(T)) error {
	d, err := event.Decode[T](e)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	take(d)
	return nil
}

// of returns the thread of a delegation, given by its call, or the agent's own for "". What belongs to a delegation that is over, or
// was never begun, goes to a thread that nobody reads.
func (t *transcript) of(parent string) *thread {
	if parent == "" {
		return &t.thread
	}
	if k := t.Turn.Tasks[parent]; k != nil {
		return &k.thread
	}
	return &thread{}
}

// cancel tells the model that a call was not executed, because its turn was stopped before anybody decided about it.
func (t *transcript) cancel(d event.ApprovalResolved) {
	if d.Decision != event.Cancelled {
		return
	}
	threads := []*thread{&t.thread}
	for _, k := range t.Turn.Tasks {
		threads = append(threads, &k.thread)
	}
	for _, th := range threads {
		for _, c := range th.open() {
			if c.CallID == d.CallID {
				const text = `"The turn was stopped before anybody approved this call: it was not executed."`
				th.answer(event.ActionResult{CallID: c.CallID, ToolName: c.ToolName, Output: []byte(text), IsError: true})
			}
		}
	}
}

func (t *transcript) beginTurn(id, text string) {
	t.begin(text)
	t.Turn = progress{ID: id}
}

func (t *transcript) delegate(d event.SubagentCalled) {
	if t.Turn.Tasks == nil {
		t.Turn.Tasks = make(map[string]*task)
	}
	k := &task{Name: d.Name, thread: thread{budget: t.budget}}
	k.push(model.Message{Role: model.User, Text: d.Prompt})
	t.Turn.Tasks[d.CallID] = k
}

// result takes the result of a call in, of the current turn or of a call without a model: either may have changed files.
func (t *transcript) result(turnID string, at time.Time, d event.ActionResult) {
	if d.Workspace != "" {
		t.Files = d.Workspace
	}
	if turnID == "" || turnID != t.Turn.ID {
		return
	}
	t.Turn.LastAt = at
	t.of(d.ParentCallID).answer(d)
	if d.ParentCallID == "" {
		delete(t.Turn.Tasks, d.CallID)
	}
}

func (t *transcript) endTurn() {
	t.end()
	t.Turn.Tasks, t.Turn.Ended = nil, true
}

func (t *transcript) spend(u *event.Usage, modelID string) {
	if u == nil {
		return
	}
	t.Spent.add(*u, modelID)
	t.Turn.Spent.add(*u, modelID)
}

// limit sets what the model reads of the tool output of one step, in bytes.
func (t *transcript) limit(budget int) {
	t.budget = budget
	for _, k := range t.Turn.Tasks {
		k.budget = budget
	}
}

// sizeOf returns how many bytes of a request a message makes up, near enough.
func sizeOf(m model.Message) int {
	const overhead = 16
	n := overhead + len(m.Text)
	for _, r := range m.Reasoning {
		n += overhead + len(r.Text) + len(r.Signature)
	}
	for _, c := range m.Calls {
		n += overhead + len(c.ID) + len(c.Name) + len(c.Args)
	}
	for _, r := range m.Results {
		n += overhead + len(r.CallID) + len(r.Output)
	}
	return n
}
