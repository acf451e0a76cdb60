// Package stacktest is an account of AWS with one stack, for tests of what removes it.
package stacktest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// The account and region of every Account.
const (
	ID     = "123456789012"
	Region = "eu-west-1"
)

// Resource is one of the stack. Its logical id is its name with "Id" behind it.
type Resource struct {
	Type, Name, Status, Reason string
}

// Account has a stack. It is used by one test; its fields are for before it is used.
type Account struct {
	Stack     string     // name
	Template  string     // JSON
	Resources []Resource // in pages of two
	States    []string   // that the stack has after it was deleted: one at each look, the last for good. GONE: it is not known
	Reason    string     // of the state
	Refuses   string     // an action that fails

	mu      sync.Mutex
	actions []string
	deleted bool
}

// Actions returns which actions were asked for, each once.
func (a *Account) Actions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(a.actions)))
}

// Serve serves the account until the test ends and returns what has the SDK use it.
func (a *Account) Serve(tb testing.TB) []func(*config.LoadOptions) error {
	tb.Helper()
	srv := httptest.NewServer(a)
	tb.Cleanup(srv.Close)
	return []func(*config.LoadOptions) error{
		config.WithBaseEndpoint(srv.URL), config.WithRegion(Region), config.WithRetryMaxAttempts(1),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("key", "secret", "")),
	}
}

// Config is what Serve has the SDK use.
func (a *Account) Config(tb testing.TB) aws.Config {
	tb.Helper()
	cfg, err := config.LoadDefaultConfig(tb.Context(), a.Serve(tb)...)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// ServeHTTP answers as AWS does.
func (a *Account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	action, name := r.FormValue("Action"), r.FormValue("StackName")
	a.actions = append(a.actions, action)
	id := "arn:aws:cloudformation:" + Region + ":" + ID + ":stack/" + a.Stack + "/1"
	switch {
	case action == a.Refuses:
		refuse(w, "AccessDenied", "you may not")
	case action == "GetCallerIdentity":
		answer(w, action, "<Account>"+ID+"</Account>")
	case name != id && (name != a.Stack || a.deleted):
		refuse(w, "ValidationError", "Stack with id "+name+" does not exist")
	case action == "DescribeStacks":
		a.describe(w, id)
	case action == "GetTemplate":
		answer(w, action, "<TemplateBody>"+escape(a.Template)+"</TemplateBody>")
	case action == "ListStackResources":
		a.list(w, r.FormValue("NextToken"))
	case action == "DeleteStack":
		a.deleted = true
		answer(w, action, "")
	default:
		refuse(w, "InvalidAction", action)
	}
}

func (a *Account) describe(w http.ResponseWriter, id string) {
	state := "CREATE_COMPLETE"
	if a.deleted && len(a.States) > 0 {
		state = a.States[0]
		a.States = a.States[min(1, len(a.States)-1):]
	}
	if state == "GONE" {
		refuse(w, "ValidationError", "Stack with id "+id+" does not exist")
		return
	}
	answer(w, "DescribeStacks", fmt.Sprintf("<Stacks><member><StackId>%s</StackId><StackName>%s</StackName><StackStatus>%s</StackStatus>"+
		"<StackStatusReason>%s</StackStatusReason></member></Stacks>", id, a.Stack, state, escape(a.Reason)))
}

func (a *Account) list(w http.ResponseWriter, from string) {
	const page = 2
	at, next := 0, ""
	if from != "" {
		_, _ = fmt.Sscan(from, &at) // it is ours
	}
	to := min(at+page, len(a.Resources))
	if to < len(a.Resources) {
		next = fmt.Sprintf("<NextToken>%d</NextToken>", to)
	}
	var b bytes.Buffer
	for _, r := range a.Resources[at:to] {
		fmt.Fprintf(&b, "<member><LogicalResourceId>%sId</LogicalResourceId><PhysicalResourceId>%s</PhysicalResourceId><ResourceType>%s</ResourceType>"+
			"<ResourceStatus>%s</ResourceStatus><ResourceStatusReason>%s</ResourceStatusReason></member>", r.Name, r.Name, r.Type, r.Status, escape(r.Reason))
	}
	answer(w, "ListStackResources", "<StackResourceSummaries>"+b.String()+"</StackResourceSummaries>"+next)
}

func answer(w http.ResponseWriter, action, result string) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, "<%sResponse><%sResult>%s</%sResult></%sResponse>", action, action, result, action, action)
}

func refuse(w http.ResponseWriter, code, message string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>", code, escape(message))
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes all
	return b.String()
}

// Clock is a clock whose time passes as soon as somebody waits for it. The zero value begins at a time.
type Clock struct {
	mu     sync.Mutex
	passed time.Duration
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(1, 0).Add(c.passed)
}

// After lets d pass.
func (c *Clock) After(d time.Duration) (<-chan time.Time, func() bool) {
	c.mu.Lock()
	c.passed += d
	c.mu.Unlock()
	now := make(chan time.Time, 1)
	now <- c.Now()
	return now, func() bool { return false }
}

// Passed returns for how long was waited.
func (c *Clock) Passed() time.Duration { return c.Now().Sub(time.Unix(1, 0)) }
