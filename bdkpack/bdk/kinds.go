package bdk

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// ArtifactKinds are the kinds of artifacts that an agent makes. They are defined in bot/artifacts.go:
//
//	var Artifacts = bdk.ArtifactKinds{Kinds: map[string]bdk.ArtifactKind{"report": {Description: "A weekly report.", Data: bdk.ResultOf[report]()}}, Tool: true}
//
// With the zero value there are artifacts of any kind.
type ArtifactKinds struct {
	// Kinds are all that there are, by name: at most 64 lower-case letters, digits, - and _. Artifacts of another kind are refused. Default: any.
	Kinds map[string]ArtifactKind

	// Tool offers the model the tool tag_artifact, with which it records what it has made, and files of its workspace.
	Tool bool

	// Max is how many artifacts of the agent are kept: beyond it those that were updated longest ago are removed. On AWS all are kept. Default: 1,000.
	Max int
}

// ArtifactKind describes artifacts of one kind.
type ArtifactKind struct {
	Description string       // what they are, for the model and for people
	Data        ResultSchema // what their data must be, which is required then; default: any, or none
}

// kindPattern matches the names of kinds.
func kindPattern() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`) }

// Err returns all that is wrong with the definition, one mistake a line; nil if nothing is.
func (k ArtifactKinds) Err() error {
	var errs []error
	if k.Max < 0 {
		errs = append(errs, fmt.Errorf("the Max is %d: leave it out for 1,000", k.Max))
	}
	for _, name := range slices.Sorted(maps.Keys(k.Kinds)) {
		if !kindPattern().MatchString(name) {
			errs = append(errs, fmt.Errorf("the kind %.80q has no name for one: use 1 to 64 lower-case letters, digits, - and _, beginning with a letter or digit", name))
		}
		if err := k.Kinds[name].Data.Err(); err != nil {
			errs = append(errs, fmt.Errorf("the Data of the kind %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
