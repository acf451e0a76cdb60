// Package dynamotest runs the adapters on DynamoDB against an emulator. What the emulator never does, [Transport] does
// in its place: answers that are lost, throttling, transactions that meet.
package dynamotest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bdk-lambda/bdk/shared/internal/dynamox"
	"github.com/bdk-lambda/bdk/shared/tables"
	"github.com/bdk-lambda/bdk/test/emulator"
)

// Emulator is a running emulator. It is safe for concurrent use.
type Emulator struct {
	addr string
	made atomic.Int64 // sets of tables
}

// Start runs an emulator until the test has ended.
func Start(tb testing.TB) *Emulator {
	tb.Helper()
	addr := emulator.Start(tb, emulator.DynamoDB, func(port string) []string { return []string{"serve", "--port", port} })
	return &Emulator{addr: addr}
}

// Addr returns the host and port of the emulator.
func (e *Emulator) Addr() string { return e.addr }

// Client returns a client whose requests go through transport.
func (e *Emulator) Client(transport http.RoundTripper) *dynamodb.Client {
	return dynamox.NewClient(aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String("http://" + e.addr),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

// Tables makes fresh tables and returns their names. They have no streams, which cost the emulator twice as much as all else.
func (e *Emulator) Tables(tb testing.TB) tables.Names {
	tb.Helper()
	n := e.made.Add(1)
	names := tables.Names{Sessions: fmt.Sprint("Sessions-", n), Events: fmt.Sprint("Events-", n), Control: fmt.Sprint("Control-", n)}
	client := e.Client(http.DefaultTransport)
	for _, t := range tables.All(names) {
		if _, err := client.CreateTable(tb.Context(), create(t)); err != nil {
			tb.Fatal(err)
		}
	}
	return names
}

func create(t tables.Table) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &t.Name, BillingMode: types.BillingModePayPerRequest}
	define := func(k tables.Key) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &k.Name, AttributeType: types.ScalarAttributeType(k.Type)})
	}
	in.KeySchema = []types.KeySchemaElement{{AttributeName: &t.Partition.Name, KeyType: types.KeyTypeHash}}
	define(t.Partition)
	if t.Sort.Name != "" {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &t.Sort.Name, KeyType: types.KeyTypeRange})
		define(t.Sort)
	}
	for _, i := range t.Indexes {
		define(tables.Key{Name: i.Partition, Type: "S"})
		define(tables.Key{Name: i.Sort, Type: "S"})
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &i.Name,
			KeySchema: []types.KeySchemaElement{
				{AttributeName: &i.Partition, KeyType: types.KeyTypeHash},
				{AttributeName: &i.Sort, KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: i.Include},
		})
	}
	return in
}
