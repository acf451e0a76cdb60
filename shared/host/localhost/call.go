package localhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/auth"
	"github.com/bdk-lambda/bdk/shared/httpapi"
)

// call runs a tool without a model and without a socket. The body of the request comes from standard input, and the answer, as
// POST /v1/tools/{name} gives it, goes to standard output, also that to a call that fails.
func (p *Program) call(ctx context.Context) error {
	project, err := p.project(p.Config.Agent)
	if err != nil {
		return err
	}
	p.Projects = []bdk.Project{project}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	api := httpapi.New(s.list(), httpapi.Options{
		Auth:   func(*http.Request) (auth.Principal, bool) { return auth.Local, true },
		Single: true, Blobs: s.blobs, Closing: ctx.Done(), Grace: time.Millisecond,
	})
	var a answer
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/tools/"+url.PathEscape(p.Config.Tool), p.Stdin)
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		api.ServeHTTP(&a, r)
		_, err = p.Stdout.Write(a.body.Bytes())
	}
	if err != nil {
		err = fmt.Errorf("calling the tool: %w", err)
	}
	return errors.Join(err, s.release()) // no turn runs in this process: its models are closed
}

// answer is an answer in memory.
type answer struct {
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

func (a *answer) WriteHeader(int) {}

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
