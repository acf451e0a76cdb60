package awssecret_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

const arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:agent/demo-AbCdEf"

// service is Secrets Manager with one secret, as far as the tests need it: versions, their stages, and its errors.
type service struct {
	url string

	mu       sync.Mutex
	versions map[string]value    // by version id
	stages   map[string]string   // version ids by stage
	asked    []string            // stages, in order of the requests
	faults   map[string]response // what is answered instead, by stage
}

type value struct {
	SecretString *string
	SecretBinary []byte
}

type response struct {
	status int
	kind   string // of the error; "" cuts the connection
	text   string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{versions: make(map[string]value), stages: make(map[string]string), faults: make(map[string]response)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// client returns a client that makes each request once.
func (s *service) client() *secretsmanager.Client {
	return secretsmanager.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &s.url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, func(o *secretsmanager.Options) { o.Retryer = aws.NopRetryer{} })
}

// put stores a new version the way an operator does.
func (s *service) put(t *testing.T, in secretsmanager.PutSecretValueInput) {
	t.Helper()
	in.SecretId = aws.String(arn)
	if _, err := s.client().PutSecretValue(t.Context(), &in); err != nil {
		t.Fatal(err)
	}
}

func (s *service) fail(stage string, r response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[stage] = r
}

// ServeHTTP speaks AWS JSON 1.1.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		value

		Secret  string `json:"SecretId"`
		Version string `json:"VersionId"`
		Stage   string `json:"VersionStage"`
		Token   string `json:"ClientRequestToken"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &in) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		fail(w, response{400, "SerializationException", ""})
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		fail(w, response{400, "MissingAuthenticationTokenException", "Missing Authentication Token"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Header.Get("X-Amz-Target") {
	case "secretsmanager.GetSecretValue":
		if in.Stage == "" && in.Version == "" {
			in.Stage = "AWSCURRENT"
		}
		s.get(w, in.Secret, in.Version, in.Stage)
	case "secretsmanager.PutSecretValue":
		s.store(in.Token, in.value)
		answer(w, 200, map[string]any{"ARN": arn, "Name": "agent/demo", "VersionId": in.Token, "VersionStages": []string{"AWSCURRENT"}})
	default:
		fail(w, response{400, "UnknownOperationException", ""})
	}
}

func (s *service) get(w http.ResponseWriter, id, version, stage string) {
	s.asked = append(s.asked, stage)
	if fault, ok := s.faults[stage]; ok {
		fail(w, fault)
		return
	}
	if id != arn && id != "agent/demo" {
		fail(w, response{400, "ResourceNotFoundException", "Secrets Manager can't find the specified secret."})
		return
	}
	if version == "" {
		version = s.stages[stage]
	}
	v, ok := s.versions[version]
	if !ok {
		fail(w, response{400, "ResourceNotFoundException", "Secrets Manager can't find the specified secret value for staging label: " + stage})
		return
	}
	out := map[string]any{"ARN": arn, "Name": "agent/demo", "VersionId": version, "VersionStages": s.stagesOf(version), "CreatedDate": 1.7e9}
	if v.SecretString != nil {
		out["SecretString"] = v.SecretString
	} else {
		out["SecretBinary"] = v.SecretBinary
	}
	answer(w, 200, out)
}

// store adds a version and moves the stages to it: where AWSCURRENT was, AWSPREVIOUS goes. Versions without a stage are gone.
func (s *service) store(id string, v value) {
	if _, again := s.versions[id]; again {
		return
	}
	if current, ok := s.stages["AWSCURRENT"]; ok {
		s.stages["AWSPREVIOUS"] = current
	}
	s.versions[id], s.stages["AWSCURRENT"] = v, id
	for old := range s.versions {
		if len(s.stagesOf(old)) == 0 {
			delete(s.versions, old)
		}
	}
}

func (s *service) stagesOf(version string) (stages []string) {
	for stage, id := range s.stages {
		if id == version {
			stages = append(stages, stage)
		}
	}
	slices.Sort(stages)
	return stages
}

func fail(w http.ResponseWriter, r response) {
	if r.kind == "" {
		panic(http.ErrAbortHandler)
	}
	answer(w, r.status, map[string]string{"__type": r.kind, "Message": r.text})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // a client that is gone: its test fails
}
