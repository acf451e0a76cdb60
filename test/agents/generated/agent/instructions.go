// Package agent is a fixture: an agent without configuration, rooted at agent/, whose instructions are generated.
package agent

import (
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
)

// Instructions are put together when the program starts.
var Instructions = bdk.Instructions(strings.Join([]string{"You echo.", "Call `echo_raw` with what you are told."}, "\n"))
