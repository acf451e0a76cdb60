// The bootstrap of a deployment that shows what Lambda functions see, and that does what the tests of package awsloop ask.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	switch os.Getenv("_HANDLER") {
	case "stream":
		lambda.Start(stream)
	case "sessions", "discovery":
		lambda.Start(answer)
	default:
		lambda.Start(func() {})
	}
}

type seen struct {
	Env   map[string]string
	Dir   string
	Event json.RawMessage
}

func look(event json.RawMessage) string {
	s := seen{Env: map[string]string{}, Event: event}
	s.Dir, _ = os.Getwd()
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		s.Env[name] = value
	}
	raw, _ := json.Marshal(s)
	return string(raw)
}

func answer(ctx context.Context, event json.RawMessage) (events.APIGatewayProxyResponse, error) {
	var r events.APIGatewayProxyRequest
	_ = json.Unmarshal(event, &r)
	ms, _ := strconv.Atoi(r.QueryStringParameters["ms"])
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return events.APIGatewayProxyResponse{StatusCode: 200, Body: look(event), MultiValueHeaders: map[string][]string{"X-Two": {"a", "b"}, "Content-Type": {"application/json"}}}, nil
}

// stream writes a line at once and another one after each of ms.
func stream(ctx context.Context, event json.RawMessage) (*events.APIGatewayProxyStreamingResponse, error) {
	var r events.APIGatewayProxyRequest
	_ = json.Unmarshal(event, &r)
	ms, _ := strconv.Atoi(r.QueryStringParameters["ms"])
	read, write := io.Pipe()
	go func() {
		io.WriteString(write, look(event)+"\n")
		for range 3 {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			io.WriteString(write, "tick\n")
		}
		write.Close()
	}()
	return &events.APIGatewayProxyStreamingResponse{StatusCode: 201, Headers: map[string]string{"Content-Type": "application/x-ndjson"}, MultiValueHeaders: map[string][]string{"X-Two": {"a", "b"}}, Body: read}, nil
}
