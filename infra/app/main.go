// Command app is the CDK program of this repository: cdk.json names it.
package main

import (
	"os"

	"github.com/bdk-lambda/bdk/infra"
)

func main() { os.Exit(infra.Main()) }
