// Package hooks has what looks on: one variable in each file, whose path names the hook.
package hooks

import "github.com/bdk-lambda/bdk/bdkpack/bdk/memory"

// Memory writes down every finished turn, for later sessions to read. Remove this file if nothing is to be remembered.
var Memory = memory.Hook()
