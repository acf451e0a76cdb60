// Package dynamox is what the adapters on DynamoDB have in common: the tables, the client, how its errors are read, and
// attribute values.
package dynamox

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attempt is how long one attempt of a call may take: the service answers within milliseconds, or not at all.
const attempt = 3 * time.Second

// NewClient returns a client that makes a call up to five times, each for three seconds at most, with pauses of up to a
// second, while the service is busy or cannot be reached. Options are applied last.
//
// The client has no quota of repetitions: that of the SDK is refilled by successes only, but a condition that fails is an
// everyday answer here, and the answer to every write that is repeated after its first answer was lost.
func NewClient(cfg aws.Config, options ...func(*dynamodb.Options)) *dynamodb.Client {
	patient := func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff, r.RateLimiter = 5, time.Second, ratelimit.None
		})
		if c, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = c.WithTimeout(attempt)
		}
	}
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){patient}, options...)...)
}

// Item is an item as the client takes and returns it.
type Item = map[string]types.AttributeValue

// S returns a string attribute.
func S(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

// N returns a number attribute.
func N(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// B returns a binary attribute.
func B(v []byte) types.AttributeValue {
	if v == nil {
		v = []byte{} // the client would send null
	}
	return &types.AttributeValueMemberB{Value: v}
}

// Str returns the string attribute of item with the given name, "" if there is none.
func Str(item Item, name string) string {
	if v, ok := item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// Int returns the number attribute of item with the given name, 0 if there is none or it is not whole.
func Int(item Item, name string) int64 {
	if v, ok := item[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseInt(v.Value, 10, 64)
		return n
	}
	return 0
}

// Bytes returns the binary attribute of item with the given name, nil if there is none.
func Bytes(item Item, name string) []byte {
	if v, ok := item[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// Seconds returns t as the time to live of an item: whole seconds of the epoch, rounded up, so that nothing is removed early.
func Seconds(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// Time returns the time of a number of milliseconds of the epoch.
func Time(millis int64) time.Time { return time.UnixMilli(millis).UTC() }
