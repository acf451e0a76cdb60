// Package account is the account and region of AWS that a user's machine is set up for.
package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// patience is how long it may take to get credentials, and to learn whose they are.
const patience = 20 * time.Second

// Config returns the configuration that the environment and the files of the user give, once it has a region and credentials. The
// options are those of the SDK.
func Config(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the configuration of AWS: %w", err)
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("no region of AWS is set: set AWS_REGION, or run `aws configure`")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, noCredentials(err)
	}
	return cfg, nil
}

// ID returns the number of the account whose credentials cfg has, as AWS says. It fails for credentials that AWS refuses.
func ID(ctx context.Context, cfg aws.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", noCredentials(err)
	}
	return aws.ToString(who.Account), nil
}

func noCredentials(err error) error {
	return fmt.Errorf("there are no credentials for AWS that work: run `aws configure` or `aws sso login`, or set AWS_PROFILE: %w", err)
}
