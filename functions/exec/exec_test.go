package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/bdk-lambda/bdk/functions/exec"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/exec/lambdaexec"
)

// TestAnswers: a fault is an answer too, a panic is not; what was run and what it printed is in no log.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		run         func(lambdaexec.Request) lambdaexec.Answer
		answer, log string
		failed      bool
	}{
		"a result": {
			run: func(lambdaexec.Request) lambdaexec.Answer {
				return lambdaexec.Answer{Stdout: []byte("hidden"), ExitCode: 2, Stored: 7}
			},
			answer: `{"stdout":"aGlkZGVu","exitCode":2,"tookMs":0,"stored":7}`, log: `"exit_code":2,"killed":"","took_ms":0,"changed_bytes":7}`,
		},
		"a fault": {
			run: func(lambdaexec.Request) lambdaexec.Answer {
				return lambdaexec.Answer{Fault: &lambdaexec.Fault{Code: bdkerr.InvalidRequest, Message: "why"}}
			},
			answer: `{"exitCode":0,"tookMs":0,"fault":{"code":"invalid_request","message":"why"}}`, log: `"level":"ERROR","msg":"invocation","function":"exec","error":"why"`,
		},
		"a panic": {run: func(lambdaexec.Request) lambdaexec.Answer { panic("at the disco") }, log: "at the disco", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			h := exec.New(func(_ context.Context, req lambdaexec.Request) lambdaexec.Answer { return tc.run(req) },
				slog.New(slog.NewJSONHandler(&log, nil)))
			got, err := lambda.NewHandler(h).Invoke(t.Context(), []byte(`{"args":["hidden"],"stdin":{"data":"aGlkZGVu"},"env":{"hidden":"hidden"}}`))
			if (err != nil) != tc.failed || string(bytes.TrimSpace(got)) != tc.answer {
				t.Errorf("got %s, %v", got, err)
			}
			if text := log.String(); !strings.Contains(text, tc.log) || strings.Contains(text, "hidden") || !json.Valid([]byte(text)) {
				t.Errorf("logged %s", text)
			}
		})
	}
}
