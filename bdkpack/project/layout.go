package project

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// folder is an agent's folder with the Go files that define something.
type folder struct {
	agent  *Agent
	root   string   // absolute path of bot/ or agent/
	pkgs   []string // directories of packages with definitions
	files  []source // that define something
	model  answer   // whether the configuration names a model
	forms  []string // of instructions, usable or not, beside agent.go
	inline answer   // whether the configuration has instructions
	allow  answer   // whether the configuration says which tools of the harness are offered
	subs   []*sub   // in name order
}

// answer is what can be said without running code.
type answer int

const (
	no answer = iota
	yes
	maybe
)

// source is a Go file that must contain one definition.
type source struct {
	path string // absolute
	kind string // the definition's type in package bdk
	name string // what the path names it
	sub  *sub   // nil if it is the agent's own
	slot *slot  // that it is in, nil if it is in none
}

// findAgents fills in the workspace's agents.
func (l *loader) findAgents() {
	dir := l.ws.Dir
	l.watchRoot(dir)
	if root, twice := agentRoot(dir); root != "" {
		l.ws.Single = true
		l.addAgent(dir, root, twice)
		return
	}
	l.ws.Inputs.Parents = append(l.ws.Inputs.Parents, dir)
	l.readDir(dir)
	for _, child := range children(dir) {
		if root, twice := agentRoot(child); root != "" {
			l.addAgent(child, root, twice)
		}
	}
	if len(l.ws.Agents) > 0 {
		return
	}
	help := "create bot/instructions.md in it, or run `bdk init` in an empty folder"
	if base := filepath.Base(dir); base == "bot" || base == "agent" {
		help = "give the folder that contains " + base + "/ instead"
	}
	l.fail(codeNoAgent, diag.Pos{File: dir}, help, "no agent here: neither this folder nor one in it contains bot/ or agent/")
}

// watchRoot adds to the inputs what decides which folder of dir has the agent's files.
func (l *loader) watchRoot(dir string) {
	names := []string{"bot", "agent"}
	if isDir(filepath.Join(dir, "agent")) {
		for _, name := range rootNames() {
			names = append(names, filepath.Join("agent", name))
		}
	}
	for _, name := range names {
		l.ws.Inputs.Files = append(l.ws.Inputs.Files, filepath.Join(dir, name))
	}
}

// agentRoot returns which folder of dir has the agent's files, "" if dir is no agent, and whether there are two.
func agentRoot(dir string) (root string, twice bool) {
	bot := isDir(filepath.Join(dir, "bot"))
	agent := isDir(filepath.Join(dir, "agent")) && looksLikeRoot(filepath.Join(dir, "agent"))
	switch {
	case bot:
		return "bot", agent
	case agent:
		return "agent", false
	}
	return "", false
}

// rootNames are the files and folders by which a folder called agent is told from a Go package of that name.
func rootNames() []string {
	return []string{"agent.go", "instructions.md", "instructions.go", "instructions", "tools"}
}

