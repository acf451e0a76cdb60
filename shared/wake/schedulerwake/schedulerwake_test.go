package schedulerwake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/clock"
	"github.com/bdk-lambda/bdk/shared/wake/schedulerwake"
)

// service keeps schedules as EventBridge Scheduler does, as far as an alarm needs it.
type service struct {
	mu     sync.Mutex
	made   map[string]map[string]any
	status int // of all answers; 0: as it should be
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	name := strings.TrimPrefix(r.URL.Path, "/schedules/")
	answer := func(status int, kind string) {
		w.Header().Set("X-Amzn-Errortype", kind)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"Message":%q}`, kind)
	}
	switch _, exists := s.made[name]; {
	case s.status != 0:
		answer(s.status, "InternalServerException")
	case r.Method == "DELETE" && r.URL.Query().Get("groupName") != "agent", !regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`).MatchString(name):
		answer(400, "ValidationException")
	case r.Method == "DELETE" && !exists:
		answer(404, "ResourceNotFoundException")
	case r.Method == "DELETE":
		delete(s.made, name)
		_, _ = w.Write([]byte("{}"))
	case exists:
		answer(409, "ConflictException")
	default:
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			answer(400, "ValidationException")
			return
		}
		s.made[name] = in
		_, _ = w.Write([]byte(`{"ScheduleArn":"arn"}`))
	}
}

func open(t *testing.T, now time.Time) (*schedulerwake.Alarm, *service) {
	t.Helper()
	s := &service{made: map[string]map[string]any{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := schedulerwake.NewClient(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	})
	return schedulerwake.New(client, schedulerwake.Config{Group: "agent", Queue: "arn:queue", Role: "arn:role", Clock: clock.Fixed(now)}), s
}

func TestAlarms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 13, 54, 10, 0, time.UTC)
	alarm, s := open(t, now)
	for id, tc := range map[string]struct {
		at   time.Time
		want string
	}{
		"rem_past":   {now.Add(-time.Hour), "at(2026-12-01T13:55:00)"},
		"rem_now":    {now, "at(2026-12-01T13:55:00)"},
		"rem_soon":   {now.Add(45 * time.Second), "at(2026-12-01T13:55:00)"},
		"rem_later":  {now.Add(51 * time.Second), "at(2026-12-01T13:56:00)"},
		"rem_whole":  {time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC), "at(2026-12-02T09:00:00)"},
		"rem_zone":   {time.Date(2026, 12, 2, 9, 0, 0, 0, time.FixedZone("", 3600)), "at(2026-12-02T08:00:00)"},
		"rem_x/#?%é": {time.Date(2027, 12, 31, 23, 59, 1, 0, time.UTC), "at(2028-01-01T00:00:00)"},
	} {
		for range 2 { // the second time it is there
			if err := alarm.Set(t.Context(), id, tc.at); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.made) != 1 {
			t.Fatalf("%s: there are %d schedules", id, len(s.made))
		}
		for name, got := range s.made {
			ring, err := json.Marshal(schedulerwake.Ring{Reminder: id})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"ActionAfterCompletion": "DELETE", "ClientToken": name, "Description": id, "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
				"GroupName": "agent", "ScheduleExpression": tc.want,
				"Target": map[string]any{
					"Arn": "arn:queue", "RoleArn": "arn:role", "Input": string(ring),
					"RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 900.0, "MaximumRetryAttempts": 3.0},
				},
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -want +got:\n%s", id, d)
			}
		}
		for range 2 {
			if err := alarm.Unset(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	alarm, s := open(t, time.Now())
	s.status = 500
	for name, err := range map[string]error{"set": alarm.Set(t.Context(), "rem_1", time.Now()), "unset": alarm.Unset(t.Context(), "rem_1")} {
		if bdkerr.CodeOf(err) != bdkerr.Unavailable || !strings.Contains(err.Error(), "alarm of rem_1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := alarm.Set(ctx, "rem_1", time.Now()); err == nil {
		t.Error("set without anybody who waits")
	}
}
