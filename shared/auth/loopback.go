package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Loopback returns the policy that admits, as [Local], who sends a request from this machine to this machine.
//
// The peer's address alone does not show that: a proxy or a tunnel on the machine passes on requests of strangers, and a
// browser on it sends what foreign pages tell it to. So a request is not admitted if it has a header that proxies add, if its
// Host is no loopback name (a foreign name that resolves to this machine), or if a browser sends it for a page of another origin
// that it is unsafe to serve: one that may change something, or that wants to read the answer, which a host may let pages do.
func Loopback() Policy {
	browsers := http.NewCrossOriginProtection()
	return func(r *http.Request) (Principal, bool) {
		if loopbackPeer(r.RemoteAddr) && loopbackHost(r.Host) && !forwarded(r.Header) && !foreign(browsers, r) {
			return Local, true
		}
		return "", false
	}
}

// foreign reports whether a request is of a page of another origin. A link is none; what a page reads by itself has an Origin.
func foreign(browsers *http.CrossOriginProtection, r *http.Request) bool {
	if r.Header.Get("Origin") == "" {
		return browsers.Check(r) != nil
	}
	unsafe := *r
	unsafe.Method = http.MethodPost // reading is checked as writing is
	return browsers.Check(&unsafe) != nil
}

func loopbackPeer(addr string) bool {
	peer, err := netip.ParseAddrPort(addr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// loopbackHost reports whether a Host header names this machine by a loopback address or by a name below localhost.
func loopbackHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if !digits(port) {
			return false
		}
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Zone() == "" && addr.Unmap().IsLoopback()
	}
	name = strings.ToLower(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// forwarded reports whether a header says that the request came through a proxy.
func forwarded(h http.Header) bool {
	for name := range h {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Proxyuser-Ip", "X-Envoy-External-Address",
			"Client-Ip", "True-Client-Ip", "Proxy-Client-Ip", "Wl-Proxy-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip",
			"Cdn-Loop", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Ray", "Cf-Visitor", "X-Azure-Clientip", "X-Azure-Socketip",
			"X-Appengine-User-Ip", "X-Amzn-Trace-Id":
			return true
		}
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Original-") {
			return true
		}
	}
	return false
}
