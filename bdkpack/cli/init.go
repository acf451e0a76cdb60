package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/scaffold"
	"github.com/bdk-lambda/bdk/bdkpack/templates"
)

type initOptions struct {
	dir      string
	template string
	vars     []string
	module   string
	checkout string
}

func newInitCmd(io *IO) *cobra.Command {
	var opts initOptions
	cmd := &cobra.Command{
		Use:   "init <dir>",
		Short: "write a new agent into a new or empty folder",
		Long: "init writes a new agent into a new or empty folder. In a Go module it becomes part of that module, which gets a\n" +
			"requirement on the checkout this command was built from if it has none on bdk; elsewhere, or with --module, it gets\n" +
			"a go.mod of its own. Agents that are served together share a module. Nothing is downloaded.\n\nTemplates:\n" + templateList(),
		Example: "  bdk init my-agent --template pr-approver --var name=\"Release guard\"",
		Args: arguments(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("init takes one folder, for example `bdk init my-agent`; got %d", len(args))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.dir = args[0]
			return initRun(cmd.Context(), io, opts)
		},
	}
	cmd.Flags().StringVar(&opts.template, "template", "pr-approver", "what to start from")
	cmd.Flags().StringArrayVar(&opts.vars, "var", nil, "name=value: fill in a variable of the template; may be repeated")
	cmd.Flags().StringVar(&opts.module, "module", "", "path of a Go module of its own (default the module around it, else example.com/ and the name of the folder)")
	cmd.Flags().StringVar(&opts.checkout, "checkout", "", "checkout of bdk to build against (default the one this command was built from)")
	return cmd
}

func templateList() string {
	var b strings.Builder
	for _, t := range templates.List() {
		fmt.Fprintf(&b, "  %-14s %s\n", t.Name, t.Description)
		for _, v := range t.Vars {
			fmt.Fprintf(&b, "  %-14s --var %s=%q: %s\n", "", v.Name, v.Default, v.Help)
		}
	}
	return b.String()
}

func initRun(_ context.Context, io *IO, opts initOptions) error {
	vars, err := parseVars(opts.vars)
	if err != nil {
		return err
	}
	if err := knownTemplate(opts.template); err != nil {
		return err
	}
	checkout, err := findCheckout(opts.checkout)
	if err != nil {
		return err
	}
	got, err := scaffold.Write(opts.dir, scaffold.Options{
		Template: opts.template, Vars: vars, Module: opts.module, Checkout: checkout,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Out, "Wrote %d files of the template %s into %s.\n", len(got.Files), opts.template, opts.dir)
	explainModule(io, got)
	bdk, dir := quoteArg(io.name()), quoteArg(opts.dir)
	fmt.Fprintf(io.Out, "\nNext:\n  %s dev %s    # serve it and reload on change\n"+
		"  %s run --dir %s --message \"Review pull request 42\"    # one turn in the terminal\n"+
		"  %s deploy %s    # the same on AWS\n", bdk, dir, bdk, dir, bdk, dir)
	return nil
}

func knownTemplate(name string) error {
	var names []string
	for _, t := range templates.List() {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, name) {
		return usagef("there is no template %q; there are: %s", name, strings.Join(names, ", "))
	}
	return nil
}

// explainModule says what an author should know about the module that a new agent belongs to.
func explainModule(io *IO, got *scaffold.Result) {
	if filepath.Dir(got.GoMod) != got.Dir || !slices.Contains(got.Files, "go.mod") {
		fmt.Fprintf(io.Out, "\nIt is part of the module %s of %s.\n", got.Module, got.GoMod)
	}
	if got.Added != "" {
		fmt.Fprintf(io.Out, "So that it builds, this was added there, and to go.sum what belongs to it:\n  %s\n", strings.ReplaceAll(got.Added, "\n", "\n  "))
	}
	if got.Missing != "" {
		fmt.Fprintf(io.Out, "The module vendors its dependencies and does not know bdk yet. Before the agent builds, run in its folder:\n  %s\n", got.Missing)
	}
	if got.GoWork != "" {
		fmt.Fprintf(io.Out, "\n%s does not use the module: run `go work use %s` beside it, or set GOWORK=off.\n", got.GoWork, filepath.Dir(got.GoMod))
	}
}

func parseVars(list []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, v := range list {
		name, value, ok := strings.Cut(v, "=")
		switch _, twice := vars[name]; {
		case !ok || name == "":
			return nil, usagef("--var %q is not of the form name=value", v)
		case twice:
			return nil, usagef("--var %s is given twice", name)
		}
		vars[name] = value
	}
	return vars, nil
}

// findCheckout returns the given folder, or the checkout that this command was built from.
func findCheckout(given string) (string, error) {
	if given != "" {
		dir, err := filepath.Abs(given)
		if err != nil || !scaffold.IsCheckout(dir) {
			return "", fmt.Errorf("--checkout %s: there is no checkout of bdk", given)
		}
		return dir, nil
	}
	_, source, _, _ := runtime.Caller(0)
	built := filepath.Dir(filepath.Dir(filepath.Dir(source)))
	if filepath.IsAbs(built) && scaffold.IsCheckout(built) {
		return built, nil
	}
	// The checkout was moved, or its path was left out of the build: the command may still be in its bin folder.
	if exe, err := os.Executable(); err == nil {
		for dir := filepath.Dir(exe); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if scaffold.IsCheckout(dir) {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("the checkout that this command was built from is gone (it was %s): name one with --checkout, "+
		"or run `make build` in a checkout and use its bin/bdk", built)
}

// quoteArg returns s as one argument of a shell.
func quoteArg(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
