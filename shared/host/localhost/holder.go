package localhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// holders tells which processes on a state root live. Each holds a lock on a file of its own, which the operating system
// frees however the process ends, so that the turns of a killed process can be taken over at once.
type holders struct {
	dir  string
	self string
	lock *flock.Flock
}

// join enters this process under the given name.
func join(stateRoot, self string) (*holders, error) {
	h := &holders{dir: filepath.Join(stateRoot, "hosts"), self: self}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of hosts: %w", err)
	}
	h.lock = flock.New(h.path(self))
	ok, err := h.lock.TryLock()
	if err == nil && !ok {
		err = errors.New("it is taken")
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", h.path(self), err)
	}
	return h, nil
}

func (h *holders) path(name string) string { return filepath.Join(h.dir, name+".lock") }

// alive reports whether the process of the given name lives. The file of a dead one is removed.
func (h *holders) alive(name string) bool {
	if name == h.self {
		return true
	}
	if _, err := os.Stat(h.path(name)); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	lock := flock.New(h.path(name))
	free, err := lock.TryLock()
	if err != nil {
		return true // cannot tell: its lease decides
	}
	if free {
		_ = os.Remove(h.path(name))
		_ = lock.Unlock()
	}
	return !free
}

// others returns how many other processes live.
func (h *holders) others() (n int) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".lock"); ok && name != h.self && h.alive(name) {
			n++
		}
	}
	return n
}

// leave frees the lock.
func (h *holders) leave() error {
	_ = os.Remove(h.path(h.self))
	return h.lock.Unlock()
}
