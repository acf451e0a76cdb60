// Command bdk makes, checks, runs and serves agents. `bdk help` lists what it does.
package main

import (
	"os"

	"github.com/bdk-lambda/bdk/bdkpack/cli"
)

func main() { os.Exit(cli.Main()) }
