package bedrock

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
)

// Open returns the model of the given name with the region and credentials that AWS's own tools would use here: those of
// the environment, the shared configuration files, or the machine's role. The HTTP client is the SDK's own, which heeds
// AWS_CA_BUNDLE and the like.
func Open(ctx context.Context, name string, opts *Options) (*Model, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if c.Region == "" {
		return nil, fmt.Errorf("no AWS region is configured: set AWS_REGION")
	}
	return New(bedrockruntime.NewFromConfig(c), name, opts), nil
}
