package harness

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/workspace"
)

// scriptFile returns the path of an agent tool in workspaces.
func scriptFile(name string) string { return path.Join(workspace.AgentDir, "tools", name) }

// Base returns the files that every workspace of an agent has: AGENTS.md, see [Catalog], the skills in .agents/skills/ and the
// agent tools in .agents/tools/. Dir is the agent's folder, where the folders of the skills are; their files are read when they
// are asked for. A skill that does not bring a SKILL.md gets one. The error names the skill or tool of which a file cannot be
// in a workspace, such as a link.
func Base(p bdk.Project, dir string) (*workspace.Layer, error) {
	files := map[string][]byte{}
	if text := Catalog(p); text != "" {
		files["AGENTS.md"] = []byte(text)
	}
	base, err := workspace.NewLayer(files)
	if err != nil {
		return nil, err
	}
	for _, s := range p.Skills {
		if base, err = withSkill(base, s, dir); err != nil {
			return nil, fmt.Errorf("the skill %s (%s): %w", s.Name, s.Source, err)
		}
	}
	for _, t := range p.Tools {
		if t.Tool.Script() == "" {
			continue
		}
		if base, err = base.With(scriptFile(t.Name), []byte(t.Tool.Script()), true); err != nil {
			return nil, fmt.Errorf("the tool %s (%s): %w", t.Name, t.Source, err)
		}
	}
	return base, nil
}

// withSkill returns base with the files of a skill.
func withSkill(base *workspace.Layer, s bdk.NamedSkill, dir string) (*workspace.Layer, error) {
	files := map[string][]byte{skillFile(s.Name): skillText(s)}
	for name, content := range s.Skill.Files {
		p := skillDir(s.Name) + "/" + name
		if p == skillFile(s.Name) {
			return nil, bdkerr.New(bdkerr.InvalidRequest, "Files has SKILL.md, which is made of Description and Markdown: leave it out")
		}
		files[p] = []byte(content)
	}
	made, err := workspace.NewLayer(files)
	if err != nil {
		return nil, err
	}
	var own *workspace.Layer
	if s.Dir != "" {
		if own, err = folder(dir, s); err != nil {
			return nil, err
		}
	}
	return workspace.Merge(base, made, own)
}

// folder returns the files in the folder of a skill, which is in dir and reached without leaving it.
func folder(dir string, s bdk.NamedSkill) (*workspace.Layer, error) {
	name := filepath.FromSlash(s.Dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the agent's folder: %w", err)
	}
	info, err := root.Lstat(name)
	switch err := errors.Join(err, root.Close()); {
	case err != nil:
		return nil, fmt.Errorf("looking for the folder of the skill: %w", err)
	case info.Mode().Type() != fs.ModeDir:
		return nil, bdkerr.New(bdkerr.InvalidRequest, "%s is no folder (%s)", s.Dir, info.Mode())
	}
	return workspace.LayerOf(filepath.Join(dir, name), skillDir(s.Name))
}

// skillText returns the SKILL.md of a skill that does not bring one.
func skillText(s bdk.NamedSkill) []byte {
	return fmt.Appendf(nil, "---\nname: %s\ndescription: %s\n---\n\n%s\n", quote(s.Name), quote(s.Skill.Description), strings.TrimSpace(s.Skill.Markdown))
}

// quote returns a string as JSON and YAML write it.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) //nolint:errchkjson // a string always encodes
	return strings.TrimSpace(b.String())
}

// Catalog returns the AGENTS.md of an agent: its instructions, then the agent tools and the skills that its workspaces have,
// with their paths, for whatever works there without being offered them. It is "" if there are none of these.
func Catalog(p bdk.Project) string {
	var tools, skills strings.Builder
	for _, t := range p.Tools {
		if t.Tool.Script() != "" {
			fmt.Fprintf(&tools, "\n\n### %s\n\n%s\n\n- Run: `%s`\n- Input: `%s`",
				t.Name, strings.TrimSpace(t.Tool.Spec().Description), scriptFile(t.Name), t.Tool.InputSchema())
		}
	}
	for _, s := range p.Skills {
		fmt.Fprintf(&skills, "\n- %s (`%s`): %s", s.Name, skillFile(s.Name), oneLine(s.Skill.Description))
	}
	var parts []string
	if text := strings.TrimSpace(string(cmp.Or(p.Agent.Instructions, p.Instructions))); text != "" {
		parts = append(parts, text)
	}
	if tools.Len() > 0 {
		parts = append(parts, "## Tools\n\nThese programs run in the folder of this file. Each reads its input from standard input, as one JSON object "+
			"that matches the schema, and prints its result."+tools.String())
	}
	if skills.Len() > 0 {
		parts = append(parts, "## Skills\n\nProcedures for kinds of tasks. When one fits, read it before you begin, and follow it.\n"+skills.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "\n\n") + "\n"
}
