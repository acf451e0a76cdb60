package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// anyOrigin stands for all origins.
const anyOrigin = "*"

// What browsers are told beside the origin.
const (
	pagesSend    = "Authorization, Content-Type, Idempotency-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-Request-Id"
	pagesRead    = "Allow, Idempotency-Replayed, Retry-After, WWW-Authenticate, X-Request-Id"
	preflightAge = "7200" // seconds; no browser but one remembers for longer
)

// CheckOrigins says why the given ones cannot be [Options].Origins: each must be as browsers write it, scheme://host with
// the port if it is not the scheme's own, or the only one must be *.
func CheckOrigins(origins []string) error {
	for _, o := range origins {
		if o == anyOrigin && len(origins) > 1 {
			return errors.New("the origin * stands for all: give no other beside it")
		}
		if o == anyOrigin {
			continue
		}
		if err := checkOrigin(o); err != nil {
			return fmt.Errorf("the origin %.200q %w; write it as browsers do, such as https://app.example.com", o, err)
		}
	}
	return nil
}

func checkOrigin(text string) error {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return errors.New("does not begin with http:// or https://")
	}
	if strings.ContainsAny(rest, `/\?#@`) {
		return errors.New("has more than a host and its port")
	}
	u, err := url.Parse(text)
	if err != nil || !writtenHost(u.Host, u.Hostname()) {
		return errors.New("has no host in lower-case ASCII; other letters are written xn--…, and * for a part is not possible")
	}
	port, own := u.Port(), map[string]string{"http": "80", "https": "443"}[scheme]
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case strings.HasSuffix(rest, ":"), port != "" && (err != nil || strconv.FormatUint(n, 10) != port):
		return errors.New("has a port that is none")
	case port == own:
		return errors.New("has the port that goes without saying")
	}
	return nil
}

// writtenHost reports whether a host, with its port and without, is written as browsers write it.
func writtenHost(host, name string) bool {
	if strings.HasPrefix(host, "[") {
		addr, err := netip.ParseAddr(name)
		return err == nil && addr.Is6() && !addr.Is4In6() && addr.Zone() == "" && addr.String() == name
	}
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// share lets pages of the configured origins read the answer. It says nothing about who may call.
func (x *exchange) share() {
	if len(x.opts.Origins) == 0 {
		return
	}
	h, origin := x.w.Header(), x.r.Header.Get("Origin")
	h.Set("Vary", "Origin")
	switch {
	case origin == "":
		return
	case x.opts.Origins[0] == anyOrigin:
		origin = anyOrigin
	case !slices.Contains(x.opts.Origins, origin):
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", pagesRead)
}

// asksLeave reports whether a browser asks, for a page that may read the answer, what the page may send.
func (x *exchange) asksLeave() bool {
	return x.r.Method == http.MethodOptions && x.r.Header.Get("Access-Control-Request-Method") != "" &&
		x.w.Header().Get("Access-Control-Allow-Origin") != ""
}

// giveLeave answers that a page may send what the route takes.
func (x *exchange) giveLeave() {
	h := x.w.Header()
	h.Set("Access-Control-Allow-Methods", x.allow())
	h.Set("Access-Control-Allow-Headers", pagesSend)
	h.Set("Access-Control-Max-Age", preflightAge)
	x.extend()
	x.w.WriteHeader(http.StatusNoContent)
}
