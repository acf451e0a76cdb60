// Package awshost runs one agent on AWS Lambda: DynamoDB, S3 and Step Functions for what must last, and processes that come
// and go for the rest.
//
// A process serves one function of the deployment. It finds the tables and all else by the variables of package deploy.
package awshost

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/s3blob"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/connection"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/engine"
	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/shared/hook/sqshook"
	"github.com/bdk-lambda/bdk/shared/host"
	"github.com/bdk-lambda/bdk/shared/httpapi"
	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/kv"
	"github.com/bdk-lambda/bdk/shared/kv/dynamokv"
	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/secret/awssecret"
	"github.com/bdk-lambda/bdk/shared/session"
	"github.com/bdk-lambda/bdk/shared/session/dynamosession"
	"github.com/bdk-lambda/bdk/shared/tables"
	"github.com/bdk-lambda/bdk/shared/telemetry"
	"github.com/bdk-lambda/bdk/shared/telemetry/cloudlog"
	"github.com/bdk-lambda/bdk/shared/turn/sfnturn"
	"github.com/bdk-lambda/bdk/shared/wake"
	"github.com/bdk-lambda/bdk/shared/wake/schedulerwake"
)

const (
	maxStream   = 14 * time.Minute // a function may run for 15
	maxBuffered = 20 * time.Second // API Gateway waits for 29
	idleClose   = time.Minute
	pollTurn    = 200 * time.Millisecond // while a turn runs: deltas are written every 250 ms
	pollQuiet   = time.Second
)

// Host is one agent in one function. It is safe for concurrent use.
type Host struct {
	project  bdk.Project
	opts     Options
	log      *slog.Logger
	secrets  *secret.Store
	sessions *session.Store
	rows     *dynamosession.Driver
	kv       *kv.Store
	blobs    *blob.Store
	runner   *sfnturn.Runner
	tokens   *sfnturn.Tokens
	sweeper  *sfnturn.Sweeper
	sender   *sqshook.Sender
	logs     httpapi.Logs
	alarm    wake.Alarm          // nil in a function that makes no reminders
	scripts  exec.Runner         // nil in a function that may not call the exec function
	sandbox  *lambdaexec.Sandbox // of the exec function
	temp     string              // where directories with the files of sessions are made

	connections *connection.Set

	control *engine.Engine // accepts messages and ends turns; it has no models to run one

	mu    sync.Mutex
	agent *engine.Engine    // runs turns; nil before the first one
	keys  map[string]string // what it was made with from the secret
}

// Options are what a host gets from its process.
type Options struct {
	Getenv func(string) string // required
	Stdout io.Writer           // takes the log and the metrics; required
	Config *aws.Config         // default: from the environment
	Clock  clock.Clock         // default: the system clock
}

// Open returns the host of an agent. It makes no request.
func Open(ctx context.Context, project bdk.Project, opts Options) (*Host, error) {
	cfg := opts.Config
	if cfg == nil {
		loaded, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("loading the configuration of AWS: %w", err)
		}
		cfg = &loaded
	}
	if opts.Clock == nil {
		opts.Clock = clock.System{}
	}
	h := &Host{project: project, opts: opts, temp: tempOf("bdk-files")}
	if err := os.RemoveAll(h.temp); err != nil { // a process of the same number was killed
		return nil, fmt.Errorf("removing temporary files: %w", err)
	}
	h.log = slog.New(telemetry.EMF(slog.NewJSONHandler(opts.Stdout, nil))).With(slog.String(telemetry.SlugKey, project.Slug))
	h.connect(*cfg)
	var err error
	if h.connections, err = h.reach(); err != nil {
		return nil, err
	}
	// nobody asks the models of the control engine, and its tools are only shown
	control, err := h.engine(ctx, host.Models{Getenv: opts.Getenv, NamesOnly: true})
	if err != nil {
		return nil, err
	}
	h.control = control
	return h, nil
}

// taskRoot is the variable with the folder that the archive was unpacked in.
const taskRoot = "LAMBDA_TASK_ROOT"

// engine returns an engine of the agent with the given models.
func (h *Host) engine(ctx context.Context, models host.Models) (*engine.Engine, error) {
	return host.NewEngine(ctx, h.project, filepath.Join(h.opts.Getenv(taskRoot), deploy.AgentRoot), host.Parts{
		Sessions: h.sessions, KV: h.kv, Blobs: h.blobs, Runner: h.runner, Scripts: h.scripts, Models: models,
		Connections: h.connections,
		Clock:       h.opts.Clock, Log: h.log, Temp: h.temp, Alarm: h.alarm, MaxArtifacts: -1, // what is kept costs next to nothing
	})
}

