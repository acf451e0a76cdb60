// Package stack removes a stack of CloudFormation and tells what of it stays.
package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/bdk-lambda/bdk/shared/clock"
)

const (
	every    = 3 * time.Second  // between two looks at a stack that is being removed
	patience = 30 * time.Minute // until it is gone
	maxPages = 100              // of the list of resources, which has 100 in each
)

// ErrNone is what Find fails with if there is no such stack.
var ErrNone = errors.New("there is no such stack")

// Resource is something that a stack has made.
type Resource struct {
	Type string // AWS::DynamoDB::Table
	Name string // the service's own
}

// Stack is a stack that exists. It is not safe for concurrent use.
type Stack struct {
	client *cloudformation.Client
	clock  clock.Clock
	name   string
	id     string
}

// Find finds a stack by its name, in the account and region of the client. It fails with ErrNone if there is none.
func Find(ctx context.Context, client *cloudformation.Client, clk clock.Clock, name string) (*Stack, error) {
	s := &Stack{client: client, clock: clk, name: name, id: name}
	is, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	s.id = aws.ToString(is.StackId) // names are forgotten with the stack
	return s, nil
}

// describe returns how the stack is.
func (s *Stack) describe(ctx context.Context) (types.Stack, error) {
	out, err := s.client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &s.id})
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "not exist") {
		return types.Stack{}, ErrNone
	}
	if err != nil {
		return types.Stack{}, fmt.Errorf("looking for the stack %s: %w", s.name, err)
	}
	if len(out.Stacks) == 0 {
		return types.Stack{}, ErrNone
	}
	return out.Stacks[0], nil
}

// Kept returns the resources that stay when the stack is removed, in the order of their types and names. Versions of functions are
// none of them: they are gone with their function, whatever the template says.
func (s *Stack) Kept(ctx context.Context) ([]Resource, error) {
	out, err := s.client.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &s.id})
	if err != nil {
		return nil, fmt.Errorf("reading the template of the stack %s: %w", s.name, err)
	}
	var template struct {
		Resources map[string]struct {
			DeletionPolicy string `json:"DeletionPolicy"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.TemplateBody)), &template); err != nil {
		return nil, fmt.Errorf("reading the template of the stack %s: %w", s.name, err)
	}
	all, err := s.resources(ctx)
	if err != nil {
		return nil, err
	}
	var kept []Resource
	for _, r := range all {
		policy := template.Resources[aws.ToString(r.LogicalResourceId)].DeletionPolicy
		if aws.ToString(r.ResourceType) == "AWS::Lambda::Version" {
			continue
		}
		if strings.HasPrefix(policy, "Retain") && r.ResourceStatus != types.ResourceStatusDeleteComplete {
			kept = append(kept, Resource{aws.ToString(r.ResourceType), aws.ToString(r.PhysicalResourceId)})
		}
	}
	slices.SortFunc(kept, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	return kept, nil
}

func (s *Stack) resources(ctx context.Context) ([]types.StackResourceSummary, error) {
	var all []types.StackResourceSummary
	in := &cloudformation.ListStackResourcesInput{StackName: &s.id}
	for range maxPages {
		out, err := s.client.ListStackResources(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing the resources of the stack %s: %w", s.name, err)
		}
		all = append(all, out.StackResourceSummaries...)
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	return all, nil
}

// Delete removes the stack and returns when it is gone. Left is told how many resources are still to be removed whenever that has
// changed. It fails with the stack's own reason, or if it takes more than half an hour.
func (s *Stack) Delete(ctx context.Context, left func(int)) error {
	if _, err := s.client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &s.id}); err != nil {
		return fmt.Errorf("removing the stack %s: %w", s.name, err)
	}
	last := -1
	for range patience / every {
		is, err := s.describe(ctx)
		switch {
		case errors.Is(err, ErrNone), err == nil && is.StackStatus == types.StackStatusDeleteComplete:
			return nil
		case err != nil:
			return err
		case is.StackStatus != types.StackStatusDeleteInProgress && last >= 0: // at first it may be what it was
			return s.failure(ctx, is)
		}
		all, err := s.resources(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, r := range all {
			if r.ResourceStatus != types.ResourceStatusDeleteComplete && r.ResourceStatus != types.ResourceStatusDeleteSkipped {
				n++
			}
		}
		if n != last {
			left(n)
		}
		last = n
		if err := clock.Sleep(ctx, s.clock, every); err != nil {
			return err
		}
	}
	return fmt.Errorf("the stack %s is still being removed after %s", s.name, patience)
}

// failure returns why a stack was not removed: what it says itself, and what it says about its resources.
func (s *Stack) failure(ctx context.Context, is types.Stack) error {
	text := fmt.Sprintf("the stack %s was not removed, it is %s: %s", s.name, is.StackStatus, aws.ToString(is.StackStatusReason))
	all, err := s.resources(ctx)
	if err != nil {
		return fmt.Errorf("%s (%w)", text, err)
	}
	for _, r := range all {
		if r.ResourceStatus == types.ResourceStatusDeleteFailed {
			text += fmt.Sprintf("\n  %s %s: %s", aws.ToString(r.ResourceType), aws.ToString(r.PhysicalResourceId), aws.ToString(r.ResourceStatusReason))
		}
	}
	return errors.New(text)
}
