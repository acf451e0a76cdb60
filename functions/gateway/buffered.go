package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// maxAnswer is how long the JSON of an answer may be. Lambda refuses longer ones, which API Gateway shows as a bad gateway.
const maxAnswer = 6 << 20

// Buffered returns the Lambda handler that answers with what h has written when it returns. It never fails: an answer that h does
// not complete, or that is too large for Lambda, becomes an error of the API's own form.
func Buffered(h http.Handler, opts Options) Handler {
	return func(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		r, cancel, err := newRequest(ctx, e, opts.Stage)
		defer cancel()
		if err != nil {
			return refusal(err, nil), nil
		}
		proxy := core.NewProxyResponseWriter()
		w := newWriter(r.Method, proxy, func(status int, header http.Header) {
			maps.Copy(proxy.Header(), header)
			proxy.WriteHeader(status)
		})
		if err := opts.serve(h, w, r); err != nil {
			return refusal(err, w.Header()), nil
		}
		answer, err := proxy.GetProxyResponse()
		if err == nil {
			err = checkSize(answer)
		}
		if err != nil {
			return refusal(err, w.Header()), nil
		}
		return answer, nil
	}
}

// checkSize fails for an answer that Lambda does not pass on.
func checkSize(a events.APIGatewayProxyResponse) error {
	const longestEscape = 6
	if len(a.Body) < maxAnswer/longestEscape/2 {
		return nil // headers are far smaller than the other half
	}
	var size counter
	enc := json.NewEncoder(&size)
	enc.SetEscapeHTML(false) // as the runtime does
	if err := enc.Encode(a); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if size > maxAnswer {
		return bdkerr.New(bdkerr.Internal, "the answer takes %d bytes, of which this deployment can send %d at once: ask for less", size, maxAnswer)
	}
	return nil
}

// counter is an [io.Writer] that counts.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
