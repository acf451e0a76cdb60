// Package host puts agents together from ports. The packages below it choose the adapters of a place to run.
package host

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/anthropic"
	"github.com/bdk-lambda/bdk/shared/model/bedrock"
	"github.com/bdk-lambda/bdk/shared/model/openai"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
)

// Models makes the models that agents name. Its fields are what the environment of the host provides.
type Models struct {
	Client *http.Client
	Clock  clock.Clock
	Getenv func(string) string // BDK_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
	Dir    string              // what the file of a scripted model in BDK_MODEL is relative to; "" for the working directory

	// NamesOnly leaves the models closed: for an engine that accepts messages and never runs a turn.
	NamesOnly bool

	Keys string // where keys are put, for people; "" for "the environment"
}

// Of returns the models of an agent whose folder is root: the one BDK_MODEL names, or else the agent's own, then its
// fallbacks. The file of a scripted model is relative to root, in BDK_MODEL to Dir.
func (m Models) Of(ctx context.Context, agent bdk.Agent, root string) ([]engine.NamedModel, error) {
	ids := append([]string{agent.Model}, agent.Fallbacks...)
	if id := m.Getenv("BDK_MODEL"); id != "" {
		ids, root = []string{id}, m.Dir
	}
	if ids[0] == "" {
		return nil, fmt.Errorf(`the agent has no model: set Model in bot/agent.go, or BDK_MODEL in the environment, to PROVIDER:NAME`)
	}
	named := make([]engine.NamedModel, len(ids))
	for i, id := range ids {
		if m.NamesOnly {
			named[i].ID = id
			continue
		}
		one, err := m.open(ctx, id, root)
		if err != nil {
			return nil, fmt.Errorf("opening model %s: %w", id, err)
		}
		named[i] = engine.NamedModel{ID: id, Model: one}
	}
	return named, nil
}

func (m Models) open(ctx context.Context, id, root string) (model.Model, error) {
	provider, name, err := model.ParseID(id)
	if err != nil {
		return nil, err
	}
	switch provider {
	case model.ProviderOpenAI:
		key, base, err := m.endpoint("OPENAI_API_KEY", "OPENAI_BASE_URL")
		return openai.New(m.Client, key, name, &openai.Options{BaseURL: base, Clock: m.Clock}), err
	case model.ProviderAnthropic:
		key, base, err := m.endpoint("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
		return anthropic.New(m.Client, key, name, &anthropic.Options{BaseURL: base, Clock: m.Clock}), err
	case model.ProviderBedrock:
		return bedrock.Open(ctx, name, &bedrock.Options{Clock: m.Clock})
	default:
		return m.scripted(name, root)
	}
}

// endpoint returns the key and base URL in the given variables. A provider's own endpoint needs a key, another may not.
func (m Models) endpoint(keyEnv, baseEnv string) (key, base string, err error) {
	key, base = m.Getenv(keyEnv), m.Getenv(baseEnv)
	if base == "" && key == "" {
		return "", "", fmt.Errorf("set %s in %s, or %s for a server that needs no key", keyEnv, cmp.Or(m.Keys, "the environment"), baseEnv)
	}
	if u, err := url.Parse(base); base != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return "", "", fmt.Errorf("%s is %q: it must be a URL such as http://127.0.0.1:8080/v1", baseEnv, base)
	}
	return key, base, nil
}

func (m Models) scripted(path, root string) (model.Model, error) {
	if root != "" && !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	script, err := scripted.Load(path)
	if err != nil {
		return nil, err
	}
	return scripted.New(script, m.Clock), nil
}

// ModelClient returns the client that asks models: it waits long for an answer, since models think, but not for a connection.
func ModelClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 5 * time.Minute,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
	}}
}
