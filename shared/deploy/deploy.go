// Package deploy says what an agent becomes on AWS: which functions, behind which paths, and how they find what they work
// with. Packing an agent writes it down as a [Manifest], the infrastructure makes it, the functions read their part from
// their environment.
package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/cron"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// Version is the version of the manifest that this package writes and reads.
const Version = 1

// The environment of a function. A function that does not need something does not have its variable.
const (
	EnvSessions   = "BDK_SESSIONS_TABLE"
	EnvEvents     = "BDK_EVENTS_TABLE"
	EnvControl    = "BDK_CONTROL_TABLE"
	EnvBucket     = "BDK_BUCKET"
	EnvMachine    = "BDK_STATE_MACHINE_ARN"
	EnvSecret     = "BDK_SECRET_ARN"
	EnvModel      = "BDK_MODEL"               // the model instead of the agent's own
	EnvOrigins    = "BDK_ALLOWED_ORIGINS"     // whose pages may read answers in a browser, see [Origins]
	EnvExec       = "BDK_EXEC_FUNCTION"       // the ARN of the function that runs scripts
	EnvAlarmGroup = "BDK_ALARM_GROUP"         // the group of schedules that are alarms
	EnvAlarmQueue = "BDK_ALARM_QUEUE_ARN"     // that they ring
	EnvAlarmRole  = "BDK_ALARM_ROLE_ARN"      // that may ring it
	EnvWrapper    = "AWS_LAMBDA_EXEC_WRAPPER" // the program that the runtime starts in place of its own
)

// The outputs of a stack.
const (
	OutputURL     = "ApiUrl"          // where the agent is served, without a slash at the end
	OutputSecret  = "SecretArn"       // of the secret with the bearer tokens and the keys of models
	OutputMachine = "StateMachineArn" // of what runs the turns
	OutputLogs    = "LogGroup"        // where all functions log
)

// The prefixes of keys in the bucket.
const (
	BlobPrefix = "blobs/" // of blobs
	ExecPrefix = "exec/"  // of what is on its way to the exec function and back; what is left over is removed after a day
)

// AgentRoot is the folder in the archive that takes the place of the agent's own: files that the agent refers to are
// there, under the names it uses.
const AgentRoot = "agent"

// Manifest describes one packed agent. Slices are empty rather than nil, so that it marshals the same way always.
type Manifest struct {
	Version      int          `json:"version"`
	Slug         string       `json:"slug"`         // also the name of the API's stage
	Architecture string       `json:"architecture"` // arm64 or amd64
	Archive      string       `json:"archive"`      // the zip file, relative to the manifest; all functions run from it
	SHA256       string       `json:"sha256"`       // of the archive's contents, in hexadecimal
	Models       []string     `json:"models"`       // provider:name, the agent's model and its fallbacks
	Model        string       `json:"model"`        // what the agent is deployed with instead of them; "" for none
	Functions    []Function   `json:"functions"`
	Routes       []Route      `json:"routes"`
	Schedules    []Schedule   `json:"schedules"`
	Crons        []Cron       `json:"crons"`       // the agent's own schedules, in name order
	Subscribers  []Subscriber `json:"subscribers"` // who is told of events
	Secrets      []string     `json:"secrets"`     // keys that the deployment's secret must have before the agent works
	Egress       []string     `json:"egress"`      // hosts outside of AWS that the agent calls
}

// Kind says what invokes a function, and how it answers.
type Kind string

// The kinds of functions.
const (
	Buffered Kind = "buffered" // API Gateway; the answer leaves when it is complete
	Streamed Kind = "streamed" // API Gateway; the answer leaves as it is written
	Worker   Kind = "worker"   // something else: a state machine, a schedule, a stream of a table
)

// Function is one Lambda function. Its name is the Lambda handler too.
type Function struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Seconds int    `json:"seconds"` // timeout
	Memory  int    `json:"memory"`  // MiB
}

// Timeout returns the time an invocation may take.
func (f Function) Timeout() time.Duration { return time.Duration(f.Seconds) * time.Second }

// Route says which function answers the requests to a path, whatever their method.
type Route struct {
	Path     string `json:"path"` // below the stage: literals, {name} for one segment, {proxy+} for all that follow
	Function string `json:"function"`
}

