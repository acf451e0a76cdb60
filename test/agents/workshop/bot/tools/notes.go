package tools

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Notes returns what note has written.
var Notes = bdk.DefineTool(bdk.ToolSpec{Description: "Read the ids of all calls of note that ran.", Effect: bdk.Read}, notes)

func notes(_ context.Context, call *bdk.Call, _ struct{}) ([]string, error) {
	raw, err := os.ReadFile(notesFile(call))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.Fields(string(raw)), err
}
