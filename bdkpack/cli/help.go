package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type helpOptions struct {
	root *cobra.Command
	path []string // of the command
	all  bool
	json bool
}

func newHelpCmd(o *IO, root *cobra.Command) *cobra.Command {
	opts := helpOptions{root: root}
	cmd := &cobra.Command{
		Use:     "help [command]",
		Short:   "explain a command",
		Example: "  bdk help serve\n  bdk help --all\n  bdk help serve --json",
		Args:    arguments(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			opts.path = args
			return helpRun(o, opts)
		},
	}
	cmd.Flags().BoolVar(&opts.all, "all", false, "explain every command with all its flags")
	cmd.Flags().BoolVar(&opts.json, "json", false, "for programs: name, usage and flags as JSON")
	return cmd
}

func helpRun(o *IO, opts helpOptions) error {
	cmd, rest, err := opts.root.Find(opts.path)
	if err != nil || len(rest) > 0 {
		return cmp.Or(knownCommand(opts.root, opts.path), err)
	}
	cmd.InitDefaultHelpFlag()
	switch {
	case opts.all && opts.json:
		return writeJSON(o.Out, describeAll(opts.root))
	case opts.json:
		return writeJSON(o.Out, describe(cmd))
	case opts.all:
		return helpAll(o, opts.root)
	}
	return cmd.Help()
}

// helpAll prints the help of every command.
func helpAll(o *IO, root *cobra.Command) error {
	for i, cmd := range visible(root) {
		if i > 0 {
			fmt.Fprint(o.Out, "\n"+strings.Repeat("-", 72)+"\n\n")
		}
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			return err
		}
	}
	return nil
}

func visible(root *cobra.Command) []*cobra.Command {
	return append([]*cobra.Command{root}, slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return c.Hidden })...)
}

// commandDoc describes a command to programs.
type commandDoc struct {
	Name     string       `json:"name"`
	Usage    string       `json:"usage"`
	Summary  string       `json:"summary"`
	Help     string       `json:"help,omitempty"`
	Example  string       `json:"example,omitempty"`
	Flags    []flagDoc    `json:"flags"`
	Commands []commandDoc `json:"commands,omitempty"`
}

type flagDoc struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // bool, int, string, stringArray or duration
	Default string `json:"default"`
	Help    string `json:"help"`
}

func describe(cmd *cobra.Command) commandDoc {
	doc := commandDoc{
		Name: cmd.Name(), Usage: cmd.UseLine(), Summary: cmd.Short, Help: cmd.Long, Example: cmd.Example, Flags: []flagDoc{},
	}
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			doc.Flags = append(doc.Flags, flagDoc{f.Name, f.Value.Type(), f.DefValue, f.Usage})
		}
	})
	return doc
}

func describeAll(root *cobra.Command) commandDoc {
	doc := describe(root)
	for _, cmd := range visible(root)[1:] {
		doc.Commands = append(doc.Commands, describe(cmd))
	}
	return doc
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// flagError explains a flag that cannot be understood.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		takes := map[string]string{"int": "a number", "bool": "true or false"}[f.Value.Type()]
		if f.Name == "port" {
			takes = "a number from 0 to 65535"
		}
		if takes != "" {
			return usagef("--%s %s: it takes %s", f.Name, wrong.GetValue(), takes)
		}
		return usagef("--%s %s cannot be used", f.Name, wrong.GetValue())
	}
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "unknown flag: --")
	if !unknown {
		return &usageError{err}
	}
	known := []string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean --%s?", near)
	}
	return usagef("%s", text)
}

// nearest returns the known name that differs least from name, "" if all differ much.
func nearest(name string, known []string) string {
	// The command library measures the distance of commands; a flag is measured as if it were one.
	probe := &cobra.Command{Use: "probe", SuggestionsMinimumDistance: 2}
	for _, k := range known {
		probe.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	return cmp.Or(append(probe.SuggestionsFor(name), "")...)
}
