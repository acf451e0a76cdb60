package price_test

import (
	"math"
	"testing"

	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/price"
)

func TestCost(t *testing.T) {
	t.Parallel()
	all := model.Usage{InputTokens: 1000, OutputTokens: 100, CacheReadTokens: 5000, CacheWriteTokens: 2000}
	plain := model.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000, ReasoningTokens: 500_000}
	tests := map[string]struct {
		id   string
		u    model.Usage
		want float64
	}{
		"every kind of token":           {"anthropic:claude-sonnet-4-5-20250929", all, (1000*3 + 100*15 + 5000*0.3 + 2000*3.75) / 1e6},
		"alias without a date":          {"anthropic:claude-opus-5-5", plain, 24},
		"-latest":                       {"anthropic:claude-3-5-haiku-latest", plain, 4.8},
		"name alone":                    {"claude-haiku-4-5", plain, 6},
		"global profile":                {"bedrock:global.anthropic.claude-sonnet-4-5-20250929-v1:0", plain, 18},
		"regional profile with premium": {"bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0", plain, 19.8},
		"no profile with premium":       {"bedrock:anthropic.claude-opus-4-6-v1", plain, 33},
		"no premium for older models":   {"us.anthropic.claude-sonnet-4-20250514-v1:0", plain, 18},
		"version without a date":        {"bedrock:global.anthropic.claude-sonnet-4-6", plain, 18},
		"ARN of a foundation model":     {"bedrock:arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0", plain, 1.5},
		"ARN of a profile":              {"bedrock:arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0", plain, 0.3},
		"regional and global Nova":      {"bedrock:eu.amazon.nova-2-lite-v1:0", plain, 3.08},
		"dated GPT":                     {"openai:gpt-4o-2024-08-06", plain, 12.5},
		"short prompt":                  {"openai:gpt-5.4", model.Usage{InputTokens: 272_000}, 0.68},
		"long prompt":                   {"openai:gpt-5.4", model.Usage{InputTokens: 1, CacheReadTokens: 272_000, OutputTokens: 10}, (5 + 272_000*0.5 + 10*22.5) / 1e6},
		"nothing used":                  {"openai:gpt-5", model.Usage{}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := price.Cost(tc.id, tc.u)
			if !ok || math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("Cost(%s) = %v, %v, want %v", tc.id, got, ok, tc.want)
			}
		})
	}
}

func TestUnknownPricesAreNotZero(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "scripted:x.yaml", "scripted:gpt-5", "openai:llama-3", "openai:gpt-5-turbo-2", "openai:claude-opus-5", "anthropic:gpt-5",
		"bedrock:gpt-5", "bedrock:meta.llama3-70b-instruct-v1:0", "bedrock:us-gov.anthropic.claude-3-haiku-20240307-v1:0",
		"bedrock:eu.amazon.nova-pro-v1:0", "bedrock:us", "bedrock:us.", "bedrock:claude-opus-5",
		"bedrock:arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", "acme:claude-opus-5", "gpt-5-2025",
	} {
		if usd, ok := price.Cost(id, model.Usage{InputTokens: 1}); ok || usd != 0 {
			t.Errorf("Cost(%q) = %v, %v, want 0, false", id, usd, ok)
		}
	}
	if _, ok := price.Cost("openai:gpt-4o", model.Usage{CacheWriteTokens: 1}); ok {
		t.Error("a kind of token that is not sold has a price")
	}
}

func FuzzCost(f *testing.F) {
	f.Add("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", int64(1))
	f.Add("gpt-4o-2024-08-06", int64(1))
	f.Fuzz(func(t *testing.T, id string, n int64) {
		usd, ok := price.Cost(id, model.Usage{InputTokens: max(n, 1)})
		if ok != (usd > 0) {
			t.Errorf("Cost(%q) = %v, %v", id, usd, ok)
		}
	})
}
