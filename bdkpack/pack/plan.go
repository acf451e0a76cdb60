package pack

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/deploy"
	"github.com/bdk-lambda/bdk/shared/hook"
	"github.com/bdk-lambda/bdk/shared/model"
	"github.com/bdk-lambda/bdk/shared/model/scripted"
)

// The codes of packing. A code is never given another meaning.
const (
	codeComputed = "BDK170" // a model that is no constant
	codeNoModel  = "BDK171" // an agent that would be deployed without a model
	codeOutside  = "BDK172" // a script that is not in the agent's folder
	codeLongSlug = "BDK173" // a name too long for what is made on AWS
	codeFiles    = "BDK174" // files of sessions that cannot be read
	codeProgram  = "BDK206" // a connection that cannot be opened on AWS
	codeTooLarge = "BDK175" // files that functions cannot have
)

// maxUnzipped bounds what a function's archive has in it, in bytes.
const maxUnzipped = 250 << 20

// maxSlug bounds the names that are made from a slug: a stack's name has 128 characters, of which infrastructure needs some;
// those of an API's stage, a log group and a dashboard are longer.
const maxSlug = 100

// plan is what to pack of an agent.
type plan struct {
	agent    project.Agent
	manifest deploy.Manifest // but for the hash
	files    []entry         // beside the program
	packed   map[string]int  // index in files, by name in the archive
}

// completeModel checks the model that is given.
func (p *packer) completeModel() error {
	if p.Model == "" {
		return nil
	}
	provider, name, err := model.ParseID(p.Model)
	if err != nil || provider != model.ProviderScripted {
		return err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return fmt.Errorf("finding the script of the model: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("finding the script of the model: %s is no file", name)
	}
	if _, err := scripted.Load(name); err != nil {
		return err
	}
	p.script = name
	return nil
}

// plan returns what to pack of an agent, and what keeps it from being deployed.
func (p *packer) plan(a project.Agent) (plan, diag.List) {
	models := modelsOf(a)
	pl := plan{agent: a, packed: map[string]int{}, manifest: deploy.Manifest{
		Version: deploy.Version, Slug: a.Slug, Architecture: p.Arch, Archive: archiveName,
		Models: append([]string{}, models...), Model: p.Model,
		Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(), Crons: crons(a),
		Subscribers: subscribers(a),
	}}
	var diags diag.List
	if len(a.Slug) > maxSlug {
		diags = append(diags, mistake(codeLongSlug, diag.Pos{File: a.Dir}, "rename the folder",
			"the agent's name has %d characters: on AWS it can have %d", len(a.Slug), maxSlug))
	}
	for _, name := range a.Programs {
		diags = append(diags, diag.Diagnostic{
			Code: codeProgram, Severity: diag.Warning, Pos: diag.Pos{File: a.Dir}, Help: "reach the server by a URL",
			Message: fmt.Sprintf("the connection %s is a program to start: on AWS there are none, so its tools will be missing", name),
		})
	}
	switch {
	case p.script != "":
		inArchive := path.Join(deploy.AgentRoot, filepath.Base(p.script))
		pl.manifest.Model = model.ProviderScripted + ":" + inArchive
		pl.add(entry{name: inArchive, path: p.script, mode: 0o644})
		models = nil
	case p.Model != "":
		models = []string{p.Model}
	default:
		diags = append(diags, pl.own()...)
	}
	pl.manifest.Secrets, pl.manifest.Egress = needs(models)
	return pl, append(diags, pl.workspaceFiles()...)
}

// crons returns the schedules of an agent.
func crons(a project.Agent) []deploy.Cron {
	all := make([]deploy.Cron, 0, len(a.Schedules))
	for _, s := range a.Schedules {
		c, _ := deploy.NewCron(s.Name, s.Cron) // discovery has found no fault with it
		all = append(all, c)
	}
	return all
}

// subscribers returns who is told of events: the hooks that handle some.
func subscribers(a project.Agent) []deploy.Subscriber {
	all := []deploy.Subscriber{}
	for _, h := range a.Hooks {
		if len(h.Events) > 0 {
			all = append(all, deploy.Subscriber{Name: hook.Named(h.Name), Events: h.Events})
		}
	}
	return all
}

// modelsOf returns the models of an agent, then those of its subagents, each once.
func modelsOf(a project.Agent) []string {
	models := slices.Clone(a.Models)
	for _, s := range a.Subagents {
		for _, id := range s.Models {
			if !slices.Contains(models, id) {
				models = append(models, id)
			}
		}
	}
	return models
}

// workspaceFiles adds the files that sessions get: those of the skills, and the first ones.
func (pl *plan) workspaceFiles() diag.List {
	a := pl.agent
	var dirs []string
	for _, s := range a.Skills {
		dirs = append(dirs, s.Dir)
	}
	var diags diag.List
	var size int64
	for _, dir := range append(dirs, a.Seed) {
		if dir == "" {
			continue
		}
		root := filepath.Join(a.Dir, filepath.FromSlash(dir))
		err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			size += info.Size()
			rel, err := filepath.Rel(a.Dir, name)
			mode := fs.FileMode(0o644)
			if info.Mode()&0o111 != 0 {
				mode = 0o755
			}
			pl.add(entry{name: path.Join(deploy.AgentRoot, filepath.ToSlash(rel)), path: name, mode: mode})
			return err
		})
		if err != nil {
			diags = append(diags, mistake(codeFiles, diag.Pos{File: root}, "make it readable", "the files cannot be packed: %v", err))
		}
	}
	if size > maxUnzipped {
		diags = append(diags, mistake(codeTooLarge, diag.Pos{File: filepath.Join(a.Dir, a.Root)}, "keep large files in a bucket, and let a tool fetch them",
			"the files of skills and sessions have %d bytes: on AWS they can have %d, together with the program", size, maxUnzipped))
	}
	return diags
}

