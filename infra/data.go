package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/tables"
)

// addData adds what must last: the tables of package tables, and the bucket of blobs.
func (s *stack) addData() {
	s.tables = map[resource]awsdynamodb.Table{}
	for _, t := range tables.All(tables.Names{Sessions: string(sessions), Events: string(events), Control: string(control)}) {
		s.tables[resource(t.Name)] = s.addTable(t)
	}
	s.bucket = awss3.NewBucket(s.Stack, jsii.String("Blobs"), &awss3.BucketProps{
		Encryption: awss3.BucketEncryption_S3_MANAGED, EnforceSSL: jsii.Bool(true),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(), ObjectOwnership: awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy: s.kept(), AutoDeleteObjects: jsii.Bool(s.Destroy),
		LifecycleRules: &[]*awss3.LifecycleRule{ // no versions: a blob never changes, and what a session left must be gone with it
			{Id: jsii.String("unfinished"), AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(number(1))},
			{Id: jsii.String("temporary"), Prefix: jsii.String("tmp/"), Expiration: awscdk.Duration_Days(number(1))},
			{Id: jsii.String("exec"), Prefix: jsii.String(deploy.ExecPrefix), Expiration: awscdk.Duration_Days(number(1))},
		},
	})
}

// addTable adds a table, encrypted with a key of DynamoDB's own as every table is.
func (s *stack) addTable(t tables.Table) awsdynamodb.Table {
	props := &awsdynamodb.TableProps{
		PartitionKey: attribute(t.Partition.Name, t.Partition.Type), BillingMode: awsdynamodb.BillingMode_PAY_PER_REQUEST,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: jsii.Bool(true)},
		RemovalPolicy:                    s.kept(),
	}
	if t.Sort.Name != "" {
		props.SortKey = attribute(t.Sort.Name, t.Sort.Type)
	}
	if t.Expires != "" {
		props.TimeToLiveAttribute = &t.Expires
	}
	if t.Stream != "" {
		props.Stream = awsdynamodb.StreamViewType(t.Stream)
	}
	table := awsdynamodb.NewTable(s.Stack, &t.Name, props)
	for _, i := range t.Indexes {
		table.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
			IndexName: &i.Name, PartitionKey: attribute(i.Partition, "S"), SortKey: attribute(i.Sort, "S"),
			ProjectionType: awsdynamodb.ProjectionType_INCLUDE, NonKeyAttributes: list(i.Include...),
		})
	}
	return table
}

func attribute(name, kind string) *awsdynamodb.Attribute {
	types := map[string]awsdynamodb.AttributeType{"S": awsdynamodb.AttributeType_STRING, "N": awsdynamodb.AttributeType_NUMBER}
	return &awsdynamodb.Attribute{Name: &name, Type: types[kind]}
}
