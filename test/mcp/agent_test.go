package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/host/localhost"
	"github.com/bdk-lambda/bdk/shared/launch"
)

// png is a picture of one pixel.
var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82")

// answering returns a tool that answers with what f returns.
func answering(name string, f func() (any, error)) bdk.NamedTool {
	return bdk.NamedTool{Name: name, Source: "bot/tools/" + name + ".go", Tool: bdk.DefineTool(
		bdk.ToolSpec{Description: "What the suite looks for.", Effect: bdk.Read},
		func(context.Context, *bdk.Call, struct{}) (any, error) { return f() },
	)}
}

// parts returns a function that returns an output of parts.
func parts(content ...bdk.Content) func() (any, error) {
	return func() (any, error) { return bdk.Output{Content: content}, nil }
}

// agent is an agent with the tools that the suite calls.
func agent() bdk.Project {
	image := bdk.Content{Data: png, MIMEType: "image/png"}
	file := bdk.Content{Data: []byte("content"), MIMEType: "text/plain"}
	return bdk.Project{Slug: "sample", Agent: bdk.Agent{Description: "It is looked at."}, Instructions: "Say hello.", Tools: []bdk.NamedTool{
		answering("test_audio_content", parts(bdk.Content{Data: []byte("RIFF"), MIMEType: "audio/wav"})),
		answering("test_embedded_resource", parts(file)),
		answering("test_error_handling", func() (any, error) { return nil, errors.New("this tool always fails") }),
		answering("test_image_content", parts(image)),
		answering("test_multiple_content_types", parts(bdk.Content{Text: "several"}, image, file)),
		answering("test_simple_text", func() (any, error) { return "This is a simple text response for testing.", nil }),
	}}
}

// serve starts a host with agents within the test, which ends with it, and returns the URL of the first.
func serve(t *testing.T, project bdk.Project, script string, more ...bdk.Project) string {
	t.Helper()
	url, _ := start(t, project, script, more...)
	return url
}

// start does what serve does, and returns what stops the host.
func start(t *testing.T, project bdk.Project, script string, more ...bdk.Project) (url string, stop func()) {
	t.Helper()
	dir := t.TempDir()
	model := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(model, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	out, line := io.Pipe()
	program := localhost.Program{
		Projects: append([]bdk.Project{project}, more...),
		Config:   launch.Config{StateRoot: filepath.Join(dir, "state"), Banner: "{url}\n", Roots: map[string]string{}},
		Stdout:   line, Stderr: io.Discard,
		Getenv: func(name string) string { return map[string]string{"BDK_MODEL": "scripted:" + model}[name] },
	}
	for _, p := range program.Projects {
		program.Config.Roots[p.Slug] = dir
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := program.Run(ctx)
		_ = line.CloseWithError(io.EOF)
		ended <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the host ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	banner, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("the host did not start: %v", err)
	}
	return strings.TrimSpace(banner) + "/" + project.Slug, stop
}
