package stack_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/bdkpack/cli/stack"
	"github.com/bdk-lambda/bdk/bdkpack/cli/stack/stacktest"
)

func account() *stacktest.Account {
	return &stacktest.Account{
		Stack: "bdk-a",
		Template: `{"Resources":{"eventsId":{"DeletionPolicy":"Retain"},"blobsId":{"DeletionPolicy":"RetainExceptOnCreate"},` +
			`"stepId":{},"secretId":{"DeletionPolicy":"Delete"},"lostId":{"DeletionPolicy":"Retain"},"oneId":{"DeletionPolicy":"Retain"}}}`,
		Resources: []stacktest.Resource{
			{Type: "AWS::S3::Bucket", Name: "blobs", Status: "CREATE_COMPLETE"},
			{Type: "AWS::Lambda::Function", Name: "step", Status: "CREATE_COMPLETE"},
			{Type: "AWS::SecretsManager::Secret", Name: "secret", Status: "CREATE_COMPLETE"},
			{Type: "AWS::DynamoDB::Table", Name: "lost", Status: "DELETE_COMPLETE"},
			{Type: "AWS::Lambda::Version", Name: "one", Status: "CREATE_COMPLETE"},
			{Type: "AWS::DynamoDB::Table", Name: "events", Status: "CREATE_COMPLETE"},
		},
	}
}

func find(t *testing.T, a *stacktest.Account, clk *stacktest.Clock, name string) (*stack.Stack, error) {
	t.Helper()
	return stack.Find(t.Context(), cloudformation.NewFromConfig(a.Config(t)), clk, name)
}

func TestWhatStaysIsWhatTheTemplateRetains(t *testing.T) {
	t.Parallel()
	s, err := find(t, account(), new(stacktest.Clock), "bdk-a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Kept(t.Context())
	want := []stack.Resource{{Type: "AWS::DynamoDB::Table", Name: "events"}, {Type: "AWS::S3::Bucket", Name: "blobs"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAnotherStackIsNotFound(t *testing.T) {
	t.Parallel()
	if _, err := find(t, account(), new(stacktest.Clock), "bdk-b"); !errors.Is(err, stack.ErrNone) {
		t.Errorf("got %v", err)
	}
	a := account()
	a.Refuses = "DescribeStacks"
	if _, err := find(t, a, new(stacktest.Clock), "bdk-a"); err == nil || errors.Is(err, stack.ErrNone) || !strings.Contains(err.Error(), "you may not") {
		t.Errorf("got %v", err)
	}
}

func TestDeleteEndsWithTheStack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states  []string
		reason  string
		refuses string
		want    string // part of the error, "" for none
		passed  time.Duration
	}{
		"deleted":        {states: []string{"DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"}, passed: 6 * time.Second},
		"forgotten":      {states: []string{"DELETE_IN_PROGRESS", "GONE"}, passed: 3 * time.Second},
		"begins late":    {states: []string{"CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"}, passed: 6 * time.Second},
		"failed before":  {states: []string{"DELETE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"}, passed: 6 * time.Second},
		"fails":          {states: []string{"DELETE_IN_PROGRESS", "DELETE_FAILED"}, reason: "the following resource(s) failed", want: "it is DELETE_FAILED: the following resource(s) failed\n  AWS::S3::Bucket full: not empty", passed: 3 * time.Second},
		"does not begin": {states: []string{"CREATE_COMPLETE"}, want: "it is CREATE_COMPLETE", passed: 3 * time.Second},
		"does not end":   {states: []string{"DELETE_IN_PROGRESS"}, want: "still being removed after 30m", passed: 30 * time.Minute},
		"may not":        {refuses: "DeleteStack", want: "you may not"},
		"may not look":   {states: []string{"DELETE_IN_PROGRESS"}, refuses: "ListStackResources", want: "you may not"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, clk := account(), new(stacktest.Clock)
			a.States, a.Reason, a.Refuses = c.states, c.reason, c.refuses
			a.Resources = append(a.Resources, stacktest.Resource{Type: "AWS::S3::Bucket", Name: "full", Status: "DELETE_FAILED", Reason: "not empty"})
			s, err := find(t, a, clk, "bdk-a")
			if err != nil {
				t.Fatal(err)
			}
			var left []int
			err = s.Delete(t.Context(), func(n int) { left = append(left, n) })
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if clk.Passed() != c.passed {
				t.Errorf("it took %s, want %s", clk.Passed(), c.passed)
			}
			if want := []int{6}; c.refuses == "" && !cmp.Equal(want, left) {
				t.Errorf("left were %v, want %v", left, want)
			}
		})
	}
}
