package pack_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/bdk-lambda/bdk/bdkpack/pack"
	"github.com/bdk-lambda/bdk/bdkpack/scaffold"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// world writes the files that the tests of building use, and more of them, and returns their folder.
func world(t *testing.T, more map[string]string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: builds programs, which takes seconds")
	}
	archive, err := txtar.ParseFile("../maingen/testdata/world.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"agent/go.mod": "module my-agent\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/bdk-lambda/bdk v0.0.0\n\texample.com/dep v0.0.0 // indirect\n)\n\n" +
		"replace github.com/bdk-lambda/bdk => ../bdk\n\nreplace example.com/dep => ../dep\n"}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	maps.Copy(files, more)
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// packed packs the agent of a world, which must be without mistakes.
func packed(t *testing.T, dir string, opts pack.Options) pack.Agent {
	t.Helper()
	result, diags, err := pack.Pack(t.Context(), dir, opts)
	if err != nil || len(diags) > 0 || len(result.Agents) != 1 {
		t.Fatalf("got %d agents, error %v and diagnostics\n%s", len(result.Agents), err, diags)
	}
	return result.Agents[0]
}

// agentWith is an agent.go with the given fields.
func agentWith(fields string) string {
	return "package bot\n\nimport \"github.com/bdk-lambda/bdk/bdkpack/bdk\"\n\nvar Agent = bdk.Agent{" + fields + "}\n"
}

