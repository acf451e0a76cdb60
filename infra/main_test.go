package infra_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bdk-lambda/bdk/infra"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/test/emulator"
	"github.com/bdk-lambda/bdk/test/need"
)

// manifest writes a manifest and returns its path.
func manifest(t *testing.T, m deploy.Manifest) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"manifest.json": data, m.Archive: emptyZip()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "manifest.json")
}

// TestSettingsAreDeclared: what is read from the context is what the command takes for a setting, and documented.
func TestSettingsAreDeclared(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-zA-Z]+) `).FindAllStringSubmatch(string(source), -1) {
		documented = append(documented, m[1])
	}
	if diff := cmp.Diff(documented, deploy.Settings()); diff != "" {
		t.Errorf("settings (-documented +declared):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(deploy.Settings())), infra.Asked(t.Context())); diff != "" {
		t.Errorf("settings (-declared +read):\n%s", diff)
	}
}

// TestSettings: the context becomes the configuration, whether it comes from the command line as text or from cdk.json.
func TestSettings(t *testing.T) {
	m := config("", agent).Manifest
	path := manifest(t, m)
	elsewhere := m
	elsewhere.Archive = "../bootstrap.zip"
	base := infra.Config{Manifest: m, Archive: filepath.Join(filepath.Dir(path), "bootstrap.zip")}
	with := func(change func(*infra.Config)) infra.Config {
		c := base
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		settings map[string]any
		want     infra.Config
		fault    string // part of the error
	}{
		"nothing":             {want: base},
		"everything as it is": {settings: map[string]any{"retain": "true", "logRole": "true", "env": ""}, want: base},
		"nothing stays":       {settings: map[string]any{"retain": false}, want: with(func(c *infra.Config) { c.Destroy = true })},
		"a role for logs":     {settings: map[string]any{"logRole": "0"}, want: with(func(c *infra.Config) { c.NoLogRole = true })},
		"scripts":             {settings: map[string]any{"execRuntime": "provided"}, want: with(func(c *infra.Config) { c.ExecProvided = true })},
		"scripts as always":   {settings: map[string]any{"execRuntime": "python"}, want: base},
		"streams":             {settings: map[string]any{"maxStreams": 20.0}, want: with(func(c *infra.Config) { c.MaxStreams = 20 })},
		"many streams":        {settings: map[string]any{"maxStreams": 1e6}, want: with(func(c *infra.Config) { c.MaxStreams = 1_000_000 })},
		"alarms":              {settings: map[string]any{"alarmEmail": "a@b.c"}, want: with(func(c *infra.Config) { c.Email = "a@b.c" })},
		"variables as a list": {settings: map[string]any{"env": "A=1,B=x=y"}, want: with(func(c *infra.Config) { c.Variables = map[string]string{"A": "1", "B": "x=y"} })},
		"variables as JSON":   {settings: map[string]any{"env": ` {"A":"1,2"}`}, want: with(func(c *infra.Config) { c.Variables = map[string]string{"A": "1,2"} })},
		"variables in cdk.json": {
			settings: map[string]any{"env": map[string]any{"A": "1"}},
			want:     with(func(c *infra.Config) { c.Variables = map[string]string{"A": "1"} }),
		},
		"an origin":                   {settings: map[string]any{"origins": "https://a.example"}, want: with(func(c *infra.Config) { c.Origins = []string{"https://a.example"} })},
		"any origin":                  {settings: map[string]any{"origins": "*"}, want: with(func(c *infra.Config) { c.Origins = []string{"*"} })},
		"origins as a list":           {settings: map[string]any{"origins": "https://a.example, http://b:1"}, want: with(func(c *infra.Config) { c.Origins = []string{"https://a.example", "http://b:1"} })},
		"origins as JSON":             {settings: map[string]any{"origins": ` ["https://a.example","http://b:1"]`}, want: with(func(c *infra.Config) { c.Origins = []string{"https://a.example", "http://b:1"} })},
		"origins in cdk.json":         {settings: map[string]any{"origins": []any{"https://a.example", "http://b:1"}}, want: with(func(c *infra.Config) { c.Origins = []string{"https://a.example", "http://b:1"} })},
		"no origins":                  {settings: map[string]any{"origins": []any{}}, want: base},
		"what is no origin":           {settings: map[string]any{"origins": "https://a.example/"}, fault: `the setting origins (-c origins=…): the origin "https://a.example/" has more than a host`},
		"an origin among all":         {settings: map[string]any{"origins": "*,https://a.example"}, fault: "stands for all"},
		"a number as origin":          {settings: map[string]any{"origins": []any{1.0}}, fault: "the setting origins"},
		"origins as an object":        {settings: map[string]any{"origins": map[string]any{"a": "b"}}, fault: "the setting origins"},
		"a switch that is none":       {settings: map[string]any{"retain": "never"}, fault: `the setting retain (-c retain=…): "never" is neither true nor false`},
		"scripts somewhere else":      {settings: map[string]any{"execRuntime": "perl"}, fault: `the setting execRuntime (-c execRuntime=…): "perl" is neither python nor provided`},
		"streams below zero":          {settings: map[string]any{"maxStreams": "-1"}, fault: "the setting maxStreams"},
		"a variable without a value":  {settings: map[string]any{"env": "A"}, fault: `the setting env (-c env=…): "A" is not NAME=VALUE`},
		"a variable without a name":   {settings: map[string]any{"env": "=x"}, fault: `"=x" is not NAME=VALUE`},
		"variables that are numbers":  {settings: map[string]any{"env": `{"A":1}`}, fault: "the setting env"},
		"streams beyond all":          {settings: map[string]any{"maxStreams": 1e21}, fault: `the setting maxStreams (-c maxStreams=…): strconv.ParseUint: parsing "1000000000000000000000"`},
		"half a stream":               {settings: map[string]any{"maxStreams": 1.5}, fault: "the setting maxStreams"},
		"a variable twice":            {settings: map[string]any{"env": "AB=1,C=2,AB=1"}, fault: "the setting env (-c env=…): it has the variable AB twice"},
		"a variable twice in JSON":    {settings: map[string]any{"env": `{"AB":"1","AB":"2"}`}, fault: "the setting env (-c env=…): it has the variable AB twice"},
		"a variable that is null":     {settings: map[string]any{"env": map[string]any{"AB": nil}}, fault: "the variable AB has no value"},
		"more behind the variables":   {settings: map[string]any{"env": `{"AB":"1"} x`}, fault: "the setting env"},
		"an address that is a list":   {settings: map[string]any{"alarmEmail": []any{"a"}}, fault: "the setting alarmEmail (-c alarmEmail=…): it must be text"},
		"a manifest that is not here": {settings: map[string]any{"manifest": "no/manifest.json"}, fault: "no/manifest.json"},
		"an archive elsewhere":        {settings: map[string]any{"manifest": manifest(t, elsewhere)}, fault: `the archive "../bootstrap.zip", which is not in its folder`},
		"no agent":                    {settings: map[string]any{"manifest": ""}, fault: "which agent? Name its folder with -c agent=FOLDER"},
	} {
		settings := map[string]any{"manifest": path}
		maps.Copy(settings, tc.settings)
		got, err := infra.Read(t.Context(), settings, io.Discard)
		switch {
		case tc.fault != "":
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: got %v; want %q in it", name, err, tc.fault)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			differ(t, name, "", cmp.Diff([]infra.Config{tc.want}, got, cmpopts.EquateEmpty()))
		}
	}
}

// TestRefused: what cannot become a working deployment is said before anything is made.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*infra.Config)
		want   string
	}{
		"a function of another release": {func(c *infra.Config) {
			c.Manifest.Functions = append(c.Manifest.Functions, deploy.Function{Name: "dream"})
		}, `a function "dream", which this infrastructure does not know`},
		"a function too few": {func(c *infra.Config) { c.Manifest.Functions = c.Manifest.Functions[1:] }, `lacks the function "await"`},
		"a step without time": {func(c *infra.Config) {
			i := slices.IndexFunc(c.Manifest.Functions, func(f deploy.Function) bool { return f.Name == deploy.Step })
			c.Manifest.Functions[i].Seconds = 50
		}, "the function step as a worker one with 50 s"},
		"an archive that is not here": {func(c *infra.Config) { c.Archive = "no/bootstrap.zip" }, "no/bootstrap.zip"},
		"an archive that is a folder": {func(c *infra.Config) { c.Archive = "." }, "reading the archive"},
		"another archive":             {func(c *infra.Config) { c.Archive = "main.go" }, "the archive main.go is not the manifest's: it has the SHA-256 "},
		"a name that is too long":     {func(c *infra.Config) { c.Manifest.Slug = strings.Repeat("x", 125) }, "is too long"},
		"a variable of our own":       {func(c *infra.Config) { c.Variables = map[string]string{deploy.EnvBucket: "x"} }, "the variable BDK_BUCKET is set by the deployment itself"},
		"a variable of Lambda's":      {func(c *infra.Config) { c.Variables = map[string]string{"AWS_LAMBDA_X": "x"} }, "AWS_LAMBDA_X"},
		"a variable of one letter":    {func(c *infra.Config) { c.Variables = map[string]string{"A": "x"} }, `"A" cannot name a variable`},
		"what is no origin":           {func(c *infra.Config) { c.Origins = []string{"a.example"} }, `the origin "a.example" does not begin with`},
		"an address without a place":  {func(c *infra.Config) { c.Email = "ops" }, `"ops", whom alarms are told, is no mail address`},
		"an address with a name":      {func(c *infra.Config) { c.Email = "Ops <ops@example.com>" }, "is no mail address"},
		"two addresses":               {func(c *infra.Config) { c.Email = "a@example.com,b@example.com" }, "is no mail address"},
		"more than fits":              {func(c *infra.Config) { c.Variables = map[string]string{"BIG": strings.Repeat("x", 3<<10)} }, "take 3122 bytes: Lambda has room for 4096"},
		"more together than fits": {func(c *infra.Config) {
			c.Variables, c.Origins = map[string]string{"BIG": strings.Repeat("x", 3000)}, []string{"https://" + strings.Repeat("x", 60) + ".example.com"}
		}, "is 2560 without"},
		"where Lambda keeps handlers": {func(c *infra.Config) { c.Variables = map[string]string{"_HANDLER": "x"} }, `"_HANDLER" cannot name a variable`},
	} {
		c := config("", agent)
		tc.change(&c)
		if _, err := infra.NewStack(nil, c); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v; want %q in it", name, err, tc.want)
		}
	}
}

// TestFault: what the CDK says is told without the places in its own code where it says it.
func TestFault(t *testing.T) {
	for _, panicked := range []any{"Error: no such asset\n    at new Asset (/x/y.js:1:2)\n    at z", errors.New("Error: no such asset\n    at q")} {
		if got, want := infra.Fault(panicked).Error(), "describing the stack: Error: no such asset"; got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// TestProgram: the command line of the CDK makes an assembly without a network, and a fault is told in a line.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	need.Tool(t, "node")
	cdk := emulator.Find(t, emulator.CDK)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	synth := func(out string, settings ...string) (string, error) {
		args := append([]string{cdk, "synth", "--quiet", "--no-notices", "--app", self, "--output", out}, settings...)
		if exec.CommandContext(t.Context(), "unshare", "-rn", "true").Run() == nil {
			args = append([]string{"unshare", "-rn"}, args...) // a machine without a network
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = ".." // cdk.json is there
		cmd.Env = append(os.Environ(), asProgram+"=1", "CDK_DISABLE_CLI_TELEMETRY=true", "CDK_HOME="+t.TempDir())
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	out := t.TempDir()
	if said, err := synth(out, "-c", "manifest="+manifest(t, config("", agent).Manifest)); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(out, "bdk-pr-approver.template.json")); err != nil {
		t.Error(err)
	}
	said, err := synth(t.TempDir())
	if err == nil || !strings.Contains(said, "bdk: which agent?") || strings.Contains(said, "goroutine ") {
		t.Errorf("without an agent: %v\n%s", err, said)
	}
}

// TestMistakesOfAuthors: an agent with mistakes is not packed, and its author is told as everywhere else.
func TestMistakesOfAuthors(t *testing.T) {
	var said strings.Builder
	dir := t.TempDir()
	_, err := infra.Read(t.Context(), map[string]any{"agent": dir}, &said)
	if err == nil || !strings.Contains(err.Error(), "has mistakes and was not packed") || !strings.Contains(said.String(), "error[BDK") {
		t.Errorf("got %v\n%s", err, said.String())
	}
	if _, err := infra.Read(t.Context(), map[string]any{"agent": dir, "arch": "mips"}, io.Discard); err == nil || !strings.Contains(err.Error(), "mips") {
		t.Errorf("an architecture that there is not: %v", err)
	}
}
