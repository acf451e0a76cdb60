package infra_test

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/infra"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// A CDK program of one's own adds the stack of an agent that `bdk pack` has packed to what else it makes.
func ExampleNewStack() { //nolint:testableexamples // it needs an agent that is packed
	defer jsii.Close()
	data, err := os.ReadFile("dist/my-agent/manifest.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	manifest, err := deploy.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	app := awscdk.NewApp(nil)
	stack, err := infra.NewStack(app, infra.Config{
		Manifest: manifest, Archive: "dist/my-agent/" + manifest.Archive,
		Origins: []string{"https://app.example.com"}, Email: "ops@example.com",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	awscdk.Tags_Of(stack).Add(jsii.String("team"), jsii.String("agents"), nil)
	app.Synth(nil)
}
