package harness_test

import (
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/harness"
)

func ExampleTools() {
	agent := bdk.Agent{Tools: []string{bdk.ToolSkill, bdk.ToolRead}}
	o := harness.Options{
		Allow:  agent.Tools,
		Skills: []bdk.NamedSkill{{Name: "research", Skill: bdk.Skill{Description: "Use when a topic is unfamiliar.", Markdown: "Gather evidence first."}}},
	}
	tools, err := harness.Tools(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tools {
		fmt.Println(t.Name)
	}
	fmt.Print(harness.Instructions(o))
	// Output:
	// read
	// skill
	// ## Skills
	//
	// A skill is a procedure for a kind of task. When one fits, load it with the tool skill before you begin, and follow it. The skills are:
	//
	// - research: Use when a topic is unfamiliar.
}
