package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// logEntries are what the log group of the fake holds.
func logEntries() []string {
	return []string{
		`{"time":"2026-01-02T03:04:04Z","type":"platform.start","record":{"requestId":"r"}}`,
		`{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"turn ended","session_id":"ses_1","duration":1234567890,"took":12345678,"note":"two words","slug":"my-agent",` +
			`"Turns":1,"TurnMs":12.5,"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"bdk","Metrics":[{"Name":"Turns","Unit":"Count"},{"Name":"TurnMs"}]}]}}`,
		`{"time":"2026-01-02T03:04:06Z","level":"ERROR","msg":"turn failed","session_id":"ses_2","cause":"out of luck"}`,
		"panic: oh no\n",
		`{"time":"2026-01-02T03:04:08Z","type":"platform.report","record":{"status":"timeout"}}`,
		`{"time":"2026-01-02T03:04:09Z","type":"platform.report","record":{"status":"success"}}`,
		"INIT_START Runtime Version: provided:al2023.v1\tRuntime Version ARN: arn\n",
		"START RequestId: 1 Version: 7\n",
		"END RequestId: 1\n",
		"REPORT RequestId: 1\tDuration: 12.50 ms\n",
		"REPORT RequestId: 2\tDuration: 9000.00 ms\tStatus: timeout\n",
	}
}

// fakeCloudWatch is a CloudWatch Logs with one log group, /bdk/my-agent.
func fakeCloudWatch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		LogGroupName  string `json:"logGroupName"`
		FilterPattern string `json:"filterPattern"`
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case err != nil || r.Header.Get("X-Amz-Target") != "Logs_20140328.FilterLogEvents":
		http.Error(w, `{"__type":"InvalidParameterException"}`, http.StatusBadRequest)
		return
	case in.LogGroupName != "/bdk/my-agent":
		http.Error(w, `{"__type":"ResourceNotFoundException","message":"no such group"}`, http.StatusBadRequest)
		return
	}
	var events []map[string]any
	start := time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC).UnixMilli()
	for i, text := range logEntries() {
		if strings.Contains(text, strings.Trim(in.FilterPattern, `"`)) {
			events = append(events, map[string]any{
				"eventId": fmt.Sprint(i), "timestamp": start + int64(1000*i), "message": text, "logStreamName": "2026/01/02/bdk-my-agent-step1[7]0123",
			})
		}
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"events": events}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func TestLogsOfAServer(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	var after []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a/v1/logs" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("request %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		if after = append(after, r.URL.Query().Get("after")); len(after) == 2 { // the second time it does not go on
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"ok":true,"next":3,"logs":[
			{"n":1,"time":%q,"level":"INFO","message":"long ago"},
			{"n":2,"time":%q,"level":"INFO","message":"of another","attrs":{"session_id":"ses_2"}},
			{"n":3,"time":%q,"level":"WARN","message":"of this","attrs":{"session_id":"ses_1"}}]}`,
			now.Add(-time.Hour).Format(time.RFC3339), now.Format(time.RFC3339), now.Format(time.RFC3339))
	}))
	t.Cleanup(srv.Close)
	got := bdk(t.Context(), []string{"BDK_BEARER_TOKEN=secret"}, "logs", "--url", srv.URL+"/a", "--session", "ses_1", "--follow")
	want := now.Format("2006-01-02T15:04:05.000Z") + " WARN  of this session_id=ses_1\n"
	if got.out != want || got.code != 1 || !strings.Contains(got.err, "403") || strings.Join(after, " ") != "0 3" {
		t.Errorf("got code %d, asked after %q, output %q, want %q; errors %q", got.code, after, got.out, want, got.err)
	}
}
