package lambdaexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/bdk-lambda/bdk/shared/exec"
	"github.com/bdk-lambda/bdk/shared/exec/internal/archive"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
)

// transfer is the way of one command's files to the function and back.
type transfer struct {
	*Runner

	prefix string   // of its objects
	left   []string // the keys of objects that may be there
}

// request returns the event of the function. What is too large for it is stored.
func (t *transfer) request(ctx context.Context, root *os.Root, c exec.Command) (req Request, err error) {
	up := c.Timeout + time.Millisecond - 1
	req = Request{Args: c.Args, Env: c.Env, Timeout: up.Milliseconds(), Output: c.Output}
	if end, ok := ctx.Deadline(); ok {
		req.End = end.UnixMilli()
	}
	files, err := temporary()
	if err != nil {
		return req, err
	}
	defer files.remove()
	size, err := files.pack(root, nil)
	if err != nil {
		return req, err
	}
	if req.Stdin, err = t.part(ctx, "stdin", bytes.NewReader(c.Stdin), int64(len(c.Stdin)), maxInline); err != nil {
		return req, err
	}
	if req.Files, err = t.part(ctx, "files", files, size, maxInline-int64(len(req.Stdin.Data))); err != nil {
		return req, err
	}
	put, err := t.sign.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: &t.cfg.Bucket, Key: aws.String(t.prefix + "changes")})
	if err != nil {
		return req, fmt.Errorf("signing a request: %w", err)
	}
	req.Put = put.URL
	return req, nil
}

// part returns bytes as a part of a request: inline, if there is room for them, otherwise stored.
func (t *transfer) part(ctx context.Context, name string, body io.ReadSeeker, size, room int64) (p Part, err error) {
	if size <= room {
		p.Data, err = io.ReadAll(body)
		return p, err
	}
	key := t.prefix + name
	t.left = append(t.left, key)
	_, err = t.store.PutObject(ctx, &s3.PutObjectInput{Bucket: &t.cfg.Bucket, Key: &key, Body: body, ContentLength: &size})
	if err != nil {
		return p, fmt.Errorf("sending the %s of a command: %w", name, awsx.Fault(ctx, err))
	}
	get, err := t.sign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &t.cfg.Bucket, Key: &key})
	if err != nil {
		return p, fmt.Errorf("signing a request: %w", err)
	}
	return Part{URL: get.URL}, nil
}

// fetch writes the archive of changes that the function has stored to f.
func (t *transfer) fetch(ctx context.Context, f *spool, size int64) error {
	key := t.prefix + "changes"
	t.left = append(t.left, key)
	if size < 0 || size > archive.MaxSize {
		return errors.New("the function says that there is more than it may send")
	}
	const tries = 3 // the client does not repeat an answer that was cut off
	var err error
	for range tries {
		if err = t.get(ctx, key, f, size); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (t *transfer) get(ctx context.Context, key string, f *spool, size int64) error {
	out, err := t.store.GetObject(ctx, &s3.GetObjectInput{Bucket: &t.cfg.Bucket, Key: &key})
	if err != nil {
		return awsx.Fault(ctx, err)
	}
	if err := f.reset(); err != nil {
		return errors.Join(err, out.Body.Close())
	}
	_, err = io.CopyN(f, out.Body, size)
	if err = errors.Join(err, out.Body.Close()); err != nil {
		return fmt.Errorf("receiving object %s: %w", key, err)
	}
	return f.rewind()
}

// clean removes what is stored. What it cannot remove is removed by the bucket later.
func (t *transfer) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, key := range t.left {
		_, _ = t.store.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &t.cfg.Bucket, Key: &key})
	}
}

// spool is a temporary file.
type spool struct{ *os.File }

func temporary() (*spool, error) {
	f, err := os.CreateTemp("", "files-*.tar.gz")
	if err != nil {
		return nil, fmt.Errorf("making a temporary file: %w", err)
	}
	return &spool{f}, nil
}

// pack writes an archive, see [archive.Pack], and returns its size; nothing if there is nothing in it.
func (s *spool) pack(root *os.Root, base archive.Files) (int64, error) {
	n, err := archive.Pack(s, root, base)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, s.reset()
	}
	size, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	return size, s.rewind()
}

func (s *spool) rewind() error {
	_, err := s.Seek(0, io.SeekStart)
	return err
}

func (s *spool) reset() error { return errors.Join(s.rewind(), s.Truncate(0)) }

// remove removes the file. What cannot be removed of it ends with the process's machine.
func (s *spool) remove() {
	_ = s.Close()
	_ = os.Remove(s.Name())
}
