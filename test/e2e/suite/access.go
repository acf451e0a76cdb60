package suite

import (
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// everyRouteNeedsACaller walks the table of routes: what is not public answers 401 to nobody.
func everyRouteNeedsACaller(t *testing.T, target Target) {
	target.twoPrincipals(t)
	s := target.Ann(t).Start("hello")
	nobody := target.client(t, "")
	checked := 0
	for _, r := range httpapi.Routes() {
		if r.Access == httpapi.Public || r.Dev {
			continue
		}
		checked++
		for _, id := range []string{s.ID, "ses_unknown"} {
			path := strings.ReplaceAll(r.Pattern, "{id}", id)
			if r.RPC { // has faults of its own form, see mcpMessages
				if a := nobody.Do(r.Method, path, ""); a.Status != 401 {
					t.Errorf("%s %s: %d", r.Method, path, a.Status)
				}
				continue
			}
			nobody.Do(r.Method, path, "").Refused(r.Method+" "+path, 401, "unauthenticated")
			nobody.Do(r.Method, path, "", "Authorization", "Bearer wrong").Refused(r.Method+" "+path+" with a wrong token", 401, "unauthenticated")
		}
	}
	if checked < 9 {
		t.Errorf("only %d routes need a caller", checked)
	}
}

// sessionsBelongToTheirUser: no route gives a session of one principal to another.
func sessionsBelongToTheirUser(t *testing.T, target Target) {
	target.twoPrincipals(t)
	s := target.Ann(t).Start("nap")
	bob := target.client(t, "bob")
	for _, r := range httpapi.Routes() {
		if r.Access != httpapi.Owner {
			continue
		}
		path := strings.ReplaceAll(r.Pattern, "{id}", s.ID)
		body := ""
		if r.Method == "POST" {
			body = encode(map[string]any{"message": "mine", "continuationToken": s.Token})
		}
		bob.Do(r.Method, path, body).Refused(r.Method+" "+path, 403, "forbidden")
	}
	if a := bob.Do("GET", "/v1/sessions?limit=1000", ""); strings.Contains(a.Raw, s.ID) {
		t.Error("another principal's session is listed")
	}
	s.Completed()
	s.Usable()
}
