// Package launch is the contract between the bdk command and the agent program it builds: the command says what to do
// in a [Config], passed in one environment variable; the program does it.
package launch

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Env is the environment variable that carries the Config as JSON. The program removes it from its environment after
// reading, because it may hold secrets.
const Env = "BDK_LAUNCH"

// Config says what an agent program does. Its zero value serves all agents on a free loopback port.
type Config struct {
	Command string `json:"command,omitempty"` // "serve" (default), "run", "call" or "info"

	Host      string            `json:"host,omitempty"`      // address to bind; default 127.0.0.1
	Port      int               `json:"port,omitempty"`      // 0: a free port
	Listener  bool              `json:"listener,omitempty"`  // serve on the listening socket that is file descriptor 3 instead; ready is told on descriptor 4
	StateRoot string            `json:"stateRoot,omitempty"` // directory of durable state; required but for info
	Roots     map[string]string `json:"roots,omitempty"`     // slug to the agent's folder
	Single    bool              `json:"single,omitempty"`    // routes at /v1 instead of /<slug>/v1; needs exactly one agent
	Dev       bool              `json:"dev,omitempty"`       // served by bdk dev or serve --dev

	BearerTokens   []string `json:"bearerTokens,omitempty"` // secret, or name:secret; replaces the loopback-only default
	AllowAnonymous bool     `json:"allowAnonymous,omitempty"`
	Origins        []string `json:"origins,omitempty"`      // whose pages may read answers in a browser, or * alone; they admit nobody
	NoPlayground   bool     `json:"noPlayground,omitempty"` // no index routes

	Agent   string `json:"agent,omitempty"`   // run, call: the slug, if there are several agents
	Message string `json:"message,omitempty"` // run: the user message
	Approve string `json:"approve,omitempty"` // run: what calls that need approval are answered with, a mode of narrate.Approver
	Tool    string `json:"tool,omitempty"`    // call: its name; the body of the request is read from standard input

	Diagnostics json.RawMessage `json:"diagnostics,omitempty"` // what discovery found, shown by info and GET /v1/info
	Banner      string          `json:"banner,omitempty"`      // printed once the program serves; {url} stands for its address
}

// Decode reads a Config. Unknown fields are refused: the command and the program are built from different versions then.
func Decode(s string) (Config, error) {
	var c Config
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("reading %s: %w", Env, err)
	}
	return c, nil
}
