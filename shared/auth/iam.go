package auth

import (
	"context"
	"net/http"
	"strings"
)

type iamKey struct{}

// WithIAM returns a context for a request whose AWS signature was verified, by API Gateway, to be that of the identity with
// the given ARN. Nothing that a client sends may reach it any other way: [IAM] trusts it.
func WithIAM(ctx context.Context, arn string) context.Context {
	return context.WithValue(ctx, iamKey{}, arn)
}

// IAM returns the policy that admits, as iam:<arn>, who has signed a request with the credentials of an AWS identity, see
// [WithIAM]. It looks at no header. The ARN of an assumed role ends in the name of the role's session: callers that must
// find their sessions again use one name for it.
func IAM() Policy {
	return func(r *http.Request) (Principal, bool) {
		arn, _ := r.Context().Value(iamKey{}).(string)
		if !strings.HasPrefix(arn, "arn:") {
			return "", false
		}
		return Principal("iam:" + arn), true
	}
}
