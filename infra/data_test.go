package infra_test

import (
	"fmt"
	"testing"

	"github.com/bdk-lambda/bdk/shared/tables"
)

// TestTables: the tables are those of package tables, billed by request, restorable to any second, and stay when the stack goes.
func TestTables(t *testing.T) {
	want, got := map[string]any{}, map[string]any{}
	for _, table := range tables.All(tables.Names{Sessions: "Sessions", Events: "Events", Control: "Control"}) {
		types := map[string]string{table.Partition.Name: table.Partition.Type}
		props := map[string]any{
			"BillingMode":                      "PAY_PER_REQUEST",
			"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": true},
		}
		keys := []any{key(table.Partition.Name, "HASH")}
		if table.Sort.Name != "" {
			keys, types[table.Sort.Name] = append(keys, key(table.Sort.Name, "RANGE")), table.Sort.Type
		}
		props["KeySchema"] = keys
		if table.Expires != "" {
			props["TimeToLiveSpecification"] = map[string]any{"AttributeName": table.Expires, "Enabled": true}
		}
		if table.Stream != "" {
			props["StreamSpecification"] = map[string]any{"StreamViewType": table.Stream}
		}
		var indexes []any
		for _, i := range table.Indexes {
			include := []any{}
			for _, name := range i.Include {
				include = append(include, name)
			}
			types[i.Partition], types[i.Sort] = "S", "S"
			indexes = append(indexes, map[string]any{
				"IndexName": i.Name, "KeySchema": []any{key(i.Partition, "HASH"), key(i.Sort, "RANGE")},
				"Projection": map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": include},
			})
		}
		if indexes != nil {
			props["GlobalSecondaryIndexes"] = indexes
		}
		want[table.Name] = []any{props, types, "Retain", "Retain"}
	}
	for name, e := range load(t, agent).of("AWS::DynamoDB::Table") {
		types := map[string]string{}
		for _, one := range e.at("AttributeDefinitions").([]any) {
			a, _ := one.(map[string]any)
			types[fmt.Sprint(a["AttributeName"])] = fmt.Sprint(a["AttributeType"])
		}
		props, _ := e.at().(map[string]any)
		delete(props, "AttributeDefinitions") // in any order
		got[name] = []any{props, types, e.DeletionPolicy, e.UpdateReplacePolicy}
	}
	differ(t, "tables", want, got)
}

func key(name, kind string) any { return map[string]any{"AttributeName": name, "KeyType": kind} }

// TestBucket: the bucket is closed to everybody, encrypted, free of versions, and stays when the stack goes.
func TestBucket(t *testing.T) {
	bucket := load(t, agent).of("AWS::S3::Bucket")["Blobs"]
	differ(t, "bucket", any(map[string]any{
		"BucketEncryption": map[string]any{"ServerSideEncryptionConfiguration": []any{
			map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}},
		}},
		"PublicAccessBlockConfiguration": map[string]any{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"OwnershipControls": map[string]any{"Rules": []any{map[string]any{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"LifecycleConfiguration": map[string]any{"Rules": []any{
			map[string]any{"Id": "unfinished", "Status": "Enabled", "AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": 1.0}},
			map[string]any{"Id": "temporary", "Status": "Enabled", "Prefix": "tmp/", "ExpirationInDays": 1.0},
			map[string]any{"Id": "exec", "Status": "Enabled", "Prefix": "exec/", "ExpirationInDays": 1.0},
		}},
	}), bucket.at())
	differ(t, "deletion", "Retain Retain", bucket.DeletionPolicy+" "+bucket.UpdateReplacePolicy)
}

// TestSecret: the secret is a JSON object with one generated token.
func TestSecret(t *testing.T) {
	differ(t, "secret", any(map[string]any{
		"SecretStringTemplate": "{}", "GenerateStringKey": "bearer:default", "PasswordLength": 43.0, "ExcludePunctuation": true,
	}), load(t, agent).of("AWS::SecretsManager::Secret")["Secret"].at("GenerateSecretString"))
}

// TestLogs: logs end after a month, and go with the stack: their names are taken otherwise when it is made again.
func TestLogs(t *testing.T) {
	got := map[string]string{}
	for name, e := range load(t, agent).of("AWS::Logs::LogGroup") {
		got[name] = fmt.Sprint(e.at("LogGroupName"), " ", e.at("RetentionInDays"), " ", e.DeletionPolicy)
	}
	differ(t, "log groups", map[string]string{
		"Logs": "/bdk/pr-approver 30 Delete", "AccessLogs": "/bdk/pr-approver/access 30 Delete",
		"TurnsLogs": "/aws/vendedlogs/states/bdk/pr-approver 30 Delete",
	}, got)
}
