package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Note writes down the id of its call: the effect that must not happen twice.
var Note = bdk.DefineTool(bdk.ToolSpec{Description: "Write down that the tool ran, then wait.", Effect: bdk.Write}, note)

func note(ctx context.Context, call *bdk.Call, in waitInput) (string, error) {
	f, err := os.OpenFile(notesFile(call), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = fmt.Fprintf(f, "%s\n", call.ID); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = in.wait(ctx)
	}
	return "noted", err
}

// notesFile returns the path of the file with the ids. On AWS, which has no state root, a test says where.
func notesFile(call *bdk.Call) string {
	root := call.StateRoot
	if root == "" {
		root = os.Getenv("NOTES_DIR")
	}
	return filepath.Join(root, "notes")
}
