package e2e_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/event"
	runner "github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
	"github.com/bdk-lambda/bdk/test/awsloop"
	"github.com/bdk-lambda/bdk/test/e2e/suite"
)

// swept is how long the sweeper may take: it runs every minute, and looks at turns that are 30 s old.
const swept = 150 * time.Second

// deployed is the fixture workshop on AWS.
type deployed struct {
	suite.Target

	loop    *awsloop.Loop
	stack   *awsloop.Deployment
	notes   string // the file that the tool note writes to
	machine *sfn.Client
}

// TestAWS runs the suite against the agent as CDK deploys it, and then what is about AWS alone. Each case of the latter
// kills or holds up functions, so they come one after the other.
func TestAWS(t *testing.T) {
	d := deployWorkshop(t)
	t.Run("Suite", func(t *testing.T) { suite.Run(t, d.Target) })
	t.Run("DuplicateStart", d.duplicateStart)
	t.Run("KilledWhileAToolRuns", d.killedWhileAToolRuns)
	t.Run("KilledAfterAnEffect", d.killedAfterAnEffect)
	t.Run("KilledInAnApprovedCall", d.killedInAnApprovedCall)
	t.Run("KilledWhileTheModelStreams", d.killedWhileTheModelStreams)
	t.Run("ZombieOfAStoppedTurn", d.zombieOfAStoppedTurn)
	t.Run("Sweeper", d.sweeper)
	t.Run("Scripts", d.scripts)
	t.Run("Schedules", d.schedules)
	t.Run("Rang", d.rang)
}

