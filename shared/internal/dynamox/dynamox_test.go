package dynamox_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
)

// TestARequestWithoutAnAnswerIsMadeAgain: a connection that has died does not hold up a call until its context ends.
func TestARequestWithoutAnAnswerIsMadeAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: it waits for three seconds")
	}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees who goes away
		if requests.Add(1) == 1 {
			<-r.Context().Done() // the client gives up
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	client := dynamox.NewClient(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), BaseEndpoint: &server.URL,
	})
	if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil || requests.Load() != 2 {
		t.Errorf("%d requests, error %v; want 2 and none", requests.Load(), err)
	}
}
