package httpapi

import (
	"bytes"
	"cmp"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/artifact"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/blob"
	"github.com/bdk-lambda/bdk/shared/session"
)

// listArtifacts shows the caller's artifacts, the newest update first.
func (x *exchange) listArtifacts() error {
	q, err := x.query("kind", "sessionId", "limit")
	if err != nil {
		return err
	}
	limit, err := q.number("limit", artifact.DefaultLimit, 1, artifact.MaxLimit)
	if err != nil {
		return err
	}
	if kind, ok := q["kind"]; ok && kind == "" {
		return invalid("query parameter \"kind\" is empty: leave it out for artifacts of every kind")
	}
	if id, ok := q["sessionId"]; ok && !session.IsID(id) {
		return invalid("query parameter \"sessionId\" must be the id of a session, not %.80q", id)
	}
	query := artifact.Query{Owner: string(x.caller), Kind: q["kind"], SessionID: q["sessionId"], Limit: int(limit)}
	if _, local := auth.Loopback()(x.r); local && x.opts.Dev {
		query.Owner = ""
	}
	answer := struct {
		OK        bool                 `json:"ok"`
		Artifacts []bdk.ArtifactRecord `json:"artifacts"`
	}{OK: true, Artifacts: []bdk.ArtifactRecord{}}
	if store := x.agent.Artifacts(); store != nil {
		list, err := store.List(x.r.Context(), query)
		if err != nil {
			return err
		}
		answer.Artifacts = append(answer.Artifacts, list...)
	}
	x.json(http.StatusOK, answer)
	return nil
}

// artifactContent sends the file of an artifact, or parts of it.
func (x *exchange) artifactContent() error {
	if _, err := x.query(); err != nil {
		return err
	}
	record, content, err := x.artifactFile(x.r.PathValue("id"))
	if err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Content-Type", cmp.Or(mime.TypeByExtension(path.Ext(record.File)), "application/octet-stream"))
	// Never shown in place: the file may be a page, whose scripts would be those of this origin.
	h.Set("Content-Disposition", cmp.Or(mime.FormatMediaType("attachment", map[string]string{"filename": record.File}), "attachment"))
	h.Set("ETag", `"`+string(blob.RefOf(content))+`"`)
	http.ServeContent(&contentWriter{response: x.w, x: x}, x.r, "", time.Time{}, paced{bytes.NewReader(content), x})
	return nil
}

// artifactFile returns an artifact of the caller and the content of its file.
func (x *exchange) artifactFile(id string) (record bdk.ArtifactRecord, content []byte, err error) {
	store := x.agent.Artifacts()
	if store == nil {
		return record, nil, bdkerr.New(bdkerr.NotFound, "no artifact %.80q", id)
	}
	if record, err = store.Get(x.r.Context(), id); err != nil {
		return record, nil, err
	}
	if record.Owner != string(x.caller) {
		return record, nil, bdkerr.New(bdkerr.Forbidden, "this artifact belongs to another caller")
	}
	return store.Content(x.r.Context(), id)
}

// paced gives the client the time for each part that is read, however many there are.
type paced struct {
	io.ReadSeeker

	x *exchange
}

// Read implements [io.Reader].
func (p paced) Read(b []byte) (int, error) {
	p.x.extend()
	return p.ReadSeeker.Read(b)
}

// contentWriter gives the refusals of [http.ServeContent] the envelope of all errors.
type contentWriter struct {
	*response

	x       *exchange
	refused bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *contentWriter) WriteHeader(status int) {
	if status < http.StatusBadRequest {
		w.response.WriteHeader(status)
		return
	}
	w.refused = true
	h := w.Header()
	h.Del("Content-Disposition")
	h.Set("Cache-Control", "no-store")
	f := failure{Error: bdkerr.InvalidRequest, Message: "the file has no such range"}
	if status == http.StatusPreconditionFailed {
		f = failure{Error: bdkerr.Conflict, Message: "the file is not the one that the request is for: read it again"}
	}
	w.x.json(status, f)
}

// Write implements [http.ResponseWriter].
func (w *contentWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil // the text that the envelope stands for
	}
	return w.response.Write(b)
}
