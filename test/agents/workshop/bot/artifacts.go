package bot

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

type score struct {
	Points int `json:"points"`
}

// Artifacts are the kinds of artifacts of the agent.
var Artifacts = bdk.ArtifactKinds{
	Kinds: map[string]bdk.ArtifactKind{
		"report": {Description: "What somebody has handed in."},
		"score":  {Description: "Points of a game.", Data: bdk.ResultOf[score]()},
	},
	Tool: true,
}
