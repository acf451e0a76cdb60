package bedrock

import (
	"context"
	"errors"
	"net/http"
	"strings"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/internal/fault"
)

// mapError maps what the SDK returns, before or inside the stream.
func (m *Model) mapError(ctx context.Context, err error) *model.Error {
	if done, ok := errors.AsType[*model.Error](err); ok {
		return done
	}
	e := m.sort(err)
	if clean := m.redact(ctx, e.Message); clean != e.Message {
		e.Message, e.Err = clean, nil
	}
	e.Message = fault.Shorten(e.Message)
	return e
}

// redact takes the credentials out of s: the provider repeats the session token when it finds a signature wrong.
func (m *Model) redact(ctx context.Context, s string) string {
	provider := m.client.Options().Credentials
	if provider == nil {
		return s
	}
	c, err := provider.Retrieve(ctx) // the client keeps them, so this asks nobody
	if err != nil {
		return s // nothing was signed
	}
	for _, secret := range []string{c.SecretAccessKey, c.SessionToken} {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}

// sort finds the kind of err.
func (m *Model) sort(err error) *model.Error {
	e := &model.Error{Kind: model.Unavailable, Message: err.Error(), Err: err}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() != 0 {
		e.Kind = fault.Status(max(response.HTTPStatusCode(), http.StatusBadRequest))
	}
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		e.Message = api.ErrorCode() + ": " + api.ErrorMessage()
		if kind := kindOf(api); kind != "" {
			e.Kind = kind
		}
	case unsigned(err):
		e.Kind = model.Denied
	}
	if response != nil && response.Response != nil && e.Retryable() {
		e.RetryAfter = fault.RetryAfter(response.Response.Header, m.clock.Now())
	}
	return e
}

// unsigned reports whether there were no credentials to sign the request with.
func unsigned(err error) bool {
	var signing *v4.SigningError
	return errors.As(err, &signing) || strings.Contains(err.Error(), "get identity:")
}

// kindOf maps the provider's codes, "" for one it does not know. In the stream they begin with a small letter.
func kindOf(api smithy.APIError) model.Kind {
	switch code := api.ErrorCode(); strings.ToUpper(code[:min(1, len(code))]) + code[min(1, len(code)):] {
	case "ThrottlingException", "TooManyRequestsException":
		return model.Throttled
	case "ServiceUnavailableException", "ModelNotReadyException":
		return model.Overloaded
	case "InternalServerException", "ModelTimeoutException", "ModelErrorException", "ModelStreamErrorException":
		return model.Unavailable
	case "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException",
		"MissingAuthenticationTokenException", "IncompleteSignature":
		return model.Denied
	case "ResourceNotFoundException":
		return model.Invalid
	case "ServiceQuotaExceededException":
		return model.Throttled
	case "ValidationException":
		if fault.TooLong(api.ErrorMessage()) {
			return model.ContextLength
		}
		return model.Invalid
	}
	return ""
}
