package host_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/host"
	"github.com/bdk-lambda/bdk/shared/model"
)

func models(env map[string]string) host.Models {
	return host.Models{Client: http.DefaultClient, Clock: clock.System{}, Getenv: func(name string) string { return env[name] }}
}

func TestModels(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "model.yaml"), []byte("rules: [{text: hello}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		agent bdk.Agent
		env   string // BDK_MODEL
		want  []string
		more  map[string]string // other variables
		fault string            // part of the error
	}{
		{name: "the agent's model and its fallbacks", agent: bdk.Agent{Model: "scripted:model.yaml", Fallbacks: []string{"openai:x", "anthropic:y"}}, want: []string{"scripted:model.yaml", "openai:x", "anthropic:y"}},
		{name: "the environment's model alone", agent: bdk.Agent{Model: "nonsense", Fallbacks: []string{"nonsense"}}, env: "openai:org/x:free", want: []string{"openai:org/x:free"}},
		{name: "a script anywhere", env: "scripted:" + filepath.Join(root, "model.yaml"), want: []string{"scripted:" + filepath.Join(root, "model.yaml")}},
		{name: "no model", fault: "set Model in bot/agent.go, or BDK_MODEL"},
		{name: "only a fallback", agent: bdk.Agent{Fallbacks: []string{"openai:x"}}, fault: "set Model in bot/agent.go"},
		{name: "no provider", agent: bdk.Agent{Model: "gpt"}, fault: "opening model gpt: "},
		{name: "an unknown provider", agent: bdk.Agent{Model: "oracle:delphi"}, fault: "opening model oracle:delphi: "},
		{name: "a fallback that is wrong", agent: bdk.Agent{Model: "openai:x", Fallbacks: []string{"x"}}, fault: "opening model x: "},
		{name: "no key", env: "openai:x", more: map[string]string{"OPENAI_API_KEY": ""}, fault: "set OPENAI_API_KEY"},
		{name: "a key is for the provider's own endpoint only", env: "anthropic:x", want: []string{"anthropic:x"}},
		{name: "a base URL without a scheme", env: "openai:x", more: map[string]string{"OPENAI_BASE_URL": "127.0.0.1:80"}, fault: `OPENAI_BASE_URL is "127.0.0.1:80"`},
		{name: "a base URL that is none", env: "anthropic:x", more: map[string]string{"ANTHROPIC_BASE_URL": "nonsense"}, fault: `ANTHROPIC_BASE_URL is "nonsense"`},
		{name: "a script that is not there", agent: bdk.Agent{Model: "scripted:none.yaml"}, fault: filepath.Join(root, "none.yaml")},
		{name: "a script below the agent, named in the environment", env: "scripted:model.yaml", fault: "open model.yaml: no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"BDK_MODEL": tc.env, "OPENAI_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
			maps.Copy(env, tc.more)
			named, err := models(env).Of(t.Context(), tc.agent, root)
			if tc.fault != "" || err != nil {
				if err == nil || tc.fault == "" || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("got error %v; want %q in it", err, tc.fault)
				}
				return
			}
			var ids []string
			for _, m := range named {
				ids = append(ids, m.ID)
			}
			if diff := cmp.Diff(tc.want, ids); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestModelsAskWhereTheEnvironmentSays: each provider gets its base URL and key.
func TestModelsAskWhereTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"openai:x":    "http://models.example/v1/chat/completions Bearer key",
		"anthropic:x": "http://models.example/v1/messages key",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			var asked string
			m := models(map[string]string{
				"BDK_MODEL": id, "OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key",
				"OPENAI_BASE_URL": "http://models.example/v1", "ANTHROPIC_BASE_URL": "http://models.example",
			})
			m.Client = &http.Client{Transport: transport(func(r *http.Request) {
				asked = strings.TrimSpace(r.URL.String() + " " + r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"))
			})}
			named, err := m.Of(t.Context(), bdk.Agent{}, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range named[0].Model.Stream(t.Context(), &model.Request{Messages: []model.Message{{Role: model.User, Text: "hello"}}}) {
				if err == nil {
					t.Error("an answer from nowhere")
				}
			}
			if asked != want {
				t.Errorf("asked %s; want %s", asked, want)
			}
		})
	}
}

// transport shows each request and answers none.
type transport func(*http.Request)

func (see transport) RoundTrip(r *http.Request) (*http.Response, error) {
	see(r)
	return nil, http.ErrHandlerTimeout
}
