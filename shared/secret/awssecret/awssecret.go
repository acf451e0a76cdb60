// Package awssecret reads the secret of package secret from AWS Secrets Manager: the version that has the stage AWSCURRENT,
// and the one with AWSPREVIOUS if there is one.
package awssecret

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/bdk-lambda/bdk/shared/internal/awsx"
	"github.com/bdk-lambda/bdk/shared/secret"
)

var _ secret.Driver = (*Driver)(nil)

// Client is the part of the Secrets Manager client that a Driver needs.
type Client interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, options ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Driver is a [secret.Driver] over one secret. It is safe for concurrent use.
type Driver struct {
	client Client
	arn    string
}

// New returns a driver over the secret with the given ARN.
func New(client Client, arn string) *Driver { return &Driver{client, arn} }

// Read implements [secret.Driver]. It makes two requests, one after the other: if the secret is replaced between them, the
// older version is read twice; read at once, the version that became the previous one could be missing.
func (d *Driver) Read(ctx context.Context) ([]string, error) {
	current, err := d.get(ctx, "AWSCURRENT")
	if missing(err) {
		return nil, fmt.Errorf("reading secret %s: it does not exist, or has no value yet: %w", d.arn, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading secret %s: %w", d.arn, awsx.Fault(ctx, err))
	}
	previous, err := d.get(ctx, "AWSPREVIOUS")
	switch {
	case missing(err) || err == nil && aws.ToString(previous.VersionId) == aws.ToString(current.VersionId):
		return d.texts(current)
	case err != nil:
		return nil, fmt.Errorf("reading the previous version of secret %s: %w", d.arn, awsx.Fault(ctx, err))
	}
	return d.texts(current, previous)
}

func (d *Driver) get(ctx context.Context, stage string) (*secretsmanager.GetSecretValueOutput, error) {
	return d.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &d.arn, VersionStage: &stage})
}

func missing(err error) bool {
	_, ok := errors.AsType[*types.ResourceNotFoundException](err)
	return ok
}

// texts returns the texts of versions. One that holds bytes instead has none, which the store says of it.
func (d *Driver) texts(versions ...*secretsmanager.GetSecretValueOutput) ([]string, error) {
	if versions[0].SecretString == nil {
		return nil, fmt.Errorf("reading secret %s: its value is binary, store it as text", d.arn)
	}
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = aws.ToString(v.SecretString)
	}
	return texts, nil
}
