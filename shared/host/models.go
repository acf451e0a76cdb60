// Package host puts agents together from ports. The packages below it choose the adapters of a place to run.
package host

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"

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
}

// Of returns the models of an agent whose folder is root: the one BDK_MODEL names, or else the agent's own, then its
// fallbacks. The file of a scripted model is relative to root, in BDK_MODEL to the working directory.
func (m Models) Of(ctx context.Context, agent bdk.Agent, root string) ([]engine.NamedModel, error) {
	ids := append([]string{agent.Model}, agent.Fallbacks...)
	if id := m.Getenv("BDK_MODEL"); id != "" {
		ids, root = []string{id}, ""
	}
	if ids[0] == "" {
		return nil, fmt.Errorf(`the agent has no model: set Model in bot/agent.go, or BDK_MODEL in the environment, to PROVIDER:NAME`)
	}
	named := make([]engine.NamedModel, len(ids))
	for i, id := range ids {
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
		return openai.New(m.Client, m.Getenv("OPENAI_API_KEY"), name, &openai.Options{BaseURL: m.Getenv("OPENAI_BASE_URL"), Clock: m.Clock}), nil
	case model.ProviderAnthropic:
		return anthropic.New(m.Client, m.Getenv("ANTHROPIC_API_KEY"), name, &anthropic.Options{BaseURL: m.Getenv("ANTHROPIC_BASE_URL"), Clock: m.Clock}), nil
	case model.ProviderBedrock:
		return bedrock.Open(ctx, m.Client, name, &bedrock.Options{Clock: m.Clock})
	default:
		return m.scripted(name, root)
	}
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
