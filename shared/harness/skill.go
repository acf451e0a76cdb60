package harness

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// maxSkillFiles bounds the files that the answer of skill lists.
const maxSkillFiles = 200

// skillDir returns the folder of a skill in workspaces.
func skillDir(name string) string { return path.Join(workspace.AgentDir, "skills", name) }

// skillFile returns the path of a skill's text in workspaces.
func skillFile(name string) string { return path.Join(skillDir(name), "SKILL.md") }

type skillInput struct {
	Name string `json:"name" jsonschema:"the skill"`
	File string `json:"file,omitempty" jsonschema:"a file beside the skill, relative to it; leave it out to load the skill itself"`
}

func skillTool(skills []bdk.NamedSkill) bdk.Tool {
	return bdk.DefineTool(bdk.ToolSpec{
		Description: "Loads a skill: answers with its text and a list of the files beside it. With file, answers with that file instead.",
		Effect:      bdk.Read,
	}, func(ctx context.Context, call *bdk.Call, in skillInput) (string, error) {
		names := make([]string, len(skills))
		for i, s := range skills {
			if s.Name == in.Name {
				return loadSkill(ctx, call, s, in.File)
			}
			names[i] = s.Name
		}
		return "", fmt.Errorf("there is no skill %.80q: the skills are %s", in.Name, strings.Join(names, ", "))
	})
}

// loadSkill returns the text of a skill, or of a file beside it.
func loadSkill(ctx context.Context, call *bdk.Call, s bdk.NamedSkill, file string) (string, error) {
	dir := skillDir(s.Name) + "/"
	if file != "" {
		file = strings.TrimPrefix(strings.TrimPrefix(file, "./"), dir)
		return read(ctx, call, readInput{Path: dir + file})
	}
	files, err := listFiles(ctx, call)
	if err != nil && (ctx.Err() != nil || s.Dir != "" || len(s.Skill.Files) > 0) {
		return "", err
	}
	var lines []string
	for _, f := range files {
		if strings.HasPrefix(f.Path, dir) && f.Path != skillFile(s.Name) {
			lines = append(lines, fmt.Sprintf("- %s (%s)", f.Path, describe(f)))
		}
	}
	if len(lines) == 0 {
		return s.Skill.Markdown, nil
	}
	if more := len(lines) - maxSkillFiles; more > 0 {
		lines = append(lines[:maxSkillFiles], fmt.Sprintf("- and %d more", more))
	}
	return fmt.Sprintf("%s\n\n---\nThe skill has these files in the workspace; paths in its text are relative to %s:\n%s",
		strings.TrimRight(s.Skill.Markdown, "\n"), dir, strings.Join(lines, "\n")), nil
}