// own adds the scripts of the agent's own models.
func (pl *plan) own() diag.List {
	a := pl.agent
	pos := diag.Pos{File: filepath.Join(a.Dir, a.Root)}
	if a.Config != nil {
		pos = diag.Pos{File: filepath.Join(a.Dir, filepath.FromSlash(a.Config.File)), Line: a.Config.Line}
	}
	switch {
	case a.Computed || slices.ContainsFunc(a.Subagents, func(s project.Subagent) bool { return s.Computed }):
		return diag.List{mistake(codeComputed, pos, "write the models as constants, or name one with --model",
			"which models the agent has is not known without running it, so what they need on AWS is not known either")}
	case len(a.Models) == 0:
		return diag.List{mistake(codeNoModel, pos, "set Model there, or name one with --model", "the agent has no model, so it could not answer")}
	}
	var diags diag.List
	for _, id := range modelsOf(a) {
		provider, name, _ := model.ParseID(id) // discovery has found no fault with it
		if provider != model.ProviderScripted {
			continue
		}
		local := filepath.FromSlash(name)
		if !filepath.IsLocal(local) {
			diags = append(diags, mistake(codeOutside, pos, "move it into the agent's folder, or name it with --model scripted:FILE",
				"the script of the model, %s, is not in the agent's folder, so it would not be there on AWS", name))
			continue
		}
		pl.add(entry{name: path.Join(deploy.AgentRoot, filepath.ToSlash(local)), path: filepath.Join(a.Dir, local), mode: 0o644})
	}
	return diags
}

// add adds a file in place of one with the same name in the archive.
func (pl *plan) add(e entry) {
	if i, ok := pl.packed[e.name]; ok {
		pl.files[i] = e
		return
	}
	pl.packed[e.name] = len(pl.files)
	pl.files = append(pl.files, e)
}

// needs returns the keys and the hosts outside of AWS that models need, both sorted.
func needs(models []string) (secrets, egress []string) {
	secrets, egress = []string{}, []string{}
	for _, id := range models {
		switch provider, _, _ := model.ParseID(id); provider { // an id without a provider needs nothing
		case model.ProviderOpenAI:
			secrets, egress = append(secrets, "OPENAI_API_KEY"), append(egress, "api.openai.com")
		case model.ProviderAnthropic:
			secrets, egress = append(secrets, "ANTHROPIC_API_KEY"), append(egress, "api.anthropic.com")
		}
	}
	slices.Sort(secrets)
	slices.Sort(egress)
	return slices.Compact(secrets), slices.Compact(egress)
}

func mistake(code string, pos diag.Pos, help, format string, args ...any) diag.Diagnostic {
	src, _ := os.ReadFile(pos.File) // without a source there is no excerpt
	return diag.Diagnostic{
		Code: code, Severity: diag.Error, Pos: pos, Message: fmt.Sprintf(format, args...), Help: help, Excerpt: diag.SourceLine(src, pos.Line),
	}
}
