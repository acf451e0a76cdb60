package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/event"
)

// made is what the code of a session records for people.
type made struct {
	*Engine

	session bdk.SessionInfo
	read    func(context.Context, string) ([]byte, error) // a file of the session
	record  record
}

var _ bdk.Artifacts = (*made)(nil)

// Tag implements [bdk.Artifacts].
func (m *made) Tag(ctx context.Context, a bdk.Artifact) (string, error) {
	in := artifact.Tagged{Kind: a.Kind, Key: a.Key, Title: a.Title, Owner: m.session.Owner, SessionID: m.session.ID}
	var err error
	if a.Data != nil {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false) // it would count against the limit
		if err := encoder.Encode(a.Data); err != nil {
			return "", fmt.Errorf("encoding the data of an artifact: %w", err)
		}
		in.Data = b.Bytes()
	}
	if a.Path != "" {
		in.File = path.Base(a.Path)
		if in.Content, err = m.read(ctx, a.Path); err != nil {
			return "", fmt.Errorf("reading the file of an artifact: %w", err)
		}
	}
	kept, err := m.deps.Artifacts.Tag(ctx, in)
	if err != nil {
		return "", err
	}
	return kept.ID, m.record(ctx, event.ArtifactTagged{ID: kept.ID, Kind: kept.Kind, Key: kept.Key, Title: kept.Title})
}

// List implements [bdk.Artifacts].
func (m *made) List(ctx context.Context, q bdk.ArtifactQuery) ([]bdk.ArtifactRecord, error) {
	return m.deps.Artifacts.List(ctx, artifact.Query{Owner: m.session.Owner, Kind: q.Kind, SessionID: q.SessionID, Limit: q.Limit})
}
