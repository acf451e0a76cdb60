package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/pack"
)

// packing are the options that pack and deploy share.
type packing struct {
	dir   string
	arch  string
	model string
}

func (p *packing) flags(cmd *cobra.Command) {
	dirFlag(cmd, &p.dir)
	f := cmd.Flags()
	f.StringVar(&p.arch, "arch", pack.ARM64, "architecture of the functions: arm64 or amd64")
	f.StringVar(&p.model, "model", "", "model instead of the agent's own, as PROVIDER:NAME; the file of a scripted one is packed")
}

func (p *packing) check() error {
	if p.arch != pack.ARM64 && p.arch != pack.AMD64 {
		return usagef("--arch %s: there is arm64 and amd64", p.arch)
	}
	return nil
}

// run packs into the folder out and shows the progress.
func (p *packing) run(ctx context.Context, io *IO, out string) (pack.Result, diag.List, error) {
	progress := startProgress(io)
	defer progress.end()
	return pack.Pack(ctx, p.dir, pack.Options{Arch: p.arch, Out: out, Model: p.model, Env: io.Env, Progress: progress.show})
}

type packOptions struct {
	packing
	out  string
	json bool
}

func newPackCmd(io *IO) *cobra.Command {
	var opts packOptions
	cmd := &cobra.Command{
		Use:   "pack [dir]",
		Short: "make of an agent what is deployed to AWS",
		Long: "pack builds the program of an agent's functions and writes for each agent in the folder <out>/<slug>/bootstrap.zip and\n" +
			"<out>/<slug>/manifest.json, which say all that infrastructure needs to know. The same sources give the same archive.\n\n" +
			"`bdk deploy` and `cdk deploy` pack by themselves.",
		Example: "  bdk pack my-agent --arch amd64\n  bdk pack --model scripted:demo.yaml",
		Args:    oneFolder(&opts.dir),
		RunE:    func(cmd *cobra.Command, _ []string) error { return packRun(cmd.Context(), io, opts) },
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&opts.out, "out", "dist", "folder to write to")
	cmd.Flags().BoolVar(&opts.json, "json", false, "print the result as JSON")
	return cmd
}

// packResult is the result for programs.
type packResult struct {
	OK bool `json:"ok"`
	pack.Result
	Diagnostics diag.List `json:"diagnostics"`
}

func packRun(ctx context.Context, io *IO, opts packOptions) error {
	if err := opts.check(); err != nil {
		return err
	}
	result, diags, err := opts.run(ctx, io, opts.out)
	if err != nil {
		return err
	}
	if opts.json {
		err = writeJSON(io.Out, packResult{!diags.HasErrors(), result, diags})
	} else {
		showDiagnostics(io, diags)
		for _, a := range result.Agents {
			showPacked(io, a)
		}
	}
	if err == nil && diags.HasErrors() {
		return exitError(1)
	}
	return err
}

// showPacked prints where an agent was packed to and how large it is.
func showPacked(io *IO, a pack.Agent) {
	path := filepath.Join(filepath.Dir(a.Path), a.Manifest.Archive)
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	fmt.Fprintf(io.Out, "%s is packed for %s into %s\n", a.Manifest.Slug, a.Manifest.Architecture, path)
	for _, c := range a.Manifest.Crons {
		fmt.Fprintf(io.Out, "  %s\n", nextTimes(io, c.Schedule, c.Cron))
	}
	showSize(io, "archive", a.Archive, pack.BudgetArchive)
	for _, f := range a.Files {
		budget := int64(0)
		if f.Name == "bootstrap" {
			budget = pack.BudgetBootstrap
		}
		showSize(io, "  "+f.Name, f.Bytes, budget)
	}
}

// showSize prints a size in megabytes, and what it should not exceed if there is such a limit.
func showSize(io *IO, what string, size, budget int64) {
	const mega = 1e6
	line := fmt.Sprintf("  %-24s %7.3f MB", what, float64(size)/mega)
	if budget > 0 {
		line += fmt.Sprintf(" of %.0f", float64(budget)/mega)
	}
	if budget > 0 && size > budget {
		line += ", which makes its functions start slowly"
	}
	fmt.Fprintln(io.Out, line)
}