// reach returns the connections of the agent. Variables that the function does not have are read from the deployment's secret.
func (h *Host) reach() (*connection.Set, error) {
	return connection.New(h.project, connection.Options{
		NoCommands: true, Clock: h.opts.Clock, Log: h.log,
		Lookup: func(ctx context.Context, name string) (string, error) {
			if value := h.opts.Getenv(name); value != "" {
				return value, nil
			}
			return h.secrets.Lookup(ctx, name)
		},
	})
}

// connect makes the clients, and the adapters that use them.
func (h *Host) connect(cfg aws.Config) {
	env := h.opts.Getenv
	names := tables.Names{Sessions: env(deploy.EnvSessions), Events: env(deploy.EnvEvents), Control: env(deploy.EnvControl)}
	db := dynamox.NewClient(cfg)
	objects := s3.NewFromConfig(cfg)
	h.blobs = blob.New(s3blob.New(objects, env(deploy.EnvBucket), deploy.BlobPrefix))
	h.rows = dynamosession.New(db, names, h.blobs)
	h.sessions = session.New(h.rows, session.Options{
		Clock: h.opts.Clock, Poll: pollQuiet, PollTurn: pollTurn, TTL: h.project.Agent.SessionTTL,
	})
	h.kv = kv.New(dynamokv.New(db, names.Control), kv.Options{Clock: h.opts.Clock})
	h.secrets = secret.New(awssecret.New(secretsmanager.NewFromConfig(cfg), env(deploy.EnvSecret)), secret.Options{Clock: h.opts.Clock, Log: h.log})
	if group := env("AWS_LAMBDA_LOG_GROUP_NAME"); group != "" {
		h.logs = cloudlog.New(cloudwatchlogs.NewFromConfig(cfg), group, h.opts.Clock)
	}
	machine := sfnturn.NewClient(cfg)
	h.tokens = sfnturn.NewTokens(machine, h.kv)
	h.runner = sfnturn.New(machine, env(deploy.EnvMachine), h.tokens)
	h.sweeper = sfnturn.NewSweeper(h.runner, h.sessions, h.project.Slug, sfnturn.SweepOptions{Clock: h.opts.Clock, Log: h.log})
	h.sandbox = newSandbox(env)
	if group := env(deploy.EnvAlarmGroup); group != "" {
		h.alarm = schedulerwake.New(schedulerwake.NewClient(cfg), schedulerwake.Config{
			Group: group, Queue: env(deploy.EnvAlarmQueue), Role: env(deploy.EnvAlarmRole), Clock: h.opts.Clock,
		})
	}
	h.sender = sqshook.New(sqs.NewFromConfig(cfg), func(subscriber string) string { return deploy.QueueName(h.project.Slug, subscriber) })
	if function := env(deploy.EnvExec); function != "" {
		h.scripts = lambdaexec.New(lambdaexec.NewClient(cfg), objects, lambdaexec.Config{
			Function: function, Bucket: env(deploy.EnvBucket), Prefix: deploy.ExecPrefix,
		})
	}
}

// API returns the HTTP surface of the agent, at /<slug>/v1. It reads the deployment's secret. If answers leave when they
// are complete, buffered, a stream ends before API Gateway gives up waiting for it.
func (h *Host) API(ctx context.Context, buffered bool) (http.Handler, error) {
	policy, err := auth.Secret(ctx, h.secrets.Get)
	if err != nil {
		return nil, fmt.Errorf("reading the deployment's secret: %w", err)
	}
	origins, err := deploy.Origins(h.opts.Getenv(deploy.EnvOrigins))
	if err != nil {
		return nil, fmt.Errorf("reading the variable %s: %w", deploy.EnvOrigins, err)
	}
	opts := httpapi.Options{
		Auth: auth.Chain(policy, auth.IAM()), Origins: origins,
		Blobs: h.blobs, Logs: h.logs, Clock: h.opts.Clock, Log: h.log, MaxStream: maxStream, IdleClose: idleClose,
	}
	if buffered {
		opts.MaxStream = maxBuffered
	}
	return httpapi.New([]httpapi.Agent{h.control}, opts), nil
}

// Log returns the logger of the function.
func (h *Host) Log() *slog.Logger { return h.log }

// Slug returns the name of the agent, which is that of its API's stage too.
func (h *Host) Slug() string { return h.project.Slug }
