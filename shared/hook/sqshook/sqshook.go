// Package sqshook carries messages to the subscribers of an agent on AWS: a FIFO queue for each, in which the messages of a session are
// a group.
package sqshook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/bdk-lambda/bdk/shared/hook"
)

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	client *sqs.Client
	queue  func(subscriber string) string

	mu   sync.Mutex
	urls map[string]string // of queues, by subscriber
}

// New returns a sender to subscribers, whose queues have the names that queue returns.
func New(client *sqs.Client, queue func(subscriber string) string) *Sender {
	return &Sender{client: client, queue: queue, urls: map[string]string{}}
}

// Send sends messages, those of a session in their order, and returns the ones that may not have been sent, with the first reason. A message
// that is sent again within five minutes comes once.
func (s *Sender) Send(ctx context.Context, messages []hook.Message) (failed []hook.Message, err error) {
	const most = 10 // in one request
	batches := map[string][][]hook.Message{}
	for _, m := range messages {
		of := batches[m.Subscriber]
		if n := len(of); n == 0 || len(of[n-1]) == most {
			of = append(of, nil)
		}
		of[len(of)-1] = append(of[len(of)-1], m)
		batches[m.Subscriber] = of
	}
	var mu sync.Mutex
	var g errgroup.Group
	for subscriber, of := range batches {
		g.Go(func() error {
			for i, batch := range of {
				lost, err := s.send(ctx, subscriber, batch)
				if err == nil {
					continue
				}
				for _, rest := range of[i+1:] { // what comes later must not be first
					lost = append(lost, rest...)
				}
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, lost...)
				return err
			}
			return nil
		})
	}
	return failed, g.Wait()
}

// send sends one batch of different sessions.
func (s *Sender) send(ctx context.Context, subscriber string, batch []hook.Message) ([]hook.Message, error) {
	url, err := s.url(ctx, subscriber)
	if err != nil {
		return batch, err
	}
	in := &sqs.SendMessageBatchInput{QueueUrl: &url}
	for i, m := range batch {
		body, err := json.Marshal(m)
		if err != nil {
			return batch, fmt.Errorf("encoding a message: %w", err)
		}
		once := fmt.Sprint(m.SessionID, ".", m.Indexes[0], ".", m.Indexes[len(m.Indexes)-1])
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), MessageGroupId: &m.SessionID, MessageDeduplicationId: &once,
		})
	}
	out, err := s.client.SendMessageBatch(ctx, in)
	if err != nil {
		return batch, fmt.Errorf("sending to the queue of %s: %w", subscriber, err)
	}
	var lost []hook.Message
	for _, f := range out.Failed {
		i, convErr := strconv.Atoi(aws.ToString(f.Id))
		if convErr != nil || i < 0 || i >= len(batch) {
			return batch, fmt.Errorf("sending to the queue of %s: an answer about %q, which was not sent", subscriber, aws.ToString(f.Id))
		}
		lost = append(lost, batch[i])
		err = errors.Join(err, fmt.Errorf("sending to the queue of %s: %s: %s", subscriber, aws.ToString(f.Code), aws.ToString(f.Message)))
	}
	return lost, err
}

// url returns the address of a subscriber's queue.
func (s *Sender) url(ctx context.Context, subscriber string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if url, ok := s.urls[subscriber]; ok {
		return url, nil
	}
	out, err := s.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(s.queue(subscriber))})
	if err != nil {
		return "", fmt.Errorf("finding the queue of %s: %w", subscriber, err)
	}
	s.urls[subscriber] = aws.ToString(out.QueueUrl)
	return s.urls[subscriber], nil
}
