package infra_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/infra"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/need"
)

// The tests of this package are not parallel: constructs live in one process that is asked one thing at a time.

// asProgram is the variable that makes this program be what cdk.json names.
const asProgram = "INFRA_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(infra.Main())
	}
	code := m.Run()
	jsii.Close()
	if err := os.RemoveAll(world.dir); err != nil {
		code = 1
	}
	os.Exit(code)
}

// world is what all tests look at: the stacks of three agents in one app, described once because that takes seconds.
var world struct {
	once sync.Once
	dir  string
	err  error
	nag  awscdk.Stack
}

// config returns the configuration of an agent.
func config(dir, slug string) infra.Config {
	return infra.Config{
		Manifest: deploy.Manifest{
			Version: deploy.Version, Slug: slug, Architecture: "arm64", Models: []string{"bedrock:us.anthropic.claude-x", "openai:y"},
			Archive: "bootstrap.zip", SHA256: emptySum(),
			Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(),
		},
		Archive: filepath.Join(dir, "bootstrap.zip"),
	}
}

// other is an agent for which everything is set that can be set.
func other(dir string) infra.Config {
	c := config(dir, full)
	c.Manifest.Architecture, c.Manifest.Model = "amd64", "scripted:model.yaml"
	c.Manifest.Subscribers = []deploy.Subscriber{{Name: "hook/audit/usage", Events: []string{"turn.completed", "turn.failed"}}, {Name: "hook/memory", Events: []string{"turn.completed"}}}
	c.Variables, c.Origins = map[string]string{"LEVEL": "debug"}, []string{"https://app.example.com"}
	c.Destroy, c.NoLogRole, c.MaxStreams, c.Email, c.ExecProvided = true, true, 5, "ops@example.com", true
	return c
}

// newApp returns an app with the settings of cdk.json.
func newApp(dir string) (awscdk.App, error) {
	data, err := os.ReadFile("../cdk.json")
	if err != nil {
		return nil, err
	}
	var settings struct{ Context map[string]any }
	if err := json.Unmarshal(data, &settings); err != nil {
		return nil, err
	}
	return awscdk.NewApp(&awscdk.AppProps{Outdir: &dir, Context: &settings.Context, AnalyticsReporting: jsii.Bool(false)}), nil
}

// synth describes stacks below dir, after what prepare does with the last one.
func synth(dir string, prepare func(awscdk.Stack), configs ...infra.Config) (last awscdk.Stack, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = infra.Fault(p)
		}
	}()
	app, err := newApp(dir)
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		if last, err = infra.NewStack(app, c); err != nil {
			return nil, err
		}
	}
	prepare(last)
	app.Synth(nil)
	return last, nil
}

// describe makes the world, unless it is made.
func describe(t *testing.T) {
	t.Helper()
	need.Tool(t, "node")
	world.once.Do(func() { world.err = makeWorld() })
	if world.err != nil {
		t.Fatal(world.err)
	}
}

func makeWorld() (err error) {
	if world.dir, err = os.MkdirTemp("", "infra"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(world.dir, "bootstrap.zip"), emptyZip(), 0o600); err != nil {
		return err
	}
	several := config(world.dir, nagged)
	several.Manifest.Subscribers = []deploy.Subscriber{{Name: "hook/all", Events: []string{"*"}}}
	several.Origins = []string{"https://app.example.com", "http://localhost:5173"}
	for schedule, expression := range map[string]string{"both-days": "0 0 13 * 5", "daily": "30 9 * * MON-FRI"} {
		c, err := deploy.NewCron(schedule, expression)
		if err != nil {
			return err
		}
		several.Manifest.Crons = append(several.Manifest.Crons, c)
	}
	slices.SortFunc(several.Manifest.Crons, func(a, b deploy.Cron) int { return strings.Compare(a.Schedule, b.Schedule) })
	all := []infra.Config{config(world.dir, agent), other(world.dir), several}
	world.nag, err = synth(filepath.Join(world.dir, "out"), nag, all...)
	return err
}

func emptyZip() []byte { return []byte("PK\x05\x06" + strings.Repeat("\x00", 18)) }

// emptySum returns the hash of [emptyZip].
func emptySum() string {
	sum := sha256.Sum256(emptyZip())
	return hex.EncodeToString(sum[:])
}

// template is what CloudFormation is given.
type template struct {
	file      string
	Resources map[string]entry
	Outputs   map[string]struct{ Value any }
}

// entry is one resource.
type entry struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	Metadata            map[string]any
}

// load returns the stack of the agent with the given slug.
func load(t *testing.T, slug string) template {
	t.Helper()
	describe(t)
	tmpl := template{file: filepath.Join(world.dir, "out", deploy.StackName(slug)+".template.json")}
	data, err := os.ReadFile(tmpl.file)
	if err == nil {
		err = json.Unmarshal(data, &tmpl)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// of returns the resources of a type by their names without the hash at their end.
func (tmpl template) of(kind string) map[string]entry {
	found := map[string]entry{}
	for id, e := range tmpl.Resources {
		if e.Type == kind {
			found[withoutHash(id)] = e
		}
	}
	return found
}

// at returns the part of a resource at a path, made readable, see [plain].
func (e entry) at(path ...string) any {
	var v any = e.Properties
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return plain(v)
}

// plain returns a part of a template with references as text: <Name> or <Name.Attribute>, names without their hashes.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return "<" + withoutHash(ref) + ">"
		}
		if get, ok := v["Fn::GetAtt"].([]any); ok {
			return "<" + withoutHash(fmt.Sprint(get[0])) + "." + fmt.Sprint(get[1]) + ">"
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			text := ""
			for _, part := range join[1].([]any) {
				text += fmt.Sprint(plain(part))
			}
			return text
		}
		all := map[string]any{}
		for name := range v {
			all[name] = plain(v[name])
		}
		return all
	default:
		return v
	}
}

func withoutHash(name string) string {
	return regexp.MustCompile(`[0-9A-F]{8}([0-9a-f]{32})?(\.|$)`).ReplaceAllString(name, "$2")
}

// lines returns a value, or values, as text.
func lines(v any) []string {
	all, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprint(v)}
	}
	var out []string
	for _, one := range all {
		out = append(out, fmt.Sprint(one))
	}
	return out
}