// looksLikeRoot says whether a folder called agent has an agent's files: it may as well be a Go package of that name.
func looksLikeRoot(dir string) bool {
	return slices.ContainsFunc(rootNames(), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

func (l *loader) addAgent(dir, root string, twice bool) {
	slug := filepath.Base(dir)
	pos := diag.Pos{File: dir}
	if twice {
		l.fail(codeTwoRoots, diag.Pos{File: filepath.Join(dir, "agent")}, "keep one of them", "the agent has both bot/ and agent/")
	}
	switch {
	case !slugPattern().MatchString(slug):
		l.fail(codeBadSlug, pos, "rename the folder: letters, digits, - and _, beginning with a letter or digit",
			"the folder's name %q cannot name an agent", slug)
	case slug == "v1" || slug == "playground" || slug == "docs":
		l.fail(codeReservedSlug, pos, "rename the folder", "the name %q belongs to the server's own routes", slug)
	}
	l.ws.Agents = append(l.ws.Agents, Agent{Slug: slug, Dir: dir, Root: root, Tools: []Named{}})
}

func slugPattern() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`) }

// scan reads an agent's folder, all but its Go code.
func (l *loader) scan(a *Agent) *folder {
	f := &folder{agent: a, root: filepath.Join(a.Dir, a.Root)}
	l.watchTree(f.root)
	l.watchRoot(a.Dir)
	l.watch(Inputs{Dirs: []string{f.root}, Files: []string{filepath.Join(a.Dir, "agent.go"), filepath.Join(a.Dir, "evals"), filepath.Join(a.Dir, "instructions.md")}})
	if evals := filepath.Join(a.Dir, "evals"); isDir(evals) {
		l.unsupported(evals)
	}
	l.checkBeside(f)
	for _, e := range l.readDir(f.root) {
		path := filepath.Join(f.root, e.Name())
		info, ok := l.stat(path)
		if e.Name() == "agent.go" {
			f.model = maybe
		}
		switch {
		case !ok || hidden(e.Name()):
		case info.IsDir():
			l.scanDir(f, path)
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"):
			l.scanGoFile(f, path)
		default:
			l.scanFile(f, path)
		}
	}
	return f
}

// checkBeside complains about a configuration in the agent's folder itself.
func (l *loader) checkBeside(f *folder) {
	path := filepath.Join(f.agent.Dir, "agent.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil || !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(bdkPackage) }) {
		return
	}
	if _, err := os.Lstat(filepath.Join(f.root, "agent.go")); err == nil {
		return // it is something else
	}
	f.model = maybe // there is one mistake, not another one of a missing model
	l.fail(codeUnknownEntry, diag.Pos{File: path}, "move it into "+f.agent.Root+"/", "agent.go is not discovered here")
}

// watchTree adds a folder of an agent and those below it to the inputs.
func (l *loader) watchTree(root string) {
	const most = 1000 // an agent is small; what is beyond is data
	n := 0
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { // what cannot be read is said elsewhere
		switch {
		case err != nil || n == most:
			return fs.SkipAll
		case !e.IsDir():
			return nil
		case path != root && (hidden(e.Name()) || e.Name() == "testdata" || e.Name() == "sandbox"):
			return fs.SkipDir
		}
		n++
		l.ws.Inputs.Trees = append(l.ws.Inputs.Trees, path)
		return nil
	})
}

// scanDir looks at a folder of bot/.
func (l *loader) scanDir(f *folder, path string) {
	name := filepath.Base(path)
	switch {
	case name == "lib" || name == "testdata":
	case name == "instructions":
		f.forms = append(f.forms, path)
		f.agent.Instructions = l.readMarkdown(f, l.markdownFiles(path))
	case name == "tools":
		l.scanTools(f, path)
	case name == "skills":
		l.scanSkills(f, path)
	case name == "subagents":
		l.scanSubagents(f, path)
	case name == "sandbox":
		l.scanSandbox(f, path)
	case slices.Contains(laterDirs(), name):
		l.unsupported(path)
	case slotOf(name) != nil:
		l.scanSlot(f, *slotOf(name), path, "")
	default:
		known := append(laterDirs(), "tools", "instructions", "skills", "subagents", "sandbox")
		for _, s := range slots() {
			known = append(known, s.dir)
		}
		if meant := nearest(name, known); meant != "" {
			f.inline = maybe // there is one mistake, not another one of missing instructions
			l.fail(codeUnknownEntry, diag.Pos{File: path}, "did you mean "+meant+"/? Rename the folder; helpers belong in lib/",
				"%s/ is not a folder that is discovered", name)
			return
		}
		l.warn(codeUnknownEntry, diag.Pos{File: path}, "move helper packages and data into lib/, which is never discovered",
			"%s/ is not a folder that is discovered", name)
	}
}

func laterDirs() []string {
	return []string{"extensions"}
}

func (l *loader) unsupported(path string) {
	l.warn(codeUnsupported, diag.Pos{File: path}, "it has no effect yet; remove it, or keep it for a later version",
		"%s is not supported by this version", filepath.Base(path))
}

// scanGoFile looks at a Go file of bot/.
func (l *loader) scanGoFile(f *folder, path string) {
	switch name := filepath.Base(path); name {
	case "agent.go":
		f.inline = maybe
		l.addSource(f, source{path: path, kind: "Agent", name: "the agent"})
	case "instructions.go":
		f.forms = append(f.forms, path)
		l.addSource(f, source{path: path, kind: "Instructions", name: "the instructions"})
	case "doc.go":
	case "artifacts.go":
		l.addSource(f, source{path: path, kind: "ArtifactKinds", name: "the kinds of artifacts"})
	default:
		help := "move helpers into lib/, and each tool into a file of its own in tools/"
		if meant := nearest(name, []string{"agent.go", "instructions.go"}); meant != "" {
			help = "did you mean " + meant + "? Otherwise " + help
			f.model = maybe
		}
		l.warn(codeStrayGoFile, diag.Pos{File: path}, help, "nothing in %s is discovered", name)
	}
}

// scanFile looks at a file of bot/ that is no Go code.
func (l *loader) scanFile(f *folder, path string) {
	name := filepath.Base(path)
	if name == "instructions.md" {
		f.forms = append(f.forms, path)
		f.agent.Instructions = l.readMarkdown(f, []string{path})
		return
	}
	if meant := nearest(name, []string{"instructions.md", "agent.go", "instructions.go"}); meant != "" {
		f.inline, f.model = maybe, maybe // there is one mistake, not another one of what is missing
		l.fail(codeUnknownEntry, diag.Pos{File: path}, "did you mean "+meant+"?", "%s is not a file that is discovered", name)
	}
}

// scanTools finds the files of tools/.
func (l *loader) scanTools(f *folder, dir string) {
	l.watch(Inputs{Dirs: []string{dir}, Trees: []string{dir}})
	for _, e := range l.readDir(dir) {
		path := filepath.Join(dir, e.Name())
		info, ok := l.stat(path)
		switch {
		case !ok || hidden(e.Name()):
		case info.IsDir():
			l.scanNested(path)
		case strings.HasSuffix(path, "_test.go"):
			l.checkTest(path)
		case slices.Contains([]string{".ts", ".js", ".mjs", ".py", ".sh"}, filepath.Ext(path)):
			l.warn(codeUnknownEntry, diag.Pos{File: path}, "write the tool in Go, or move the file into lib/", "%s is not a file that is discovered", e.Name())
		case filepath.Ext(path) == ".go":
			if e.Name() == "doc.go" && l.onlyComment(path) {
				continue
			}
			name := strings.TrimSuffix(e.Name(), ".go")
			l.checkToolName(path, name)
			l.addSource(f, source{path: path, kind: "Tool", name: name})
		}
	}
}

// checkTest complains about a tool in a file that is taken for a test.
func (l *loader) checkTest(path string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return // go test says why
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].IsExported() && isDefineTool(spec.Values[0]) {
				l.warn(codeConstrained, diag.Pos{File: path}, "rename the file if "+spec.Names[0].Name+" is a tool of the agent",
					"the tool in this file is not discovered: a name that ends in _test.go is a test's")
				return
			}
		}
	}
}

func isDefineTool(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "DefineTool" || sel.Sel.Name == "DefineScript")
}

// scanNested complains about Go files in a folder of tools/.
func (l *loader) scanNested(dir string) {
	for _, e := range l.readDir(dir) {
		if filepath.Base(dir) != "testdata" && filepath.Ext(e.Name()) == ".go" && !hidden(e.Name()) {
			l.fail(codeNested, diag.Pos{File: filepath.Join(dir, e.Name())}, "move the file directly into tools/, or helpers into lib/",
				"tools in a folder of tools/ are not discovered")
			return
		}
	}
}

// checkToolName complains about a name no tool can have.
func (l *loader) checkToolName(path, name string) {
	pos := diag.Pos{File: path}
	switch {
	case strings.Contains(name, "__"):
		l.fail(codeReservedName, pos, "rename the file with single underscores", "the tool name %q contains __, which is reserved", name)
	case !toolPattern().MatchString(name):
		help := "rename the file: at most 64 lower-case letters, digits and _, beginning with a letter"
		if better := snake(name); toolPattern().MatchString(better) && better != name {
			help += ", such as " + better + ".go"
		}
		l.fail(codeToolName, pos, help, "the file name %q cannot name a tool", name+".go")
	}
}

func toolPattern() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`) }

