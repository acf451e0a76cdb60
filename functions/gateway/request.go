package gateway

import (
	"cmp"
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
	target := address(stage, e)
	if r, err = convert(e); err != nil {
		return nil, cancel, err
	}
	r = r.WithContext(ctx)
	r.Host = cmp.Or(r.Header.Get("Host"), e.RequestContext.DomainName)
	r.URL, r.RequestURI = target, target.RequestURI()
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.Identity.SourceIP, "0")
	if id := e.RequestContext.RequestID; id != "" && r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", id)
	}
	// of the connection to API Gateway, or answered by it: the whole body is here
	for _, name := range []string{"Host", "Connection", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Content-Length"} {
		r.Header.Del(name)
	}
	return r, cancel, nil
}

// convert returns the method, headers and body of an event as a request. Path, host and query are left out: the library would paste
// them into the text of a URL, where some do not survive. What it does not take is refused before, because it prints its errors.
func convert(e events.APIGatewayProxyRequest) (*http.Request, error) {
	if strings.Trim(strings.ToUpper(e.HTTPMethod), "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return nil, bdkerr.New(bdkerr.InvalidRequest, "%.20q is no method", e.HTTPMethod)
	}
	if e.IsBase64Encoded {
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return nil, bdkerr.New(bdkerr.InvalidRequest, "the body of the event is not base64")
		}
		e.Body, e.IsBase64Encoded = string(body), false
	}
	e.Path, e.RequestContext.DomainName = "/", "gateway.invalid"
	e.MultiValueQueryStringParameters, e.QueryStringParameters = nil, nil
	if len(e.MultiValueHeaders) == 0 {
		e.MultiValueHeaders = nil // or else the library does not look at Headers
	}
	var accessor core.RequestAccessor
	r, err := accessor.EventToRequest(e)
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	return r, nil
}

// address returns path and query of an event. A path that is not validly escaped is taken for one that was unescaped before, as some
// emulators do.
func address(stage string, e events.APIGatewayProxyRequest) *url.URL {
	u := &url.URL{RawQuery: query(e).Encode()}
	raw := "/" + stage + "/" + strings.TrimPrefix(withoutBase(e), "/")
	if path, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = path, raw
	} else {
		u.Path = raw
	}
	return u
}

// withoutBase returns the path of an event without the base path of a custom domain: it does not count for where a request goes, but
// API Gateway leaves it before the path of the resource. A path that does not end like the resource with its parameters filled in
// stays as it is.
func withoutBase(e events.APIGatewayProxyRequest) string {
	if e.Resource == "" {
		return e.Path
	}
	var values []string
	for name, value := range e.PathParameters {
		values = append(values, "{"+name+"}", value, "{"+name+"+}", value)
	}
	filled := strings.NewReplacer(values...).Replace(e.Resource)
	for _, end := range []string{filled, unescaped(filled)} { // it depends on who made the event
		base, ok := strings.CutSuffix(strings.TrimSuffix(unescaped(e.Path), "/"), strings.TrimSuffix(end, "/"))
		rest, whole := strings.CutPrefix(e.Path, base) // a base path has no escapes
		if ok && whole && (rest == "" || rest[0] == '/') {
			return rest
		}
	}
	return e.Path
}

// unescaped returns a path without its escapes. If they are broken, they are none.
func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
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
