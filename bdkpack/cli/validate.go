package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
	"github.com/bdk-lambda/bdk/bdkpack/project"
)

type validateOptions struct {
	dir  string
	json bool
}

func newValidateCmd(io *IO) *cobra.Command {
	var opts validateOptions
	cmd := &cobra.Command{
		Use:   "validate [dir]",
		Short: "report every mistake in an agent's folder",
		Long: "validate reads and type-checks the files of an agent, without running any of them, and reports all mistakes at\n" +
			"once. The exit code is 1 if one of them is an error.",
		Args: oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, _ []string) error { return validateRun(cmd.Context(), io, opts) },
	}
	dirFlag(cmd, &opts.dir)
	cmd.Flags().BoolVar(&opts.json, "json", false, "print the result as JSON")
	return cmd
}

// validation is the result for programs.
type validation struct {
	OK          bool      `json:"ok"`
	Agents      []string  `json:"agents"`
	Diagnostics diag.List `json:"diagnostics"`
}

func validateRun(ctx context.Context, io *IO, opts validateOptions) error {
	ws, diags, err := project.Load(ctx, opts.dir, &project.Options{Env: io.Env})
	if err != nil {
		return err
	}
	slugs := []string{}
	for _, a := range ws.Agents {
		slugs = append(slugs, a.Slug)
	}
	switch {
	case opts.json:
		err = writeJSON(io.Out, validation{!diags.HasErrors(), slugs, diags})
	case diags.HasErrors():
		showDiagnostics(io, diags)
	default:
		showDiagnostics(io, diags)
		_, err = fmt.Fprintf(io.Out, "%s: no errors\n", strings.Join(slugs, ", "))
		for _, a := range ws.Agents {
			for _, s := range a.Schedules {
				fmt.Fprintln(io.Out, nextTimes(io, s.Name, s.Cron))
			}
		}
	}
	if err == nil && diags.HasErrors() {
		return exitError(1)
	}
	return err
}
