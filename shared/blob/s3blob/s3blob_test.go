package s3blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/blob/blobtest"
	"github.com/bdk-lambda/bdk/shared/blob/s3blob"
	"github.com/bdk-lambda/bdk/test/emulator"
)

// server is a running emulator.
type server struct {
	addr    string
	buckets atomic.Int64
}

func start(t *testing.T) *server {
	t.Helper()
	data := t.TempDir()
	return &server{addr: emulator.Start(t, emulator.S3, func(port string) []string {
		return []string{
			"--port", "127.0.0.1:" + port, "--access", "test", "--secret", "test", "--quiet", "--keep-alive", "posix", data,
		}
	})}
}

func (s *server) client(transport http.RoundTripper) *s3.Client {
	return s3.NewFromConfig(aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String("http://" + s.addr),
		HTTPClient:   &http.Client{Transport: transport},
	}, func(o *s3.Options) { o.UsePathStyle = true })
}

// bucket makes a bucket and returns its name.
func (s *server) bucket(t *testing.T) string {
	t.Helper()
	name := fmt.Sprint("bucket-", s.buckets.Add(1))
	if _, err := s.client(http.DefaultTransport).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	return name
}

// deleting mends the emulator, which says that an object is missing when two deletes meet. S3 answers 204 to both.
type deleting struct{}

func (deleting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && req.Method == "DELETE" && resp.StatusCode == http.StatusNotFound {
		resp.Body.Close()
		resp.StatusCode, resp.Body, resp.ContentLength = http.StatusNoContent, http.NoBody, 0
	}
	return resp, err
}

// The prefix ends no folder: the emulator, which keeps objects as files, removes empty folders under those that write into them.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := start(t)
	blobtest.Run(t, func(t *testing.T) blobtest.Harness {
		t.Helper()
		client, bucket := s.client(deleting{}), s.bucket(t)
		return blobtest.Harness{
			Open: func(*testing.T) blob.Driver { return s3blob.New(client, bucket, "blob-") },
			Damage: func(t *testing.T, ref blob.Ref, data []byte) {
				t.Helper()
				_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: &bucket, Key: aws.String("blob-" + string(ref)), Body: bytes.NewReader(data),
				})
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// transport counts requests by method and spoils those that it is told to.
type transport struct {
	spoil func(method string, try int) (send bool, err error)

	mu    sync.Mutex
	calls map[string]int
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	if t.calls == nil {
		t.calls = make(map[string]int)
	}
	t.calls[req.Method]++
	send, err := true, error(nil)
	if t.spoil != nil {
		send, err = t.spoil(req.Method, t.calls[req.Method])
	}
	t.mu.Unlock()
	if !send {
		return nil, err
	}
	resp, sent := http.DefaultTransport.RoundTrip(req)
	if err == nil || sent != nil {
		return resp, sent
	}
	resp.Body.Close()
	return nil, err
}

func (t *transport) want(tb testing.TB, what string, want map[string]int) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if diff := cmp.Diff(want, t.calls); diff != "" {
		tb.Errorf("requests of %s (-want +got)\n%s", what, diff)
	}
	t.calls = nil
}

func TestRequestsOfEachOperation(t *testing.T) {
	t.Parallel()
	server, counted := start(t), &transport{}
	s := blob.New(s3blob.New(server.client(counted), server.bucket(t), ""))
	ref, err := s.Put(t.Context(), []byte("x"))
	counted.want(t, "a first put", map[string]int{"PUT": 1})
	_, again := s.Put(t.Context(), []byte("x"))
	counted.want(t, "another put", map[string]int{"PUT": 1, "HEAD": 1})
	_, get := s.Get(t.Context(), ref)
	counted.want(t, "a get", map[string]int{"GET": 1})
	_, has := s.Has(t.Context(), ref)
	counted.want(t, "a look", map[string]int{"HEAD": 1})
	if err := errors.Join(err, again, get, has, s.Delete(t.Context(), ref)); err != nil {
		t.Error(err)
	}
	counted.want(t, "a delete", map[string]int{"DELETE": 1})
}

func TestLostAnswersAreNotSeen(t *testing.T) {
	t.Parallel()
	server := start(t)
	lost := &transport{spoil: func(_ string, try int) (bool, error) {
		if try%2 == 1 {
			return true, errors.New("the connection ended before the answer")
		}
		return true, nil
	}}
	s := blob.New(s3blob.New(server.client(lost), server.bucket(t), "blobs/"))
	ref, err := s.Put(t.Context(), []byte("hello\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), ref); err != nil || string(got) != "hello\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := s.Delete(t.Context(), ref); err != nil {
		t.Error(err)
	}
	if there, err := s.Has(t.Context(), ref); err != nil || there {
		t.Errorf("after the delete: got %v, %v", there, err)
	}
}

// cutting cuts off the first answers to gets.
type cutting struct {
	left int
}

func (c *cutting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil && req.Method == "GET" && c.left > 0 {
		c.left--
		body := resp.Body
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(body, 10), iotest.ErrReader(io.ErrUnexpectedEOF)), body}
	}
	return resp, err
}

func TestAnswerThatIsCutOffIsAskedForAgain(t *testing.T) {
	t.Parallel()
	server, cut := start(t), &cutting{}
	s := blob.New(s3blob.New(server.client(cut), server.bucket(t), ""))
	ref, err := s.Put(t.Context(), []byte("more than ten bytes"))
	if err != nil {
		t.Fatal(err)
	}
	cut.left = 2
	if got, err := s.Get(t.Context(), ref); err != nil || string(got) != "more than ten bytes" {
		t.Errorf("got %q, %v", got, err)
	}
	cut.left = 3
	if _, err := s.Get(t.Context(), ref); bdkerr.CodeOf(err) != bdkerr.Unavailable {
		t.Errorf("got error %v, want unavailable", err)
	}
}

func TestServiceThatCannotBeReachedIsUnavailable(t *testing.T) {
	t.Parallel()
	server := start(t)
	cut := &transport{spoil: func(string, int) (bool, error) { return false, errors.New("the connection ended early") }}
	s := blob.New(s3blob.New(server.client(cut), server.bucket(t), ""))
	if _, err := s.Put(t.Context(), []byte("x")); bdkerr.CodeOf(err) != bdkerr.Unavailable {
		t.Errorf("got error %v, want unavailable", err)
	}
}

func TestMissingBucketIsNoMissingBlob(t *testing.T) {
	t.Parallel()
	s := blob.New(s3blob.New(start(t).client(http.DefaultTransport), "nobody", ""))
	if _, err := s.Get(t.Context(), blob.RefOf(nil)); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get: got error %v", err)
	}
	if _, err := s.Put(t.Context(), nil); err == nil {
		t.Error("Put: got no error")
	}
}
