package cli

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/bdk-lambda/bdk/shared/clock"
)

// IO is the world as a command sees it.
type IO struct {
	Name     string // how the command was called; default: bdk
	In       io.Reader
	Out, Err io.Writer
	Env      []string // key=value
	Color    bool     // Err takes terminal colours
	Terminal bool     // Err is a terminal: a line may be written over
	Pretty   bool     // Out is a terminal: a person reads what is printed
	Asks     bool     // In and Err are a terminal: a question can be answered
	Clock    clock.Clock
	HTTP     *http.Client
}

// SystemIO returns the IO of this process.
func SystemIO() *IO {
	terminal := isatty.IsTerminal(os.Stderr.Fd())
	return &IO{
		Name: os.Args[0], In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Env:      os.Environ(),
		Terminal: terminal,
		Pretty:   isatty.IsTerminal(os.Stdout.Fd()),
		Asks:     terminal && isatty.IsTerminal(os.Stdin.Fd()),
		Color:    terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Clock:    clock.System{},
		HTTP:     &http.Client{},
	}
}

// env returns the value of an environment variable, "" if it is not set.
func (o *IO) env(key string) string {
	for _, kv := range slices.Backward(o.Env) {
		if k, v, _ := strings.Cut(kv, "="); k == key {
			return v
		}
	}
	return ""
}

// name returns how an author calls this command from here.
func (o *IO) name() string {
	if strings.ContainsRune(o.Name, os.PathSeparator) {
		return o.Name
	}
	return "bdk"
}
