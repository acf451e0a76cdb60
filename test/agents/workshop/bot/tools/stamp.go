package tools

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Stamp is a script that changes a file of the session, once a person has approved.
var Stamp = bdk.DefineScript[struct{}](bdk.ToolSpec{Description: "Stamp the papers.", NeedsApproval: bdk.Always}, `#!/bin/sh
echo stamped >> stamp.txt
`)
