package tools

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

type shoutInput struct {
	Text string `json:"text"`
}

// Shout is a script that runs beside the session's files. It says what it sees of the host, which must be nothing.
var Shout = bdk.DefineScript[shoutInput](bdk.ToolSpec{Description: "Say it loud.", Effect: bdk.Read}, `#!/bin/sh
set -eu
tr a-z A-Z
echo
cat docs/house-rules.md
env | grep -c -E '^(AWS_|BDK_MODEL|BDK_LAUNCH|NOTES_DIR|ANTHROPIC)' || true
`)
