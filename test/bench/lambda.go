package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// lambda measures the program of the functions: how big it is on Lambda, and how it starts here, at the speed of a whole CPU.
func (b *bench) lambda(ctx context.Context, _ *server) error {
	packed, err := b.pack(ctx, pack.ARM64)
	if err != nil {
		return err
	}
	b.record("bootstrap", float64(packed.Bootstrap)/1e6)
	b.record("archive", float64(packed.Archive)/1e6)
	if runtime.GOOS != "linux" {
		fmt.Fprintln(b.progress, "  functions start on Linux only")
		return nil
	}
	if packed, err = b.pack(ctx, runtime.GOARCH); err != nil {
		return err
	}
	program := filepath.Join(b.dir, "bootstrap")
	if err := unzip(filepath.Join(filepath.Dir(packed.Path), packed.Manifest.Archive), program); err != nil {
		return fmt.Errorf("unpacking the program: %w", err)
	}
	if err := settle(ctx, 2*time.Second); err != nil { // the linker's output is still being written
		return err
	}
	b.mark()
	var most float64
	for _, handler := range []string{deploy.Sessions, deploy.Step} {
		peak, err := b.polls(ctx, program, handler)
		if err != nil {
			return fmt.Errorf("function %s: %w", handler, err)
		}
		most = max(most, peak)
	}
	b.record("peak", most)
	if err := b.request(ctx, program); err != nil {
		return fmt.Errorf("function %s: %w", deploy.Discovery, err)
	}
	return nil
}

// polls measures how long a process of a function takes until it asks for its first event, and returns the most memory that one
// of them has taken by then.
func (b *bench) polls(ctx context.Context, program, handler string) (peak float64, err error) {
	var took []time.Duration
	for range b.of(300) / 10 {
		f := &function{}
		err := f.run(ctx, program, handler, func(process *os.Process) error {
			took = append(took, f.polled.Sub(f.began))
			mib, err := peakMemory(process.Pid)
			peak = max(peak, mib)
			return err
		})
		if err != nil {
			return 0, err
		}
		if n := f.asked.Load(); n > 0 {
			return 0, fmt.Errorf("it made %d requests to AWS before it had an event", n)
		}
	}
	b.record("poll "+handler, p50(took))
	return peak, nil
}

// request measures the first request that a process answers, for which it reads the deployment's secret.
func (b *bench) request(ctx context.Context, program string) error {
	const event = `{"resource":"/v1/health","path":"/v1/health","httpMethod":"GET","headers":{"Host":"localhost"},"requestContext":{"requestId":"r"}}`
	var took []time.Duration
	for range b.of(300) / 10 {
		f := &function{event: event, answered: make(chan answer, 1)}
		err := f.run(ctx, program, deploy.Discovery, func(*os.Process) error {
			a := <-f.answered
			took = append(took, a.took)
			if !bytes.Contains(a.body, []byte(`"statusCode":200`)) {
				return fmt.Errorf("it answers %s", a.body)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if n := f.asked.Load(); n != 2 { // the secret's newest version and the one before
			return fmt.Errorf("it made %d requests to AWS; reading the secret takes 2", n)
		}
	}
	b.record("first", p50(took))
	return nil
}

func (b *bench) pack(ctx context.Context, arch string) (pack.Agent, error) {
	result, diags, err := pack.Pack(ctx, b.agent, pack.Options{Arch: arch, Out: filepath.Join(b.dir, arch)})
	if err != nil || diags.HasErrors() || len(result.Agents) != 1 {
		return pack.Agent{}, fmt.Errorf("packing %s: %d agents, %w\n%s", b.agent, len(result.Agents), err, diags)
	}
	return result.Agents[0], nil
}

// unzip writes the program in an archive to a file.
func unzip(archive, to string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	from, err := z.Open("bootstrap")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, from.Close(), f.Close())
}

// function is one process of a function with its surroundings: the Runtime API and, as far as one secret, AWS.
type function struct {
	event    string      // for the first poll; with none it waits
	answered chan answer // to the event

	began, polled time.Time // the process was started, it asked for its first event
	ready         chan struct{}
	asked         atomic.Int64 // requests to AWS
}

type answer struct {
	took time.Duration
	body []byte
}

// run starts the process and, once it has asked for an event, calls do. Then it ends the process.
func (f *function) run(ctx context.Context, program, handler string, do func(*os.Process) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f.ready = make(chan struct{})
	api := httptest.NewServer(f)
	defer api.Close()
	var log strings.Builder
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = []string{
		"_HANDLER=" + handler, "AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(api.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME=bench",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "AWS_LAMBDA_LOG_GROUP_NAME=bench", "AWS_ENDPOINT_URL=" + api.URL,
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench",
		deploy.EnvSessions + "=sessions", deploy.EnvEvents + "=events", deploy.EnvControl + "=control", deploy.EnvBucket + "=bench",
		deploy.EnvMachine + "=arn:aws:states:us-east-1:123456789012:stateMachine:bench",
		deploy.EnvSecret + "=arn:aws:secretsmanager:us-east-1:123456789012:secret:bench",
	}
	f.began = time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended, done := make(chan struct{}), make(chan error, 1)
	var state error
	go func() {
		state = cmd.Wait()
		close(ended)
	}()
	go func() {
		<-f.ready
		done <- do(cmd.Process)
	}()
	select {
	case err := <-done:
		cancel() // kills the process
		<-ended
		return err
	case <-ended:
		return fmt.Errorf("the process ended: %w\n%s", cmp.Or(context.Cause(ctx), state, errors.New("all is done")), log.String())
	}
}

// ServeHTTP answers one process, which asks one thing at a time.
func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	const runtimeAPI = "/2018-06-01/runtime/invocation/"
	path, ok := strings.CutPrefix(r.URL.Path, runtimeAPI)
	switch {
	case !ok:
		f.asked.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, `{"SecretString":"{\"bearer:default\":\"bench\"}"}`) // a process that has ended is noticed elsewhere
	case path == "next" && f.polled.IsZero():
		f.polled = now
		close(f.ready)
		if f.event == "" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "bench")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(now.Add(patience).UnixMilli(), 10))
		_, _ = io.WriteString(w, f.event)
	case path == "next":
		<-r.Context().Done()
	default:
		body, _ := io.ReadAll(r.Body)
		f.answered <- answer{took: now.Sub(f.polled), body: body}
		w.WriteHeader(http.StatusAccepted)
	}
}

// peakMemory returns the most memory that a process has taken so far, in MiB.
func peakMemory(pid int) (float64, error) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		return 0, errors.New("the kernel does not tell how much memory a process has taken")
	}
	kib, err := strconv.ParseFloat(string(peak[1]), 64)
	return kib / 1024, err
}
