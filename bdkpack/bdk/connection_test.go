package bdk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestConnectionSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	auth := func(context.Context, bdk.SessionInfo) (map[string]string, error) { return nil, nil }
	for want, c := range map[string]bdk.Connection{
		"leads nowhere":              {},
		"more than one":              {URL: "https://example.com", Agent: "x"},
		"are for a Command":          {URL: "https://example.com", Args: []string{"x"}},
		"are for a URL":              {Command: "x", Auth: auth},
		"the URL \"example.com\" is": {URL: "example.com"},
		"a user and a password":      {URL: "https://me:secret@example.com"},
		"no name of a header":        {URL: "https://example.com", Headers: map[string]string{"a b": "c"}},
		"no pattern":                 {URL: "https://example.com", Allow: []string{"["}},
		"the Timeout is -1s":         {URL: "https://example.com", Timeout: -time.Second},
		"not closed":                 {Command: "x", Env: map[string]string{"A": "${B"}},
		"names no variable":          {Command: "x", Args: []string{"${1}"}},
		"no call would wait":         {Agent: "x", Approvers: []string{"bearer:ops"}},
	} {
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "me:secret") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for _, c := range []bdk.Connection{
		{URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${T}"}, Auth: auth, NeedsApproval: bdk.Always, Approvers: []string{bdk.Anybody}},
		{URL: "${BASE}/mcp"},
		{Command: "npx", Args: []string{"-y", "$1 costs ${PRICE}"}, Env: map[string]string{"A": ""}},
		{Agent: "x", Headers: map[string]string{"A": "b"}},
	} {
		if err := c.Err(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConnectionExpand(t *testing.T) {
	t.Parallel()
	c := bdk.Connection{
		Command: "x", Args: []string{"--key=${KEY}", "$KEY", "${KEY}${OTHER}"}, Env: map[string]string{"A": "${OTHER}", "B": "plain"},
	}
	if diff := cmp.Diff([]string{"KEY", "OTHER"}, c.Variables()); diff != "" {
		t.Errorf("variables: want -, got +:\n%s", diff)
	}
	values := map[string]string{"KEY": "k${OTHER}", "OTHER": "o"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	got, err := c.Expand(lookup)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--key=k${OTHER}", "$KEY", "k${OTHER}o"}, got.Args); diff != "" {
		t.Errorf("args: want -, got +:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "o", "B": "plain"}, got.Env); diff != "" {
		t.Errorf("env: want -, got +:\n%s", diff)
	}
	if c.Args[0] != "--key=${KEY}" {
		t.Error("the definition was changed")
	}
	delete(values, "OTHER")
	if _, err := c.Expand(lookup); err == nil || !strings.Contains(err.Error(), "the variable OTHER is not set") {
		t.Errorf("got %v", err)
	}
}

func TestConnectionFilters(t *testing.T) {
	t.Parallel()
	c := bdk.Connection{Allow: []string{"get_*", "ping"}, Deny: []string{"get_secret"}, Reads: []string{"get_*"}}
	for name, want := range map[string][2]bool{"get_one": {true, true}, "get_secret": {false, true}, "ping": {true, false}, "drop": {false, false}} {
		if got := [2]bool{c.Allows(name), c.Knows(name)}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if !(bdk.Connection{}).Allows("x") {
		t.Error("without Allow all are allowed")
	}
	peer := bdk.Connection{Agent: "x"}.WithDefaults()
	if !peer.AdvertiseTools || !peer.Allows("ask") || peer.Allows("call_tool") || !peer.Knows("check") || peer.Knows("ask") || peer.Timeout != time.Minute {
		t.Errorf("another agent: %+v", peer)
	}
}

func FuzzConnectionTemplates(f *testing.F) {
	for _, s := range []string{"", "a", "${A}", "$${A}${", "${}", "${A${B}}", "${a_1}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := bdk.Connection{Command: "x", Args: []string{text}}
		names := c.Variables()
		out, err := c.Expand(func(name string) (string, bool) { return "${" + name + "}", true })
		if (c.Err() == nil) != (err == nil) {
			t.Fatalf("Err says %v, Expand %v", c.Err(), err)
		}
		if err == nil && out.Args[0] != text { // each variable stands for itself
			t.Errorf("%q became %q (%v)", text, out.Args[0], names)
		}
	})
}
