package gateway

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// reserve is what is left of an invocation when the context of its request ends: time to answer with that.
const reserve = time.Second

// newRequest returns the request that an event tells of. Cancel ends its context and must be called even if there is an error.
func newRequest(ctx context.Context, e events.APIGatewayProxyRequest, stage string) (r *http.Request, cancel context.CancelFunc, err error) {
	if end, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reserve))
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	if arn := e.RequestContext.Identity.UserArn; arn != "" {
		ctx = auth.WithIAM(ctx, arn)
	}
	if e.IsBase64Encoded {
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return nil, cancel, bdkerr.New(bdkerr.InvalidRequest, "the body of the event is not base64")
		}
		e.Body, e.IsBase64Encoded = string(body), false
	}
	if strings.Trim(strings.ToUpper(e.HTTPMethod), "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return nil, cancel, bdkerr.New(bdkerr.InvalidRequest, "%.20q is no method", e.HTTPMethod)
	}
	target := address(stage, e)
	// the library would paste path, host and query into a URL, where some do not survive
	e.Path, e.RequestContext.DomainName = "/", "gateway.invalid"
	e.MultiValueQueryStringParameters, e.QueryStringParameters = nil, nil
	if len(e.MultiValueHeaders) == 0 {
		e.MultiValueHeaders = nil // for the library to take Headers
	}
	var accessor core.RequestAccessor
	r, err = accessor.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, cancel, fmt.Errorf("reading the event: %w", err)
	}
	r = r.WithContext(ctx)
	host := r.Header.Get("Host")
	if host == "" {
		host = target.Host
	}
	target.Host = ""
	r.URL, r.RequestURI, r.Host = target, target.RequestURI(), host
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.Identity.SourceIP, "0")
	if r.Header.Get("X-Request-Id") == "" && e.RequestContext.RequestID != "" {
		r.Header.Set("X-Request-Id", e.RequestContext.RequestID)
	}
	// of the connection to API Gateway, or answered by it: the whole body is here
	for _, name := range []string{"Host", "Connection", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Content-Length"} {
		r.Header.Del(name)
	}
	return r, cancel, nil
}

// address returns what an event is addressed to: host, path below the stage, and query. A path that is not validly escaped is taken for one
// that was unescaped before, which some emulators do.
func address(stage string, e events.APIGatewayProxyRequest) *url.URL {
	u := &url.URL{Host: e.RequestContext.DomainName, RawQuery: query(e).Encode()}
	raw := "/" + stage + "/" + strings.TrimPrefix(e.Path, "/")
	if path, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = path, raw
	} else {
		u.Path = raw
	}
	return u
}

func query(e events.APIGatewayProxyRequest) url.Values {
	if len(e.MultiValueQueryStringParameters) > 0 {
		return e.MultiValueQueryStringParameters
	}
	values := make(url.Values, len(e.QueryStringParameters))
	for name, value := range e.QueryStringParameters {
		values.Set(name, value)
	}
	return values
}
