package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/mcphost"
)

// talk answers a message of the Model Context Protocol to the agent as somebody to talk to.
func (x *exchange) talk() error { return x.rpc(x.mcp.Chat) }

// serveTools answers a message of the Model Context Protocol to the agent as a set of tools.
func (x *exchange) serveTools() error { return x.rpc(x.mcp.Tools) }

func (x *exchange) rpc(answer func(mcphost.Request) mcphost.Answer) error {
	if _, err := x.query(); err != nil {
		return err
	}
	if err := x.samePlace(); err != nil {
		return err
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // there is nothing to read any more; not every host has deadlines
	gone := x.r.Context().Done()
	ctx, cancel := x.lasting()
	defer cancel()
	a := answer(mcphost.Request{HTTP: x.r.WithContext(ctx), Body: body, Gone: gone, ID: x.id})
	for name, values := range a.Header {
		if name != "Cache-Control" {
			x.w.Header()[name] = values
		}
	}
	x.extend()
	x.w.WriteHeader(a.Status)
	_, _ = x.w.Write(a.Body) // the reader is gone: nobody to tell
	return nil
}

// samePlace refuses what a page in a browser sends that is not the host's own, nor of an allowed origin; and, where callers need no
// credentials, what comes to this machine under a foreign name: a page's own name may have been made to lead here.
func (x *exchange) samePlace() error {
	if origin := x.r.Header.Get("Origin"); origin != "" && !x.welcome(origin) {
		return bdkerr.New(bdkerr.Forbidden, "pages of the origin %.200q may not call this agent: allow it with --allow-origin, or the setting origins of a deployment", origin)
	}
	local, ok := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || x.caller != auth.Everyone || !loopback(local.String()) || loopback(x.r.Host) {
		return nil
	}
	return bdkerr.New(bdkerr.Forbidden, "the host name %.200q does not belong to this machine: use localhost, or bearer tokens behind a proxy", x.r.Host)
}

// welcome reports whether pages of an origin may call.
func (x *exchange) welcome(origin string) bool {
	if slices.Contains(x.opts.Origins, origin) || slices.Contains(x.opts.Origins, anyOrigin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, x.r.Host)
}

// loopback reports whether an address, with or without its port, is one of this machine to itself.
func loopback(address string) bool {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		name = strings.Trim(address, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// rpcFault answers a message of the Model Context Protocol that was not admitted or cannot be read.
func (x *exchange) rpcFault(code bdkerr.Code, message string) {
	number := int64(codeOther)
	switch {
	case code == bdkerr.InvalidRequest || code == bdkerr.PayloadTooLarge:
		number = codeInvalid
	case code.Status() >= http.StatusInternalServerError:
		number = codeInternal
	}
	x.raw(code.Status(), mcphost.Fault(number, message))
}

// The numbers of faults in JSON-RPC.
const (
	codeInvalid  = -32600 // what was sent is no request
	codeInternal = -32603
	codeOther    = -32000 // the server's own
)
