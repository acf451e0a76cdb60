// Package researcher is a subagent of the fixture.
package researcher

import "github.com/bdk-lambda/bdk/bdkpack/bdk"

// Agent is the subagent's configuration.
var Agent = bdk.Agent{Description: "Use for questions that take a look around."}
