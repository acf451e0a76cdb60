package awshost_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/internal/dynamotest"
)

// TestOrigins: pages of the origins in the environment may read answers, also refusals.
func TestOrigins(t *testing.T) {
	t.Parallel()
	c := newCloud(t, dynamotest.Start(t))
	api := func(list string) *client {
		h, err := c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvOrigins: list}).API(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return &client{t, h}
	}
	for _, tc := range []struct{ list, origin, want string }{
		{"", "https://app.example.com", ""},
		{"*", "https://app.example.com", "*"},
		{"https://app.example.com,http://localhost:5173", "http://localhost:5173", "http://localhost:5173"},
		{"https://app.example.com,http://localhost:5173", "https://evil.example", ""},
	} {
		for token, status := range map[string]int{"": 401, "ann-secret": 200} {
			r := httptest.NewRequest("GET", "/workshop/v1/info", nil)
			r.Header.Set("Origin", tc.origin)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			api(tc.list).api.ServeHTTP(w, r)
			if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != status || got != tc.want {
				t.Errorf("%q for %s with the token %q: got %d, readable by %q; want %d and %q", tc.list, tc.origin, token, w.Code, got, status, tc.want)
			}
		}
	}
	_, err := c.functionWith(&wire{cloud: c}, map[string]string{deploy.EnvOrigins: "app.example.com"}).API(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), deploy.EnvOrigins) {
		t.Errorf("what is no origin: %v", err)
	}
}
