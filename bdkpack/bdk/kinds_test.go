package bdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

func TestArtifactKinds(t *testing.T) {
	t.Parallel()
	of := func(name string, kind bdk.ArtifactKind) bdk.ArtifactKinds {
		return bdk.ArtifactKinds{Kinds: map[string]bdk.ArtifactKind{name: kind}}
	}
	for name, test := range map[string]struct {
		kinds bdk.ArtifactKinds
		want  string
	}{
		"none":     {bdk.ArtifactKinds{}, ""},
		"any data": {of("report-1", bdk.ArtifactKind{Description: "Any."}), ""},
		"a schema": {of("report", bdk.ArtifactKind{Data: bdk.ResultOf[struct{ A int }]()}), ""},
		"a name":   {of("Report", bdk.ArtifactKind{}), `the kind "Report" has no name for one`},
		"no name":  {of("", bdk.ArtifactKind{}), `the kind "" has no name for one`},
		"no JSON":  {of("report", bdk.ArtifactKind{Data: bdk.RawResult(json.RawMessage("{"))}), `the Data of the kind "report"`},
		"limit":    {bdk.ArtifactKinds{Max: -1}, "the Max is -1"},
	} {
		err := test.kinds.Err()
		if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
