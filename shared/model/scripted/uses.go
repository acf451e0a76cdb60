package scripted

import (
	"container/list"
	"sync"
)

// uses counts how often rules applied per session, for the most sessions used last.
type uses struct {
	most int

	mu       sync.Mutex
	sessions map[string]*list.Element // of *sessionUses
	recent   *list.List               // most recently used first
}

type sessionUses struct {
	id    string
	count map[int]int // by rule
}

func newUses(most int) *uses {
	return &uses{most: most, sessions: map[string]*list.Element{}, recent: list.New()}
}

// take counts one more use of rule in the session, unless there were already limit of them.
func (u *uses) take(session string, rule, limit int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	e, ok := u.sessions[session]
	if !ok {
		e = u.recent.PushFront(&sessionUses{id: session, count: map[int]int{}})
		u.sessions[session] = e
		u.forget()
	}
	u.recent.MoveToFront(e)
	s, ok := e.Value.(*sessionUses)
	if !ok || s.count[rule] >= limit {
		return false
	}
	s.count[rule]++
	return true
}

func (u *uses) forget() {
	if u.recent.Len() <= u.most {
		return
	}
	if s, ok := u.recent.Remove(u.recent.Back()).(*sessionUses); ok {
		delete(u.sessions, s.id)
	}
}
