package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

type artifactInput struct {
	Kind  string          `json:"kind" jsonschema:"what it is, such as report"`
	Key   string          `json:"key" jsonschema:"names it among those of its kind; one that is there already is replaced"`
	Title string          `json:"title,omitempty" jsonschema:"what people read; the key if it is left out"`
	Data  json.RawMessage `json:"data,omitempty" jsonschema:"what belongs to it, as JSON"`
	Path  string          `json:"path,omitempty" jsonschema:"a file of the workspace that is kept with it, as it is now"`
}

// artifactTool records artifacts of the given kinds, of any if there are none. Recording one again has the same outcome, so a call that was cut
// off is made again.
func artifactTool(kinds bdk.ArtifactKinds) bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Records something that was made for people to find later, outside of this conversation: a report, a link, a file." + told(kinds),
		Idempotent:  true,
	}, func(ctx context.Context, call *bdk.Call, in artifactInput) (string, error) {
		if call.Artifacts == nil {
			return "", errors.New("this host keeps no artifacts")
		}
		a := bdk.Artifact{Kind: in.Kind, Key: in.Key, Title: in.Title, Path: in.Path}
		if len(in.Data) > 0 {
			a.Data = in.Data
		}
		id, err := call.Artifacts.Tag(ctx, a)
		if err != nil {
			return "", err
		}
		return "recorded as " + id, nil
	})
}

// told lists kinds.
func told(kinds bdk.ArtifactKinds) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(kinds.Kinds)) {
		k := kinds.Kinds[name]
		fmt.Fprintf(&b, "\n- %s: %s", name, oneLine(k.Description))
		if schema := k.Data.JSON(); schema != nil {
			fmt.Fprintf(&b, " Its data matches %s", schema)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return " The kinds are:" + b.String()
}
