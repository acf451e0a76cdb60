package price

// claude returns the price at Anthropic, and whether Bedrock takes a premium for calls that stay in a region.
func claude(name string) (r rate, regional, ok bool) {
	switch name {
	case "claude-fable-5-1", "claude-mythos-5-1":
		return rate{in: 10, out: 50, read: 0.25, write: 12.50}, true, true
	case "claude-fable-5", "claude-mythos-5":
		return rate{in: 10, out: 50, read: 1, write: 12.50}, true, true
	case "claude-opus-5-5":
		return rate{in: 4, out: 20, read: 0.20, write: 5}, true, true
	case "claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5":
		return rate{in: 5, out: 25, read: 0.50, write: 6.25}, true, true
	case "claude-opus-4-1", "claude-opus-4", "claude-opus-4-0", "claude-3-opus":
		return rate{in: 15, out: 75, read: 1.50, write: 18.75}, false, true
	case "claude-sonnet-5-5":
		return rate{in: 2, out: 10, read: 0.10, write: 2.50}, true, true
	case "claude-sonnet-5":
		return rate{in: 2, out: 10, read: 0.20, write: 2.50}, true, true
	case "claude-sonnet-4-6", "claude-sonnet-4-5":
		return rate{in: 3, out: 15, read: 0.30, write: 3.75}, true, true
	case "claude-sonnet-4", "claude-sonnet-4-0", "claude-3-7-sonnet", "claude-3-5-sonnet":
		return rate{in: 3, out: 15, read: 0.30, write: 3.75}, false, true
	case "claude-haiku-5-5":
		return rate{in: 0.10, out: 0.50, read: 0.01, write: 0.125, long: 100_000, longIn: 5, longOut: 5}, true, true
	case "claude-haiku-4-5":
		return rate{in: 1, out: 5, read: 0.10, write: 1.25}, true, true
	case "claude-3-5-haiku":
		return rate{in: 0.80, out: 4, read: 0.08, write: 1}, false, true
	case "claude-3-haiku":
		return rate{in: 0.25, out: 1.25, read: 0.03, write: 0.30}, false, true
	}
	return rate{}, false, false
}

// nova returns the price in us-east-1 or, where calls that stay in a region have a premium, without it.
func nova(name string) (r rate, regional, ok bool) {
	switch name {
	case "nova-micro":
		return rate{in: 0.035, out: 0.14, read: 0.00875}, false, true
	case "nova-lite":
		return rate{in: 0.06, out: 0.24, read: 0.015}, false, true
	case "nova-pro":
		return rate{in: 0.80, out: 3.20, read: 0.20}, false, true
	case "nova-premier":
		return rate{in: 2.50, out: 12.50, read: 0.625}, false, true
	case "nova-2-lite":
		return rate{in: 0.30, out: 2.50, read: 0.075}, true, true
	}
	return rate{}, false, false
}

func openai(name string) (rate, bool) {
	// From these models on a long prompt makes the whole call dearer.
	long := func(r rate) (rate, bool) {
		r.long, r.longIn, r.longOut = 272_000, 2, 1.5
		return r, true
	}
	switch name {
	case "gpt-6.2-sol", "gpt-6.1-sol":
		return long(rate{in: 2, out: 10, read: 0.10, write: 2.50})
	case "gpt-6-sol":
		return long(rate{in: 2, out: 10, read: 0.20, write: 2.50})
	case "gpt-6-luna":
		return long(rate{in: 0.10, out: 0.50, read: 0.01, write: 0.125})
	case "gpt-5.6-terra":
		return long(rate{in: 2, out: 12, read: 0.20, write: 2.50})
	case "gpt-5.5":
		return long(rate{in: 5, out: 30, read: 0.50})
	case "gpt-5.4":
		return long(rate{in: 2.50, out: 15, read: 0.25})
	case "gpt-5.4-mini":
		return rate{in: 0.75, out: 4.50, read: 0.075}, true
	case "gpt-5.4-nano":
		return rate{in: 0.20, out: 1.25, read: 0.02}, true
	case "gpt-5.3-codex", "gpt-5.2-codex", "gpt-5.2":
		return rate{in: 1.75, out: 14, read: 0.175}, true
	case "gpt-5.1", "gpt-5":
		return rate{in: 1.25, out: 10, read: 0.125}, true
	case "gpt-5-mini":
		return rate{in: 0.25, out: 2, read: 0.025}, true
	case "gpt-5-nano":
		return rate{in: 0.05, out: 0.40, read: 0.005}, true
	case "gpt-4.1", "o3":
		return rate{in: 2, out: 8, read: 0.50}, true
	case "gpt-4.1-mini":
		return rate{in: 0.40, out: 1.60, read: 0.10}, true
	case "gpt-4.1-nano":
		return rate{in: 0.10, out: 0.40, read: 0.025}, true
	case "gpt-4o":
		return rate{in: 2.50, out: 10, read: 1.25}, true
	case "gpt-4o-mini":
		return rate{in: 0.15, out: 0.60, read: 0.075}, true
	case "o4-mini":
		return rate{in: 1.10, out: 4.40, read: 0.275}, true
	}
	return rate{}, false
}