// Schedule invokes a function regularly.
type Schedule struct {
	Name     string `json:"name"`
	Function string `json:"function"`
	Rate     int    `json:"rateMinutes"`
}

// Cron invokes the wake function whenever a schedule of the agent is due.
type Cron struct {
	Schedule    string   `json:"schedule"`    // its name
	Cron        string   `json:"cron"`        // as its author wrote it, see package cron
	Expressions []string `json:"expressions"` // the same for EventBridge Scheduler
}

// NewCron returns the Cron of a schedule. The error is that of [cron.Parse].
func NewCron(schedule, expression string) (Cron, error) {
	s, err := cron.Parse(expression)
	return Cron{Schedule: schedule, Cron: expression, Expressions: s.AWS()}, err
}

// Subscriber is told of events, by a queue of its own.
type Subscriber struct {
	Name   string   `json:"name"`   // as of hook.Subscriber
	Events []string `json:"events"` // types, * for all
}

// HookSeconds is the timeout of the function that tells subscribers: the longest that a hook may take, and some more.
const HookSeconds = 330

// QueueName returns the name of the queue of a subscriber of an agent. It is the same in each deployment, and that of another subscriber is
// another one.
func QueueName(slug, subscriber string) string {
	sum := sha256.Sum256([]byte(slug + "\x00" + subscriber))
	return "bdk-" + hex.EncodeToString(sum[:16]) + ".fifo"
}

// The functions of every agent.
const (
	Discovery = string(httpapi.Discovery)
	Sessions  = string(httpapi.Sessions)
	Stream    = string(httpapi.Stream)
	Tools     = string(httpapi.Tools)
	Step      = "step"     // works on a turn
	Await     = "await"    // parks a call until somebody decides
	Exec      = "exec"     // runs scripts, without any permissions
	Sweep     = "sweep"    // finds turns that were accepted and not started
	Dispatch  = "dispatch" // sends what was recorded to the queues of subscribers
	Hook      = "hook"     // tells a subscriber
	Wake      = "wake"     // has schedules and reminders happen
	Purge     = "purge"    // removes what is left of sessions that expired
)

// Functions returns the functions of every agent, in name order.
func Functions() []Function {
	return []Function{
		{Name: Await, Kind: Worker, Seconds: 30, Memory: 128},
		{Name: Discovery, Kind: Buffered, Seconds: 29, Memory: 256},
		{Name: Dispatch, Kind: Worker, Seconds: 60, Memory: 256},
		{Name: Exec, Kind: Worker, Seconds: 720, Memory: 1024}, // the longest script, and its files before and after it
		{Name: Hook, Kind: Worker, Seconds: HookSeconds, Memory: 256},
		{Name: Purge, Kind: Worker, Seconds: 300, Memory: 256},
		{Name: Sessions, Kind: Buffered, Seconds: 29, Memory: 256},
		{Name: Step, Kind: Worker, Seconds: 900, Memory: 512},
		{Name: Stream, Kind: Streamed, Seconds: 900, Memory: 256},
		{Name: Sweep, Kind: Worker, Seconds: 60, Memory: 256},
		{Name: Tools, Kind: Streamed, Seconds: 900, Memory: 512},
		{Name: Wake, Kind: Worker, Seconds: 900, Memory: 512},
	}
}

// Routes returns the paths of an agent's API. Those of the HTTP route table go to the function of their group; every other
// path goes to the discovery function, which answers that it does not exist.
func Routes() []Route {
	routes := []Route{{Path: "/", Function: Discovery}, {Path: "/{proxy+}", Function: Discovery}}
	known := map[string]bool{}
	for _, r := range httpapi.Routes() {
		path := strings.TrimSuffix(r.Pattern, "/{$}")
		if r.Host || r.Dev || known[path] {
			continue
		}
		known[path] = true
		routes = append(routes, Route{Path: path, Function: string(r.Group)})
	}
	return append(routes, catchAll(known)...)
}

// catchAll returns routes for the paths that begin like known ones: API Gateway need not fall back to a shorter prefix.
func catchAll(known map[string]bool) []Route {
	var more []Route
	for _, r := range httpapi.Routes() {
		for at := range r.Pattern {
			prefix := r.Pattern[:at]
			path := prefix + "/{proxy+}"
			if r.Host || r.Dev || r.Pattern[at] != '/' || prefix == "" || known[path] || taken(known, prefix) {
				continue
			}
			known[path] = true
			more = append(more, Route{Path: path, Function: Discovery})
		}
	}
	return more
}

