package model

import (
	"fmt"
	"slices"
	"strings"
)

// The providers a model id can name.
const (
	ProviderAnthropic = "anthropic"
	ProviderBedrock   = "bedrock"
	ProviderOpenAI    = "openai"   // also any server that speaks its protocol
	ProviderScripted  = "scripted" // the name is the path of a script
)

// ParseID splits a model id of the form PROVIDER:NAME at its first colon. The name may hold further colons, as
// those of Bedrock do. The error is made for the person who wrote the id.
func ParseID(id string) (provider, name string, err error) {
	providers := []string{ProviderAnthropic, ProviderBedrock, ProviderOpenAI, ProviderScripted}
	provider, name, found := strings.Cut(id, ":")
	switch {
	case id == "":
		return "", "", fmt.Errorf("the model id is empty: write it as PROVIDER:NAME, where PROVIDER is one of %s",
			strings.Join(providers, ", "))
	case !found:
		return "", "", fmt.Errorf("model id %q names no provider: write it as PROVIDER:NAME, where PROVIDER is one of %s",
			id, strings.Join(providers, ", "))
	case !slices.Contains(providers, provider):
		return "", "", fmt.Errorf("model id %q names the unknown provider %q: use one of %s",
			id, provider, strings.Join(providers, ", "))
	case name == "" || strings.TrimSpace(name) != name:
		return "", "", fmt.Errorf("model id %q has no proper name after %q: write the provider's own name of the model there, without spaces around it",
			id, provider+":")
	}
	return provider, name, nil
}
