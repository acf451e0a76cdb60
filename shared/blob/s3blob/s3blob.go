// Package s3blob keeps the blobs of package blob in a bucket, under a prefix and their names. The service checks the bytes
// of every write against the name, and keeps the checksum.
//
// Who uses the bucket needs the right to list it too: without it the service says that a missing object is forbidden.
package s3blob

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/internal/awsx"
)

var _ blob.Driver = (*Driver)(nil)

// Driver is a [blob.Driver] over a bucket, made by [New]. It is safe for concurrent use.
type Driver struct {
	client         *s3.Client
	bucket, prefix string
}

// New returns a driver over the objects of bucket whose keys begin with prefix, such as "blobs/".
func New(client *s3.Client, bucket, prefix string) *Driver { return &Driver{client, bucket, prefix} }

func (d *Driver) key(ref blob.Ref) *string { return aws.String(d.prefix + string(ref)) }

// checksum returns the SHA-256 that ref is, in the form of the service.
func checksum(ref blob.Ref) (string, error) {
	sum, err := hex.DecodeString(string(ref))
	return base64.StdEncoding.EncodeToString(sum), err
}

// Put implements [blob.Driver]. Bytes that are stored already are neither sent nor stored again: a bucket that keeps versions
// does not grow.
func (d *Driver) Put(ctx context.Context, ref blob.Ref, data []byte) error {
	sum, err := checksum(ref)
	if err != nil {
		return err
	}
	in := s3.PutObjectInput{
		Bucket: &d.bucket, Key: d.key(ref), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ChecksumSHA256: &sum, IfNoneMatch: aws.String("*"),
	}
	_, err = d.client.PutObject(ctx, &in)
	if !taken(err) {
		return awsx.Fault(ctx, err)
	}
	if head, err := d.head(ctx, ref); err == nil && aws.ToString(head.ChecksumSHA256) == sum {
		return nil
	}
	in.Body, in.IfNoneMatch = bytes.NewReader(data), nil // damaged, or removed meanwhile
	_, err = d.client.PutObject(ctx, &in)
	return awsx.Fault(ctx, err)
}

// taken reports whether a put was refused because of what is there, or because of another put of the same object.
func taken(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && (e.ErrorCode() == "PreconditionFailed" || e.ErrorCode() == "ConditionalRequestConflict")
}

// Get implements [blob.Driver]. Of an object that is larger than any blob it returns the beginning.
func (d *Driver) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	const tries = 3 // the client does not repeat an answer that was cut off
	for try := 1; ; try++ {
		data, cut, err := d.get(ctx, ref)
		if !cut || try == tries || ctx.Err() != nil {
			return data, err
		}
	}
}

// get makes one request. It reports whether the answer was cut off.
func (d *Driver) get(ctx context.Context, ref blob.Ref) (data []byte, cut bool, err error) {
	out, err := d.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &d.bucket, Key: d.key(ref)}, unchecked)
	if _, gone := errors.AsType[*types.NoSuchKey](err); gone {
		return nil, false, blob.ErrNotFound
	}
	if err != nil {
		return nil, false, awsx.Fault(ctx, err)
	}
	data, err = io.ReadAll(io.LimitReader(out.Body, blob.MaxSize+1))
	if err = errors.Join(err, out.Body.Close()); err != nil {
		return nil, true, awsx.Fault(ctx, awsx.Unavailable(fmt.Errorf("receiving object %s: %w", *d.key(ref), err)))
	}
	return data, false, nil
}

// unchecked leaves it to the store to check what is read.
func unchecked(o *s3.Options) {
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
}

// Has implements [blob.Driver].
func (d *Driver) Has(ctx context.Context, ref blob.Ref) (bool, error) {
	_, err := d.head(ctx, ref)
	if _, gone := errors.AsType[*types.NotFound](err); gone {
		return false, nil
	}
	return err == nil, awsx.Fault(ctx, err)
}

func (d *Driver) head(ctx context.Context, ref blob.Ref) (*s3.HeadObjectOutput, error) {
	return d.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &d.bucket, Key: d.key(ref), ChecksumMode: types.ChecksumModeEnabled})
}

// Delete implements [blob.Driver].
func (d *Driver) Delete(ctx context.Context, ref blob.Ref) error {
	_, err := d.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &d.bucket, Key: d.key(ref)})
	return awsx.Fault(ctx, err)
}
