package infra

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
)

// Read returns the configurations that settings ask for. What it says goes to stderr.
func Read(ctx context.Context, settings map[string]any, stderr io.Writer) ([]Config, error) {
	return read(ctx, func(name *string) any { return settings[*name] }, stderr)
}

// Asked returns the names of the settings that are read, sorted.
func Asked(ctx context.Context) []string {
	names := map[string]bool{}
	_, _ = read(ctx, func(name *string) any { names[*name] = true; return nil }, io.Discard) // no agent is named
	return slices.Sorted(maps.Keys(names))
}

// Bedrock returns what an agent may call at Bedrock, a line for each statement.
func Bedrock(c Config, partition, place string) []string {
	var all []string
	for _, m := range bedrock(modelIDs(c), partition, place) {
		line := strings.Join(m.arns, " ")
		if m.profile != "" {
			line += " through " + m.profile
		}
		all = append(all, line)
	}
	return all
}

// Fault returns what a panic of the CDK means.
func Fault(panicked any) error { return fault(panicked) }
