package bdk

// ArtifactKinds are the kinds of artifacts that an agent makes. They are defined in bot/artifacts.go.
type ArtifactKinds struct{}