// addSource records a file with a definition, unless its package is a program.
func (l *loader) addSource(f *folder, s source) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, s.path, nil, parser.PackageClauseOnly)
	if errors.Is(err, fs.ErrPermission) {
		l.unreadable(s.path, err)
		return
	}
	if err == nil && file.Name.Name == "main" {
		p := fset.Position(file.Name.Pos())
		l.fail(codeMain, diag.Pos{File: s.path, Line: p.Line, Col: p.Column},
			"name the package "+filepath.Base(filepath.Dir(s.path))+"; the program is generated", "a definition cannot be in package main")
		return
	}
	f.files = append(f.files, s)
	if dir := filepath.Dir(s.path); !slices.Contains(f.pkgs, dir) {
		f.pkgs = append(f.pkgs, dir)
	}
}

// onlyComment says whether a Go file declares nothing.
func (l *loader) onlyComment(path string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	return err == nil && len(file.Decls) == 0
}

// readDir returns the entries of a directory in name order. That it cannot be read is a diagnostic.
func (l *loader) readDir(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.unreadable(dir, err)
	}
	return entries
}

// stat follows symbolic links. That it cannot is a diagnostic.
func (l *loader) stat(path string) (fs.FileInfo, bool) {
	info, err := os.Stat(path)
	if err == nil {
		return info, true
	}
	if link, lerr := os.Lstat(path); lerr == nil && link.Mode()&fs.ModeSymlink != 0 {
		target, _ := os.Readlink(path) // only for the message
		l.fail(codeBrokenLink, diag.Pos{File: path}, "mend or remove the link", "the symbolic link to %q leads nowhere", target)
		return nil, false
	}
	l.unreadable(path, err)
	return nil, false
}

func (l *loader) unreadable(path string, err error) {
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		err = perr.Err
	}
	l.fail(codeUnreadable, diag.Pos{File: path}, "make it readable", "it cannot be read: %v", err)
}

// hidden says whether the go command ignores a name as well.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
