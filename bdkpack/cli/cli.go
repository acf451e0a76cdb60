// Package cli is the bdk command. Each subcommand is a file: its options, the function that reads them from flags and the
// function that runs it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line of this process and returns its exit code: 0 for success, 1 for a failure, 2 for wrong usage
// and 130 if it was interrupted, which is the normal end of serve, dev and logs.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, SystemIO(), os.Args[1:])
}

// Run runs the bdk command with the given arguments and returns its exit code, see [Main].
func Run(ctx context.Context, io *IO, args []string) int {
	root := newRoot(io)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return exitCode(ctx, io, cmd, err)
}

func newRoot(io *IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "bdk",
		Short: "make, check, run, serve and deploy durable AI agents",
		Long: "bdk makes, checks, runs, serves and deploys durable AI agents. An agent is a folder of small files; " +
			"`bdk init` writes one to start from.",
		Example: "  bdk init my-agent --template pr-approver\n  cd my-agent && bdk dev",
		Args:    knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
		Version:                    version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newInitCmd(io), newValidateCmd(io), newInfoCmd(io), newDevCmd(io),
		newServeCmd(io), newRunCmd(io), newCallCmd(io), newPackCmd(io), newDeployCmd(io), newLogsCmd(io), newVersionCmd(io),
	)
	root.SetHelpCommand(newHelpCmd(io, root))
	return root
}

// exitCode tells the user what went wrong and returns the exit code for it.
func exitCode(ctx context.Context, io *IO, cmd *cobra.Command, err error) int {
	var usage *usageError
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(io.Err, "bdk: %v\nRun `%s --help` for how it is used.\n", err, cmd.CommandPath())
		return 2
	case ctx.Err() != nil && (cmd.Name() == "serve" || cmd.Name() == "dev" || cmd.Name() == "logs"):
		return 0
	case ctx.Err() != nil:
		return 130
	}
	fmt.Fprintf(io.Err, "bdk: %v\n", err)
	return 1
}

// exitError ends the command with an exit code; what there is to say has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// knownCommand refuses the arguments of the root command: they name no subcommand.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Sprintf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err += fmt.Sprintf("; did you mean `bdk %s`?", near[0])
	}
	return usagef("%s", err)
}

// arguments checks the positional arguments of a command.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// dirFlag adds the flag that names the agent's folder.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", ".", "folder of the agent, or of several agents")
}

// oneFolder lets the agent's folder be named by the argument of a command as well.
func oneFolder(dir *string) cobra.PositionalArgs {
	return arguments(func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("%s takes one folder, got %d", cmd.Name(), len(args))
		case len(args) == 1 && cmd.Flags().Changed("dir"):
			return fmt.Errorf("the folder is given twice, as %q and with --dir", args[0])
		case len(args) == 1:
			*dir = args[0]
		}
		return nil
	})
}
