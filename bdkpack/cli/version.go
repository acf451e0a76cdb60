package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCmd(io *IO) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of this command",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return versionRun(io) },
	}
}

func versionRun(io *IO) error {
	_, err := fmt.Fprintln(io.Out, version())
	return err
}

// version returns what this command is: its version, revision, compiler and system.
func version() string {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return fmt.Sprintf("bdk %s%s %s %s/%s", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
