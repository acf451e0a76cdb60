// Package price knows what calls of well-known models cost.
//
// The numbers are list prices in US dollars per million tokens, without tax, discounts, batch or priority tiers, as looked up
// on 2026-11-30: Claude from platform.claude.com/docs/en/about-claude/pricing and the model pages beside it, GPT and the
// o-series from developers.openai.com/api/docs/pricing and the model pages beside it, Nova from
// aws.amazon.com/bedrock/pricing for us-east-1. A model whose price was not clear there is left out.
package price

import (
	"strings"

	"github.com/bdk-lambda/bdk/shared/model"
)

// A rate is in US dollars per million tokens.
type rate struct {
	in, out     float64
	read, write float64 // of the prompt cache, for five minutes; 0: not sold

	long            int64   // a call with more prompt tokens than this, cached ones counted, costs more; 0: none does
	longIn, longOut float64 // that many times as much
}

func (r rate) times(in, out float64) rate {
	r.in, r.read, r.write, r.out = r.in*in, r.read*in, r.write*in, r.out*out
	return r
}

// Cost returns what one model call costs in US dollars. The id is that of [model.ParseID], or the model's name alone. Dates
// and versions behind a name are ignored; the region of an inference profile counts where its price differs. For a model, or
// a kind of token, without a known price ok is false and usd is 0. The usage must be that of one call, not a sum: some models
// cost more for long prompts.
func Cost(id string, u model.Usage) (usd float64, ok bool) {
	r, ok := find(id)
	if !ok || u.CacheReadTokens > 0 && r.read == 0 || u.CacheWriteTokens > 0 && r.write == 0 {
		return 0, false
	}
	if prompt := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens; r.long > 0 && prompt > r.long {
		r = r.times(r.longIn, r.longOut)
	}
	const million = 1e6
	usd = float64(u.InputTokens)*r.in + float64(u.OutputTokens)*r.out +
		float64(u.CacheReadTokens)*r.read + float64(u.CacheWriteTokens)*r.write
	return usd / million, true
}

func find(id string) (rate, bool) {
	provider, name, err := model.ParseID(id)
	if err != nil { // the name alone; one of Bedrock's may hold a colon
		name = id
	}
	switch {
	case provider == model.ProviderBedrock || provider == "" && bedrockName(name):
		return bedrock(name)
	case provider == model.ProviderAnthropic || provider == "" && strings.HasPrefix(name, "claude-"):
		r, _, ok := claude(base(name))
		return r, ok
	case provider == model.ProviderOpenAI || provider == "":
		return openai(base(name))
	}
	return rate{}, false
}

func bedrockName(name string) bool {
	return strings.HasPrefix(name, "arn:") || strings.Contains(name, "anthropic.") || strings.Contains(name, "amazon.")
}

// bedrock understands REGION.VENDOR.NAME, VENDOR.NAME and the ARNs that end with them.
func bedrock(name string) (rate, bool) {
	if strings.HasPrefix(name, "arn:") {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	region, rest, found := strings.Cut(name, ".")
	switch region {
	case "us", "eu", "apac", "jp", "au", "ca", "global":
		if !found {
			return rate{}, false
		}
		name = rest
	default:
		region = ""
	}
	const premium = 1.1 // of a call that stays in a region, for newer models
	vendor, name, _ := strings.Cut(name, ".")
	switch vendor {
	case "anthropic":
		r, regional, ok := claude(base(name))
		if regional && region != "global" {
			r = r.times(premium, premium)
		}
		return r, ok
	case "amazon":
		r, regional, ok := nova(base(name))
		switch {
		case regional && region != "global":
			return r.times(premium, premium), ok
		case !regional && region != "" && region != "us":
			return rate{}, false // other regions have other prices
		}
		return r, ok
	}
	return rate{}, false
}

// base drops what stands behind a name: -20250929, -2025-09-29, -latest, -v1, :0 and their combinations.
func base(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimSuffix(name, "-latest")
	if cut := strings.LastIndex(name, "-v"); cut > 0 && digits(name[cut+2:]) {
		name = name[:cut]
	}
	const day = "-20060102"
	if n := len(name) - len(day); n > 0 && name[n] == '-' && digits(name[n+1:]) {
		return name[:n]
	}
	const date = "-2006-01-02"
	if n := len(name) - len(date); n > 0 && name[n] == '-' && name[n+5] == '-' && name[n+8] == '-' &&
		digits(name[n+1:n+5]+name[n+6:n+8]+name[n+9:]) {
		return name[:n]
	}
	return name
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