// taken reports whether the segment after prefix is a variable one already: API Gateway allows one.
func taken(known map[string]bool, prefix string) bool {
	for path := range known {
		if strings.HasPrefix(path, prefix+"/{") {
			return true
		}
	}
	return false
}

// Schedules returns the schedules of every agent.
func Schedules() []Schedule { return []Schedule{{Name: Sweep, Function: Sweep, Rate: 1}} }

// Origins reads a list of origins with commas between them, or * alone, as EnvOrigins has it. An empty list is nil. It fails
// for what is no origin.
func Origins(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	origins := strings.Split(list, ",")
	for i := range origins {
		origins[i] = strings.TrimSpace(origins[i])
	}
	return origins, httpapi.CheckOrigins(origins)
}

// Decode reads a manifest and checks it, see [Manifest.Check].
func Decode(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest: %w", err)
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Check fails for a manifest that packing an agent with this release does not write. The memory of functions may be another.
func (m Manifest) Check() error {
	sum, err := hex.DecodeString(m.SHA256)
	switch {
	case m.Version != Version:
		return fmt.Errorf("the manifest has version %d, this infrastructure reads version %d: pack the agent with the bdk command of the same release", m.Version, Version)
	case m.Slug == "":
		return errors.New("the manifest names no agent")
	case m.Architecture != "arm64" && m.Architecture != "amd64":
		return fmt.Errorf("the manifest has the architecture %q, which is neither arm64 nor amd64", m.Architecture)
	case !filepath.IsLocal(m.Archive):
		return fmt.Errorf("the manifest has the archive %q, which is not in its folder", m.Archive)
	case err != nil || len(sum) != sha256.Size:
		return fmt.Errorf("the manifest has %q as SHA-256 of the archive, which is none", m.SHA256)
	}
	return m.checkFunctions()
}

// checkFunctions fails unless the functions are those of every agent, called by what there is.
func (m Manifest) checkFunctions() error {
	const least, most = 128, 10240 // MiB
	missing := map[string]Function{}
	for _, f := range Functions() {
		missing[f.Name] = f
	}
	for _, f := range m.Functions {
		want, ok := missing[f.Name]
		delete(missing, f.Name)
		switch {
		case !ok:
			return fmt.Errorf("the manifest has a function %q, which this infrastructure does not know, or has it twice: use the bdk of the same release", f.Name)
		case f.Kind != want.Kind || f.Seconds != want.Seconds:
			return fmt.Errorf("the manifest has the function %s as a %s one with %d s, its code is for a %s one with %d s", f.Name, f.Kind, f.Seconds, want.Kind, want.Seconds)
		case f.Memory < least || f.Memory > most:
			return fmt.Errorf("the manifest has the function %s with %d MiB of memory: Lambda has from %d to %d", f.Name, f.Memory, least, most)
		}
	}
	if names := slices.Sorted(maps.Keys(missing)); len(names) > 0 {
		return fmt.Errorf("the manifest lacks the function %q: use the bdk of the same release", names[0])
	}
	if !slices.Equal(m.Routes, Routes()) || !slices.Equal(m.Schedules, Schedules()) {
		return errors.New("the manifest has other routes or schedules than every agent: use the bdk of the same release")
	}
	return m.checkCrons()
}

// checkCrons fails for schedules that are not what packing makes of an agent's.
func (m Manifest) checkCrons() error {
	for i, c := range m.Crons {
		want, err := NewCron(c.Schedule, c.Cron)
		switch {
		case err != nil:
			return fmt.Errorf("the manifest has the schedule %q: %w", c.Schedule, err)
		case !slices.Equal(c.Expressions, want.Expressions):
			return fmt.Errorf("the manifest has the schedule %q with %q as %q: on AWS that is %q", c.Schedule, c.Cron, c.Expressions, want.Expressions)
		case c.Schedule == "" || i > 0 && m.Crons[i-1].Schedule >= c.Schedule:
			return fmt.Errorf("the manifest has the schedule %q twice, or out of order", c.Schedule)
		}
	}
	return nil
}