func TestArchiveIsTheSameWhereverItIsPacked(t *testing.T) {
	t.Parallel()
	var sums []string
	for range 2 {
		root := world(t, nil)
		got := packed(t, filepath.Join(root, "agent"), pack.Options{Out: filepath.Join(root, "out"), Env: append(os.Environ(), "BDK_MODEL=openai:mine")})
		data, err := os.ReadFile(filepath.Join(root, "out", "agent", "bootstrap.zip"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if hex.EncodeToString(sum[:]) != got.Manifest.SHA256 || int64(len(data)) != got.Archive {
			t.Errorf("the archive has %d bytes and hash %x, want %d and %s", len(data), sum, got.Archive, got.Manifest.SHA256)
		}
		sums = append(sums, got.Manifest.SHA256)
		left, err := os.ReadDir(filepath.Join(root, "out", "agent"))
		if err != nil || len(left) != 2 {
			t.Errorf("beside the archive and the manifest there is something: %v, %v", left, err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("packed from two folders, the archives have hashes %s and %s", sums[0], sums[1])
	}
}

func TestAgentsOfAFolderArePackedAsEachByItself(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{
		"many/go.mod": "module example.com/many\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/bdk-lambda/bdk v0.0.0\n\texample.com/dep v0.0.0 // indirect\n)\n\n" +
			"replace github.com/bdk-lambda/bdk => ../bdk\n\nreplace example.com/dep => ../dep\n",
		"many/one/bot/agent.go": agentWith(`Model: "openai:a"`), "many/one/bot/instructions.md": "One.",
		"many/two/bot/agent.go": agentWith(`Model: "openai:b"`), "many/two/bot/instructions.md": "Two.",
	})
	result, diags, err := pack.Pack(t.Context(), filepath.Join(root, "many"), pack.Options{Out: filepath.Join(root, "out")})
	if err != nil || len(diags) > 0 || len(result.Agents) != 2 {
		t.Fatalf("got %d agents, error %v and diagnostics\n%s", len(result.Agents), err, diags)
	}
	for i, slug := range []string{"one", "two"} {
		alone := packed(t, filepath.Join(root, "many", slug), pack.Options{Out: filepath.Join(root, "alone")})
		if diff := cmp.Diff(result.Agents[i].Manifest, alone.Manifest); diff != "" || alone.Manifest.Slug != slug {
			t.Errorf("%s by itself (-with the other +alone):\n%s", slug, diff)
		}
	}
	if a, b := result.Agents[0].Manifest.SHA256, result.Agents[1].Manifest.SHA256; a == b {
		t.Error("the archives are the same")
	}
}

func TestManifestSaysWhatIsInTheArchive(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{
		"agent/bot/agent.go":    agentWith(`Model: "scripted:play/main.yaml"`),
		"agent/play/main.yaml":  "rules: [text: ok]",
		"agent/play/other.yaml": "is not packed",
	})
	got := packed(t, filepath.Join(root, "agent"), pack.Options{Arch: pack.AMD64, Out: filepath.Join(root, "out")})
	f, err := os.Open(got.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	var m deploy.Manifest
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	want := deploy.Manifest{
		Version: deploy.Version, Slug: "agent", Architecture: "amd64", Archive: "bootstrap.zip", SHA256: got.Manifest.SHA256,
		Models: []string{"scripted:play/main.yaml"}, Functions: deploy.Functions(), Routes: deploy.Routes(), Schedules: deploy.Schedules(), Subscribers: []deploy.Subscriber{}, Crons: []deploy.Cron{},
		Secrets: []string{}, Egress: []string{},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	files := unzip(t, filepath.Join(filepath.Dir(got.Path), m.Archive))
	if diff := cmp.Diff([]string{"bootstrap -rwxr-xr-x", "agent/play/main.yaml -rw-r--r--"}, files); diff != "" {
		t.Errorf("files of the archive (-want +got):\n%s", diff)
	}
	if got.Files[0].Bytes != got.Bootstrap || got.Files[1] != (pack.File{Name: "agent/play/main.yaml", Bytes: 17}) {
		t.Errorf("got files %+v and a program of %d bytes", got.Files, got.Bootstrap)
	}
}

func TestArchiveHasTheFilesOfSkillsAndSessions(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{
		"agent/bot/agent.go":                            agentWith(`Model: "scripted:bot/sandbox/workspace/play.yaml"`),
		"agent/bot/skills/deploy/SKILL.md":              "---\ndescription: Use when something goes out.\n---\nLook.",
		"agent/bot/skills/deploy/references/a b.md":     "a",
		"agent/bot/skills/deploy/scripts/run.sh":        "#!/bin/sh\n",
		"agent/bot/skills/deploy/.hidden":               "h",
		"agent/bot/skills/plain.md":                     "# Its text is in the program",
		"agent/bot/sandbox/workspace/play.yaml":         "rules: [text: ok]",
		"agent/bot/sandbox/workspace/.config/file.json": "{}",
		"agent/bot/sandbox/workspace/bin/empty":         "",
		"agent/bot/lib/data.txt":                        "is not packed",
	})
	if err := os.Chmod(filepath.Join(root, "agent", "bot", "skills", "deploy", "scripts", "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := packed(t, filepath.Join(root, "agent"), pack.Options{Arch: pack.AMD64, Out: filepath.Join(root, "out")})
	files := unzip(t, filepath.Join(filepath.Dir(got.Path), got.Manifest.Archive))
	slices.Sort(files)
	want := []string{
		"agent/bot/sandbox/workspace/.config/file.json -rw-r--r--",
		"agent/bot/sandbox/workspace/bin/empty -rw-r--r--",
		"agent/bot/sandbox/workspace/play.yaml -rw-r--r--",
		"agent/bot/skills/deploy/.hidden -rw-r--r--",
		"agent/bot/skills/deploy/SKILL.md -rw-r--r--",
		"agent/bot/skills/deploy/references/a b.md -rw-r--r--",
		"agent/bot/skills/deploy/scripts/run.sh -rwxr-xr-x",
		"bootstrap -rwxr-xr-x",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files of the archive (-want +got):\n%s", diff)
	}
}

func TestFilesThatFunctionsCannotHaveAreAMistake(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/bot/sandbox/workspace/0": ""})
	for i := range 4 { // of nothing, which takes no disk
		name := filepath.Join(root, "agent", "bot", "sandbox", "workspace", strconv.Itoa(i))
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 63<<20)); err != nil {
			t.Fatal(err)
		}
	}
	result, diags, err := pack.Pack(t.Context(), filepath.Join(root, "agent"), pack.Options{Out: filepath.Join(root, "out")})
	if err != nil || len(result.Agents) > 0 || len(diags) != 1 || diags[0].Code != "BDK175" || !strings.Contains(diags[0].Message, "264241152 bytes") {
		t.Errorf("got %d agents, error %v and diagnostics\n%s", len(result.Agents), err, diags)
	}
}

// TestRealAgentIsPackedWithoutWhatFunctionsMustNotLink packs what authors begin with, twice and from two folders.
func TestRealAgentIsPackedWithoutWhatFunctionsMustNotLink(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped: compiles and links the host, which takes up to a minute")
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	for range 2 {
		root := t.TempDir()
		dir := filepath.Join(root, "my-agent")
		if _, err := scaffold.Write(dir, scaffold.Options{Template: "pr-approver", Checkout: checkout}); err != nil {
			t.Fatal(err)
		}
		got := packed(t, dir, pack.Options{Arch: pack.AMD64, Out: filepath.Join(root, "out")})
		sums = append(sums, got.Manifest.SHA256)
		t.Logf("archive %d bytes, program %d bytes", got.Archive, got.Bootstrap)
		program := string(first(t, filepath.Join(filepath.Dir(got.Path), got.Manifest.Archive)))
		for name, want := range map[string]bool{
			"github.com/bdk-lambda/bdk/functions.": true, "my-agent/bot/tools.": true,
			"github.com/ncruces/": false, "text/template.": false, "html/template.": false, "net/rpc.": false, checkout + "/shared": false, root: false,
		} {
			if strings.Contains(program, name) != want {
				t.Errorf("the program holds %q: %t, want %t", name, !want, want)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the archives have hashes %s and %s", sums[0], sums[1])
	}
}

// first returns the first file of an archive.
func first(t *testing.T, path string) []byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	in, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unzip checks the program in an archive for amd64 and returns names and modes of all files.
func unzip(t *testing.T, path string) []string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var files []string
	for _, f := range z.File {
		files = append(files, f.Name+" "+f.Mode().String())
		if !f.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
	}
	program, err := elf.NewFile(bytes.NewReader(first(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if libs, err := program.ImportedLibraries(); program.Machine != elf.EM_X86_64 || len(libs) > 0 || err != nil {
		t.Errorf("the program is for %v and needs %v, %v", program.Machine, libs, err)
	}
	return files
}

func TestGivenModelTakesThePlaceOfTheAgentsOwn(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{
		"agent/bot/agent.go": agentWith(`Model: "scripted:missing.yaml"`),
		"there/other.yaml":   "rules: [text: ok]",
	})
	opts := pack.Options{Out: filepath.Join(root, "out"), Model: "scripted:" + filepath.Join(root, "there", "other.yaml")}
	got := packed(t, filepath.Join(root, "agent"), opts)
	if got.Manifest.Model != "scripted:agent/other.yaml" || len(got.Files) != 2 || got.Files[1].Name != "agent/other.yaml" {
		t.Errorf("got model %q and files %+v", got.Manifest.Model, got.Files)
	}
}

func TestManifestNamesKeysAndHostsOfTheModels(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"agent/bot/agent.go": agentWith("Model: model") + "\nconst model = `anthropic:` + `claude`\n"})
	for model, want := range map[string][2][]string{
		"":               {{"ANTHROPIC_API_KEY"}, {"api.anthropic.com"}},
		"openai:gpt":     {{"OPENAI_API_KEY"}, {"api.openai.com"}},
		"bedrock:nova:0": {{}, {}},
	} {
		m := packed(t, filepath.Join(root, "agent"), pack.Options{Out: filepath.Join(root, "out", "of"+model[:min(6, len(model))]), Model: model}).Manifest
		if diff := cmp.Diff(want, [2][]string{m.Secrets, m.Egress}); diff != "" || m.Model != model {
			t.Errorf("model %q: got model %q, keys and hosts (-want +got):\n%s", model, m.Model, diff)
		}
	}
}

func TestWhatCannotBeDeployedIsADiagnostic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		dir   string
		want  string
	}{
		"no agent":     {dir: "dep", want: "BDK101"},
		"a mistake":    {files: map[string]string{"agent/bot/tools/greet.go": "package tools\n"}, dir: "agent", want: "BDK140"},
		"no model":     {files: map[string]string{"agent/bot/agent.go": agentWith("")}, dir: "agent", want: "BDK171"},
		"an own model": {files: map[string]string{"agent/bot/agent.go": agentWith("Model: id()") + "\nfunc id() string { return \"openai:a\" }\n"}, dir: "agent", want: "BDK170"},
		"a script elsewhere": {
			files: map[string]string{"agent/bot/agent.go": agentWith(`Model: "scripted:../dep/play.yaml"`), "dep/play.yaml": "rules: [text: ok]"},
			dir:   "agent", want: "BDK172",
		},
		"a long name": {
			files: map[string]string{
				"agent/" + strings.Repeat("n", 101) + "/bot/agent.go":        agentWith(`Model: "openai:a"`),
				"agent/" + strings.Repeat("n", 101) + "/bot/instructions.md": "Help.",
			}, dir: "agent/" + strings.Repeat("n", 101), want: "BDK173",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := world(t, c.files)
			out := filepath.Join(root, "out")
			result, diags, err := pack.Pack(t.Context(), filepath.Join(root, c.dir), pack.Options{Out: out, Env: append(os.Environ(), "BDK_MODEL=openai:b")})
			if err != nil || !diags.HasErrors() || !strings.Contains(diags.String(), c.want) || len(result.Agents) > 0 {
				t.Errorf("got %d agents, error %v and diagnostics\n%s, want %s", len(result.Agents), err, diags, c.want)
			}
			for _, d := range diags {
				if d.Help == "" || d.File == "" {
					t.Errorf("no help or no place: %+v", d)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestWrongOptionsAreErrors(t *testing.T) {
	t.Parallel()
	root := world(t, map[string]string{"file": ""})
	for name, c := range map[string]struct {
		opts pack.Options
		want string
	}{
		"architecture":           {pack.Options{Arch: "x86_64"}, `no architecture "x86_64": functions run on arm64 or amd64`},
		"provider":               {pack.Options{Model: "gemini:x"}, `unknown provider "gemini"`},
		"script":                 {pack.Options{Model: "scripted:none.yaml"}, "finding the script of the model: "},
		"folder for a script":    {pack.Options{Model: "scripted:" + root}, "is no file"},
		"mistakes in a script":   {pack.Options{Model: "scripted:" + filepath.Join(root, "file")}, "1:1: rules: there are no rules"},
		"a file for a folder":    {pack.Options{Out: filepath.Join(root, "file")}, "making the folder for the packed agent: "},
		"a folder for a program": {pack.Options{Out: filepath.Join(root, "taken")}, "writing the archive: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.opts.Out == filepath.Join(root, "taken") { // by a folder with the name of the archive
				if err := os.MkdirAll(filepath.Join(root, "taken", "agent", "bootstrap.zip", "x"), 0o750); err != nil {
					t.Fatal(err)
				}
			}
			_, diags, err := pack.Pack(t.Context(), filepath.Join(root, "agent"), c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(diags) > 0 {
				t.Errorf("got error %v, want %q, and diagnostics %s", err, c.want, diags)
			}
			_ = filepath.WalkDir(filepath.Join(root, "taken"), func(path string, _ fs.DirEntry, _ error) error {
				if strings.HasPrefix(filepath.Base(path), ".") {
					t.Errorf("%s is left", path)
				}
				return nil
			})
		})
	}
}
