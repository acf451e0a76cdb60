package bdk

import (
	"context"
	"time"
)

// Files keep files durably, beside the workspace of a session: for code, not for the model. Those of a session are its own; [Files.Deployment]
// has those that all sessions of the agent share. A name is a relative path with slashes, as in a workspace, of at most 200 bytes; a file has at
// most 16 MiB. It is safe for concurrent use.
//
// What is below memory/ in the files of the deployment is shown to the model too: in each session's workspace, as it is when a turn first looks, up to
// 1 MiB of what was written last.
type Files interface {
	// Deployment returns the files that all sessions of the agent share.
	Deployment() Files
	// Read returns the content of a file; the error is ErrNotFound if there is none.
	Read(ctx context.Context, name string) ([]byte, error)
	// Write creates or replaces a file: readers see the old content or the new. The error is ErrDryRun in a dry-run session, as that of Append
	// and Remove.
	Write(ctx context.Context, name string, data []byte) error
	// Append adds to the end of a file, which is created if it is not there. Of many who append at once none is lost, and none is cut.
	Append(ctx context.Context, name string, data []byte) error
	// Remove removes a file. It is no error if there is none.
	Remove(ctx context.Context, name string) error
	// List returns the files whose names begin with prefix and come after another name, in the order of their names: at most limit,
	// which is cut to 1,000; 0 means 1,000.
	List(ctx context.Context, prefix, after string, limit int) ([]StoredFile, error)
}

// StoredFile is a file of [Files].
type StoredFile struct {
	Name      string    // as it was written
	Size      int64     // bytes
	UpdatedAt time.Time // in UTC
}
