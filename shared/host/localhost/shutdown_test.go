package localhost

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A process that hands the listening socket over answers every request it has accepted, read or not.
func TestShutdownDropsNoRequest(t *testing.T) {
	t.Parallel()
	first, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	stop, clients, answered := make(chan struct{}), sync.WaitGroup{}, atomic.Int64{}
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := get(t.Context(), address); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	for range 20 {
		var conns connections
		server := &http.Server{ReadHeaderTimeout: time.Second, ConnState: conns.track, Handler: handler}
		file, err := first.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		next, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		served := make(chan error, 1)
		go func(l net.Listener) {
			served <- server.Serve(l)
			close(served)
		}(first)
		for want := answered.Load() + 50; answered.Load() < want && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		if err := conns.shutdown(t.Context(), server, first, served); err != nil {
			t.Error(err)
		}
		first = next
	}
	last := &http.Server{ReadHeaderTimeout: time.Second, Handler: handler}
	go func() { _ = last.Serve(first) }()
	close(stop)
	clients.Wait()
	_ = last.Close()
}

// get makes a request over a connection of its own.
func get(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	if b, err := io.ReadAll(conn); err != nil || len(b) == 0 {
		return fmt.Errorf("an accepted request got %d bytes: %w", len(b), err)
	}
	return nil
}
