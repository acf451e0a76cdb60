package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bdk-lambda/bdk/bdkpack/templates"
)

// infraMain is the program that describes an agent's stack to the CDK command line.
const infraMain = `// Command infra describes to the CDK what the agent becomes on AWS.
package main

import (
	"os"

	"github.com/bdk-lambda/bdk/infra"
)

func main() { os.Exit(infra.Main()) }
`

// addInfra adds what the CDK command line needs in the agent's folder: a program and a cdk.json like that of the checkout.
func (c *checkout) addInfra(files map[string]templates.File) error {
	data, err := os.ReadFile(filepath.Join(c.dir, "cdk.json"))
	if err != nil {
		return fmt.Errorf("reading the checkout: %w", err)
	}
	if data, err = cdkJSON(data); err != nil {
		return fmt.Errorf("making cdk.json: %w", err)
	}
	files["cdk.json"] = templates.File{Data: data, Mode: 0o644}
	files["infra/main.go"] = templates.File{Data: []byte(infraMain), Mode: 0o644}
	return nil
}

// cdkJSON returns the cdk.json of an agent's folder: the settings of the checkout, for the agent beside it.
func cdkJSON(theirs []byte) ([]byte, error) {
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(theirs, &settings); err != nil {
		return nil, err
	}
	context := map[string]json.RawMessage{}
	if err := json.Unmarshal(settings["context"], &context); err != nil {
		return nil, err
	}
	context["agent"] = json.RawMessage(`"."`)
	flags, err := json.Marshal(context)
	if err != nil {
		return nil, err
	}
	settings["app"], settings["context"] = json.RawMessage(`"go run ./infra"`), flags
	data, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, data, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}
