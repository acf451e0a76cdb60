package localhost

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// unread is what clients have, at shutdown, for sending the request of a connection that was accepted.
const unread = time.Second

// connections counts the open connections of a server. Its zero value has none.
type connections struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when open is 0; nil while nobody waits
}

// track is an [http.Server.ConnState].
func (c *connections) track(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open++
	case http.StateClosed, http.StateHijacked:
		c.open--
	default:
	}
	if c.open == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until there are none, or ctx ends.
func (c *connections) wait(ctx context.Context) {
	c.mu.Lock()
	none := make(chan struct{})
	if c.open == 0 {
		close(none)
	} else {
		c.none = none
	}
	c.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// shutdown stops a server, until ctx ends without dropping a request. [http.Server.Shutdown] by itself drops those that it
// has accepted and not read, and in a handover there always are some.
func (c *connections) shutdown(ctx context.Context, server *http.Server, listener net.Listener, served <-chan error) error {
	server.SetKeepAlivesEnabled(false)
	err := listener.Close()
	for range served { // once it is closed, what was accepted is counted
	}
	soon, stop := context.WithTimeout(ctx, unread)
	defer stop()
	c.wait(soon)
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return err
}
