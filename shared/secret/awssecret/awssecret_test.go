package awssecret_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/secret"
	"github.com/bdk-lambda/bdk/shared/secret/awssecret"
	"github.com/bdk-lambda/bdk/shared/secret/secrettest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	secrettest.Run(t, func(t *testing.T) secrettest.Harness {
		t.Helper()
		s := newService(t)
		return secrettest.Harness{
			Open: func(*testing.T) secret.Driver { return awssecret.New(s.client(), arn) },
			Put: func(t *testing.T, version string) {
				t.Helper()
				s.put(t, secretsmanager.PutSecretValueInput{SecretString: &version})
			},
		}
	})
}

func TestTheCurrentVersionIsReadFirst(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.put(t, secretsmanager.PutSecretValueInput{SecretString: aws.String("1")})
	if _, err := awssecret.New(s.client(), arn).Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"AWSCURRENT", "AWSPREVIOUS"}, s.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAVersionWithBothStagesIsOne(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.put(t, secretsmanager.PutSecretValueInput{SecretString: aws.String("1")})
	s.stages["AWSPREVIOUS"] = s.stages["AWSCURRENT"]
	got, err := awssecret.New(s.client(), arn).Read(t.Context())
	if diff := cmp.Diff([]string{"1"}, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arn   string
		stage string // that is answered with fault
		fault response
		want  string
		code  bdkerr.Code
	}{
		"no such secret":        {arn: arn + "x", want: "does not exist, or has no value yet"},
		"no rights":             {stage: "AWSCURRENT", fault: response{400, "AccessDeniedException", "not authorized"}, want: "not authorized"},
		"no rights for the key": {stage: "AWSCURRENT", fault: response{400, "DecryptionFailure", "cannot decrypt"}, want: "cannot decrypt"},
		"marked for deletion": {
			stage: "AWSCURRENT", fault: response{400, "InvalidRequestException", "marked for deletion"}, want: "marked for deletion",
		},
		"busy":                       {stage: "AWSCURRENT", fault: response{400, "ThrottlingException", "slow down"}, want: "slow down", code: bdkerr.Unavailable},
		"out of order":               {stage: "AWSCURRENT", fault: response{500, "InternalServiceError", "oops"}, want: "oops", code: bdkerr.Unavailable},
		"cut off":                    {stage: "AWSCURRENT", want: "try again", code: bdkerr.Unavailable},
		"busy with the second":       {stage: "AWSPREVIOUS", fault: response{400, "ThrottlingException", "slow down"}, want: "previous version", code: bdkerr.Unavailable},
		"no rights for the second":   {stage: "AWSPREVIOUS", fault: response{400, "AccessDeniedException", "not authorized"}, want: "previous version"},
		"the second is out of order": {stage: "AWSPREVIOUS", fault: response{503, "ServiceUnavailable", "oops"}, want: "previous version", code: bdkerr.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			for _, v := range []string{"hunter1", "hunter2"} {
				s.put(t, secretsmanager.PutSecretValueInput{SecretString: &v})
			}
			if tc.stage != "" {
				s.fail(tc.stage, tc.fault)
			}
			if tc.arn == "" {
				tc.arn = arn
			}
			if tc.code == "" {
				tc.code = bdkerr.Internal
			}
			got, err := awssecret.New(s.client(), tc.arn).Read(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.arn) || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %q, error %v; want an error with %q and the ARN", got, err, tc.want)
			}
			if code := bdkerr.CodeOf(err); code != tc.code {
				t.Errorf("code %s; want %s", code, tc.code)
			}
		})
	}
}

func TestASecretWithoutAValueSaysSo(t *testing.T) {
	t.Parallel()
	_, err := awssecret.New(newService(t).client(), arn).Read(t.Context())
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok || !strings.Contains(err.Error(), arn) {
		t.Errorf("got error %v", err)
	}
}

func TestBinaryValues(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.put(t, secretsmanager.PutSecretValueInput{SecretBinary: []byte("hunter2")})
	d := awssecret.New(s.client(), arn)
	if got, err := d.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "binary") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %q, error %v", got, err)
	}
	s.put(t, secretsmanager.PutSecretValueInput{SecretString: aws.String(`{"A":"1"}`)})
	got, err := secret.New(d, secret.Options{}).Get(t.Context())
	if diff := cmp.Diff([]secret.Values{{"A": "1"}}, got); diff != "" || err != nil {
		t.Errorf("after it was mended: error %v (-want +got):\n%s", err, diff)
	}
}
