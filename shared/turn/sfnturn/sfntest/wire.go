package sfntest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config returns the configuration of clients of the server. Their requests do not leave the process, so that they may be
// made under testing/synctest. To go through the network, serve the server and set another BaseEndpoint and HTTPClient.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String("http://states.test"),
		HTTPClient:   &http.Client{Transport: direct{s}},
	}
}

// direct hands requests to a handler.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// problem is an error of the service.
type problem struct{ code, message string }

func problemf(code, format string, args ...any) *problem {
	return &problem{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one request of the service's JSON protocol.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	op, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AWSStepFunctions.")
	var out any
	fault := problemf("UnknownOperationException", "%s %q is not known here", r.Method, r.Header.Get("X-Amz-Target"))
	switch {
	case err != nil:
		fault = problemf("SerializationException", "%v", err)
	case ok && r.Method == "POST":
		out, fault = s.do(op, body)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if fault != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": fault.code, "message": fault.message}
	}
	_ = json.NewEncoder(w).Encode(out) //nolint:errchkjson // a client that went away; all values marshal
}

type object = map[string]any

func (s *Server) do(op string, body []byte) (any, *problem) {
	switch op {
	case "StartExecution":
		return decoded(body, s.startExecution)
	case "StopExecution":
		return decoded(body, s.stopExecution)
	case "DescribeExecution":
		return decoded(body, s.describeExecution)
	case "RedriveExecution":
		return decoded(body, s.redriveExecution)
	case "SendTaskSuccess":
		return decoded(body, s.sendTaskSuccess)
	case "SendTaskFailure":
		return decoded(body, s.sendTaskFailure)
	}
	return nil, problemf("UnknownOperationException", "%s is not known here", op)
}

// decoded calls do with a request. Fields that are not known here are refused.
func decoded[In any](body []byte, do func(In) (object, *problem)) (object, *problem) {
	var in In
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, problemf("SerializationException", "%v", err)
	}
	return do(in)
}

type startInput struct {
	StateMachineArn string `json:"stateMachineArn"`
	Name            string `json:"name"`
	Input           string `json:"input"`
}

func (s *Server) startExecution(in startInput) (object, *problem) {
	var data any
	switch {
	case in.StateMachineArn != Machine:
		return nil, problemf("StateMachineDoesNotExist", "%q does not exist", in.StateMachineArn)
	case !validName.MatchString(in.Name):
		return nil, problemf("InvalidName", "%q is no name of an execution", in.Name)
	case len(in.Input) > maxData || json.Unmarshal([]byte(in.Input), &data) != nil:
		return nil, problemf("InvalidExecutionInput", "the input is no JSON, or too long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.executions[in.Name]
	switch {
	case x == nil:
		x = &execution{name: in.Name, input: in.Input, at: s.machine.StartAt, data: data}
		x.Began = s.opts.Clock.Now()
		s.executions[in.Name] = x
		s.run(x)
	case x.Status != "RUNNING" || x.input != in.Input:
		return nil, problemf("ExecutionAlreadyExists", "%s", x.arn())
	}
	return object{"executionArn": x.arn(), "startDate": seconds(x.Began)}, nil
}

// find returns an execution by its ARN. The caller holds mu.
func (s *Server) find(arn string) (*execution, *problem) {
	for _, x := range s.executions {
		if x.arn() == arn {
			return x, nil
		}
	}
	return nil, problemf("ExecutionDoesNotExist", "%q does not exist", arn)
}

type stopInput struct {
	ExecutionArn string `json:"executionArn"`
	Error        string `json:"error"`
	Cause        string `json:"cause"`
}

// stopExecution leaves an execution that has ended as it is.
func (s *Server) stopExecution(in stopInput) (object, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, fault := s.find(in.ExecutionArn)
	if fault != nil {
		return nil, fault
	}
	if x.Status == "RUNNING" {
		s.leave(x, "ABORTED", Fault{in.Error, in.Cause})
		x.cancel()
	}
	return object{"stopDate": seconds(x.Ended)}, nil
}

type executionInput struct {
	ExecutionArn string `json:"executionArn"`
}

func (s *Server) describeExecution(in executionInput) (object, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, fault := s.find(in.ExecutionArn)
	if fault != nil {
		return nil, fault
	}
	out := object{
		"executionArn": x.arn(), "stateMachineArn": Machine, "name": x.name, "status": x.Status, "startDate": seconds(x.Began),
		"input": x.input, "redriveCount": x.redrives,
	}
	if x.Status != "RUNNING" {
		out["stopDate"] = seconds(x.Ended)
	}
	if x.Error != "" {
		out["error"] = x.Error
	}
	if x.Cause != "" {
		out["cause"] = x.Cause
	}
	return out, nil
}

type redriveInput struct {
	ExecutionArn string `json:"executionArn"`
	ClientToken  string `json:"clientToken"`
}

// redriveExecution runs an execution again from the state in which it ended.
func (s *Server) redriveExecution(in redriveInput) (object, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, fault := s.find(in.ExecutionArn)
	if fault != nil {
		return nil, fault
	}
	if x.Status == "RUNNING" || x.Status == "SUCCEEDED" {
		return nil, problemf("ExecutionNotRedrivable", "the execution is %s", x.Status)
	}
	x.redrives++
	s.run(x)
	return object{"redriveDate": seconds(s.opts.Clock.Now())}, nil
}

type successInput struct {
	TaskToken string `json:"taskToken"`
	Output    string `json:"output"`
}

func (s *Server) sendTaskSuccess(in successInput) (object, *problem) {
	var out any
	if len(in.Output) > maxData || json.Unmarshal([]byte(in.Output), &out) != nil {
		return nil, problemf("InvalidOutput", "the output is no JSON, or too long")
	}
	return s.answer(in.TaskToken, answer{out: out})
}

type failureInput struct {
	TaskToken string `json:"taskToken"`
	Error     string `json:"error"`
	Cause     string `json:"cause"`
}

func (s *Server) sendTaskFailure(in failureInput) (object, *problem) {
	return s.answer(in.TaskToken, answer{fault: &Fault{Name: in.Error, Cause: in.Cause}})
}

func (s *Server) answer(token string, a answer) (object, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[token]
	switch {
	case t == nil:
		return nil, problemf("InvalidToken", "the token was not issued here")
	case t.closed:
		return nil, problemf(s.opts.Closed, "the task has timed out or was closed already")
	}
	t.closed = true
	t.answer <- a
	return object{}, nil
}

// seconds returns t as the protocol has it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