func deployWorkshop(t *testing.T) deployed {
	t.Helper()
	loop := awsloop.Start(t, map[string]string{"AWS_LAMBDA_LOG_GROUP_NAME": "/bdk/workshop"})
	app := filepath.Join(t.TempDir(), "app")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", app, "../../infra/app").CombinedOutput(); err != nil {
		t.Fatalf("building the CDK program: %v\n%s", err, out)
	}
	notes := t.TempDir()
	stack := loop.Deploy(t, app, deploy.OutputURL, map[string]string{
		"agent": "test/agents/workshop", "arch": runtime.GOARCH, "env": "NOTES_DIR=" + notes, "execRuntime": "provided",
	})
	stack.ShowLogs(t, stack.Outputs[deploy.OutputLogs])
	stack.Put(t, stack.Outputs[deploy.OutputSecret], map[string]string{
		"bearer:ann": "a-secret", "bearer:bob": "b-secret", "FAR_MCP": suite.Far(t), "FAR_KEY": suite.FarKey,
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return deployed{
		Target: tokens(suite.Target{URL: stack.URL, HTTP: client, Texts: true, LateLogs: true, Expiry: swept}),
		loop:   loop, stack: stack, notes: filepath.Join(notes, "notes"), machine: sfn.NewFromConfig(loop.Config()),
	}
}

// execution returns the ARN of the execution of a turn.
func (d deployed) execution(s *suite.Session) string {
	return strings.Replace(d.stack.Outputs[deploy.OutputMachine], ":stateMachine:", ":execution:", 1) + ":" + s.TurnID
}

// kill kills the processes that work on turns.
func (d deployed) kill(t *testing.T) {
	t.Helper()
	if d.loop.Kill(deploy.Step) == 0 {
		t.Error("no function works on a turn")
	}
}

// scripts: what the step function may call runs scripts, with few files and with many bytes, and none of what it has is seen by them.
func (d deployed) scripts(t *testing.T) {
	client := lambdaexec.NewClient(d.loop.Config())
	var env map[string]string
	list, err := client.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Functions {
		if f.Handler != nil && *f.Handler == deploy.Step {
			env = f.Environment.Variables
		}
	}
	store := s3.NewFromConfig(d.loop.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	r := lambdaexec.New(client, store, lambdaexec.Config{Function: env[deploy.EnvExec], Bucket: env[deploy.EnvBucket], Prefix: deploy.ExecPrefix})
	for _, size := range []int{10, 5_000_000} {
		dir, in := t.TempDir(), make([]byte, size)
		_, _ = rand.Read(in) // never fails
		if err := os.WriteFile(filepath.Join(dir, "in"), in, 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := r.Run(t.Context(), runner.Command{Dir: dir, Args: []string{"bash", "-c", "cat; env; cat in in > out; rm in; exit 3"}, Stdin: []byte("hello\n")})
		out, rerr := os.ReadFile(filepath.Join(dir, "out"))
		_, gone := os.Stat(filepath.Join(dir, "in"))
		if err != nil || rerr != nil || res.ExitCode != 3 || !bytes.Equal(out, slices.Concat(in, in)) || !errors.Is(gone, os.ErrNotExist) {
			t.Errorf("%d bytes: got %d %s, %d bytes, %v, %v", size, res.ExitCode, res.Stderr, len(out), err, rerr)
		}
		if text := string(res.Stdout); !strings.HasPrefix(text, "hello\n") || strings.Contains(text, "AWS_") || strings.Contains(text, "BDK_") {
			t.Errorf("it printed %s", text)
		}
	}
	left, err := store.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(env[deploy.EnvBucket]), Prefix: aws.String(deploy.ExecPrefix)})
	if err != nil || len(left.Contents) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// schedules: what EventBridge Scheduler calls has a schedule happen once for each time, however often it does. Where the schedules are and
// what they call is in the tests of package infra; that they wait there is asked of the emulator.
func (d deployed) schedules(t *testing.T) {
	invoke := lambda.NewFromConfig(d.loop.Config())
	list, err := invoke.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	wake := ""
	for _, f := range list.Functions {
		if f.Handler != nil && *f.Handler == deploy.Wake {
			wake = *f.FunctionName
		}
	}
	before := len(d.Ann(t).Notes())
	call := func(schedule, at string) {
		t.Helper()
		out, err := invoke.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &wake, Payload: []byte(`{"schedule":"` + schedule + `","at":"` + at + `"}`)})
		if err != nil || out.FunctionError != nil {
			t.Errorf("%s at %s: %v, %s", schedule, at, err, out.Payload)
		}
	}
	for range 3 {
		call("yearly", "2026-01-01T00:00:00Z")
		call("pulse", "2025-12-31T00:00:00Z")
		call("gone", "2025-12-31T00:00:00Z")
	}
	call("pulse", "2026-12-31T00:00:00Z")
	const want = 3 // a turn of yearly, two runs of pulse
	notes := 0
	for begin := time.Now(); time.Since(begin) < time.Minute && notes < want; time.Sleep(time.Second) {
		notes = len(d.Ann(t).Notes()) - before
	}
	time.Sleep(3 * time.Second) // for one too many
	if notes = len(d.Ann(t).Notes()) - before; notes != want {
		t.Errorf("%d notes; want %d", notes, want)
	}
	waiting, err := scheduler.NewFromConfig(d.loop.Config()).ListSchedules(t.Context(), &scheduler.ListSchedulesInput{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for _, s := range waiting.Schedules {
		there[*s.Name] = aws.ToString(s.Target.Arn)
	}
	crons := 0
	for name, target := range there {
		if strings.HasSuffix(target, ":function:"+wake) {
			crons++
		} else if len(name) == 64 {
			t.Errorf("the alarm %s stays", name)
		}
	}
	if crons != 2 {
		t.Errorf("schedules %v; want two of the function %s", there, wake)
	}
}

// rang: the reminder of the suite was sent because its alarm rang, not by a sweep that found it late.
func (d deployed) rang(t *testing.T) {
	for next := 0.0; ; {
		a := d.Ann(t).Do("GET", fmt.Sprintf("/v1/logs?after=%.0f", next), "")
		if strings.Contains(a.Raw, `"reminder_ids":["rem_`) {
			return
		}
		after, ok := a.Field("next").(float64)
		if !ok || after == next {
			t.Fatalf("no alarm rang: %d %.500s", a.Status, a.Raw)
		}
		next = after
	}
}

// duplicateStart: a turn that is started again is not run again.
func (d deployed) duplicateStart(t *testing.T) {
	s := d.Ann(t).Start("note it")
	s.Completed()
	arn := d.execution(s)
	is, err := d.machine.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	machine := d.stack.Outputs[deploy.OutputMachine]
	_, err = d.machine.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &machine, Name: &s.TurnID, Input: is.Input})
	if _, ok := errors.AsType[*types.ExecutionAlreadyExists](err); !ok {
		t.Errorf("the same name: %v", err)
	}
	// under another name it is another execution, as after a redrive
	second, err := d.machine.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: &machine, Input: is.Input})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.ended(t, *second.ExecutionArn); got != types.ExecutionStatusSucceeded {
		t.Errorf("the second execution: %s", got)
	}
	log := s.Events("")
	suite.Check(t, log)
	if unknown := suite.Writes(t, log, s.Notes()); unknown > 0 {
		t.Errorf("%d outcomes are unknown", unknown)
	}
	s.Usable()
}

// ended waits until an execution has ended and returns how.
func (d deployed) ended(t *testing.T, arn string) types.ExecutionStatus {
	t.Helper()
	for range 600 {
		is, err := d.machine.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		if is.Status != types.ExecutionStatusRunning {
			return is.Status
		}
		time.Sleep(50 * time.Millisecond)
	}
	return types.ExecutionStatusRunning
}

// killedWhileAToolRuns: the next function runs a read again, and the turn ends once.
func (d deployed) killedWhileAToolRuns(t *testing.T) {
	s := d.Ann(t).Start("slow down")
	s.Until(event.TypeActionsRequested)
	time.Sleep(300 * time.Millisecond) // into the call
	d.kill(t)
	if results := suite.Results(s.Completed()); len(results) != 1 || results[0].IsError {
		t.Errorf("got %v", results)
	}
	s.Usable()
}

// killedAfterAnEffect: no write runs twice, and what is unknown is told so.
func (d deployed) killedAfterAnEffect(t *testing.T) {
	before := d.noted(t)
	s := d.Ann(t).Start("note it")
	for range 2000 {
		if d.noted(t) > before {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.kill(t)
	log := s.Completed()
	t.Logf("%d outcomes are unknown", suite.Writes(t, log, s.Notes()))
	s.Usable()
}

// killedInAnApprovedCall: a call that was approved runs once, also if its function dies after the effect.
func (d deployed) killedInAnApprovedCall(t *testing.T) {
	before := d.noted(t)
	s := d.Ann(t).Start("promslow")
	id := s.Waiting(1)[0]
	if a := s.Decide(id, "approve", ""); a.Status != http.StatusOK {
		t.Fatalf("approving: %d %s", a.Status, a.Raw)
	}
	for range 2000 {
		if d.noted(t) > before {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.kill(t)
	results := suite.Results(s.Completed())
	if len(results) != 1 || !strings.Contains(string(results[0].Output), "outcome unknown") || s.Notes()[id] != 1 {
		t.Errorf("results: %+v; it ran %d times", results, s.Notes()[id])
	}
	if a := s.Decide(id, "approve", ""); a.Status != http.StatusOK || a.Field("repeated") != true {
		t.Errorf("the same decision again: %d %s", a.Status, a.Raw)
	}
	s.Usable()
}

// noted returns how many bytes the tool note has written.
func (d deployed) noted(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(d.notes)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(raw)
}

// killedWhileTheModelStreams: the answer is asked for again, and readers are told.
func (d deployed) killedWhileTheModelStreams(t *testing.T) {
	s := d.Ann(t).Start("typing")
	s.Until(event.TypeMessageAppended)
	d.kill(t)
	restarts := 0
	for _, e := range s.Completed() {
		if e.Type == event.TypeStepRestarted {
			restarts++
		}
	}
	if restarts != 1 {
		t.Errorf("%d restarts; want 1", restarts)
	}
	s.Usable()
}

// zombieOfAStoppedTurn: a function that goes on after its execution was stopped appends nothing, runs no tool and ends.
func (d deployed) zombieOfAStoppedTurn(t *testing.T) {
	ann := d.Ann(t)
	s := ann.Start("deaf")
	s.Until(event.TypeActionsRequested)
	if a := ann.Do("POST", s.Path("/stop"), ""); a.Status != http.StatusOK || a.Field("stopped") != true {
		t.Errorf("stop: %d %s", a.Status, a.Raw)
	}
	if got := d.ended(t, d.execution(s)); got != types.ExecutionStatusAborted {
		t.Errorf("the execution: %s", got)
	}
	at := len(s.Events(""))
	before := d.loop.Calls()
	time.Sleep(7 * time.Second) // the tool takes 5
	log := s.Events("")
	suite.Check(t, log)
	if len(log) != at || len(suite.Results(log)) != 0 {
		t.Errorf("the log has grown from %d to %d events", at, len(log))
	}
	// its one attempt to write is refused; streams that nobody reads any more only read
	if puts := d.loop.Calls()["PutItem"] - before["PutItem"]; puts > 1 {
		t.Errorf("%d attempts to write", puts)
	}
	s.Usable()
}

// sweeper: a turn that was accepted while Step Functions was away is run; one whose execution somebody has stopped fails. Both
// sessions go on.
func (d deployed) sweeper(t *testing.T) {
	d.loop.Refuse("StartExecution", 3) // as often as it is tried
	waiting := d.Ann(t).Start("add it")
	d.loop.Refuse("StartExecution", 0)

	stopped := d.Ann(t).Start("slow down")
	arn := d.execution(stopped)
	if _, err := d.machine.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: &arn}); err != nil {
		t.Fatal(err)
	}
	d.loop.Kill(deploy.Step) // if it has begun

	d.swept(t, waiting, event.TypeTurnCompleted)
	d.swept(t, stopped, event.TypeTurnFailed)
	waiting.Usable()
	stopped.Usable()
}

// swept waits until the newest turn has ended in the given way.
func (d deployed) swept(t *testing.T, s *suite.Session, kind event.Type) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < swept; time.Sleep(time.Second) {
		for _, e := range s.Events("") {
			if e.TurnID == s.TurnID && (e.Type == event.TypeTurnCompleted || e.Type == event.TypeTurnFailed) {
				if e.Type != kind {
					t.Errorf("the turn ended with %s", e.Type)
				}
				return
			}
		}
	}
	t.Fatalf("the turn did not end within %s", swept)
}
