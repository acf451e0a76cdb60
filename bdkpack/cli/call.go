package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goio "io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

const maxInput = 4 << 20 // bytes; a server takes no more

type callOptions struct {
	tool      string
	input     string
	inputFile string
	session   string
	token     string // continuation token
	json      bool

	dir       string
	agent     string
	stateRoot string
	url       string
	bearer    string
}

func newCallCmd(io *IO) *cobra.Command {
	var opts callOptions
	cmd := &cobra.Command{
		Use:   "call <tool>",
		Short: "run one tool of an agent, without a model",
		Long: "call runs a server tool with the input you give it, as a model would, and prints the result. No model is asked.\n" +
			"The exit code is 0 if the tool has answered and 1 if it failed.\n\n" +
			"The agent in the folder runs in this terminal, with --url a server is asked. With --session the call has the files of\n" +
			"that session and is recorded in it; otherwise its files are gone afterwards.",
		Example: "  bdk call inspect_pr --dir my-agent --input '{\"prUrl\":\"https://example.com/pull/42\"}'\n" +
			"  bdk call inspect_pr --url http://127.0.0.1:3000/my-agent --input-file input.json\n" +
			"  jq -n '{prUrl: $ENV.PR}' | bdk call inspect_pr --input-file - --json",
		Args: arguments(func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("name the tool to call; `bdk info` lists them")
			case len(args) > 1:
				return fmt.Errorf("call takes one tool, got %d: input goes with --input, the folder with --dir", len(args))
			case args[0] == "":
				return errors.New("the name of the tool is empty")
			}
			opts.tool = args[0]
			return nil
		}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			switch {
			case f.Changed("input") && f.Changed("input-file"):
				return usagef("--input and --input-file exclude each other")
			case opts.session != "" && opts.token != "":
				return usagef("--session and --continuation-token exclude each other")
			case opts.url != "" && (f.Changed("dir") || opts.agent != "" || opts.stateRoot != ""):
				return usagef("--url asks a server: --dir, --agent and --state-root have no meaning with it")
			}
			return callRun(cmd.Context(), io, opts)
		},
	}
	dirFlag(cmd, &opts.dir)
	f := cmd.Flags()
	f.StringVar(&opts.input, "input", "", "input of the tool, a JSON object (default {})")
	f.StringVar(&opts.inputFile, "input-file", "", "file with the input, - for standard input")
	f.StringVar(&opts.session, "session", "", "session to bind the call to")
	f.StringVar(&opts.token, "continuation-token", "", "continuation token to bind the call by, <channel>:<key>")
	f.BoolVar(&opts.json, "json", false, "print the whole answer as JSON, not the result alone")
	f.StringVar(&opts.agent, "agent", "", "slug of the agent, if the folder holds several")
	f.StringVar(&opts.stateRoot, "state-root", "", "folder of durable state (default that of bdk serve with --session, otherwise a temporary one)")
	f.StringVar(&opts.url, "url", "", "URL of a served agent, for example http://127.0.0.1:3000/my-agent")
	f.StringVar(&opts.bearer, "bearer-token", "", "token for --url ("+tokenEnv+" works too)")
	return cmd
}

func callRun(ctx context.Context, io *IO, opts callOptions) error {
	body, err := callBody(io, opts)
	if err != nil {
		return err
	}
	ask := callLocal
	if opts.url != "" {
		ask = callRemote
	}
	answer, err := ask(ctx, io, opts, body)
	if err != nil {
		return err
	}
	return showAnswer(io, opts, answer)
}

// callBody returns what is sent to POST /v1/tools/{name}.
func callBody(io *IO, opts callOptions) ([]byte, error) {
	input, flag := []byte(opts.input), "--input"
	if opts.inputFile != "" {
		flag = "--input-file"
		in := io.In
		if opts.inputFile != "-" {
			file, err := os.Open(opts.inputFile)
			if err != nil {
				return nil, fmt.Errorf("reading the input: %w", err)
			}
			defer file.Close() //nolint:errcheck // read only
			in = file
		}
		var err error
		if input, err = goio.ReadAll(goio.LimitReader(in, maxInput+1)); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	}
	input = bytes.TrimSpace(input)
	switch {
	case len(input) > maxInput:
		return nil, usagef("%s has over %d bytes", flag, maxInput)
	case len(input) == 0 && opts.inputFile == "":
		input = []byte("{}")
	case !json.Valid(input):
		return nil, usagef("%s is not JSON: give one object, such as '{\"name\": \"value\"}'", flag)
	case input[0] != '{':
		return nil, usagef("%s is not a JSON object: give one, such as '{\"name\": \"value\"}'", flag)
	}
	// written out, not encoded: the input must arrive as it was given
	body := append([]byte(`{"input":`), input...)
	for name, value := range map[string]string{"sessionId": opts.session, "continuationToken": opts.token} {
		if value == "" {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
		body = append(append(body, `,"`+name+`":`...), text...)
	}
	return append(body, '}'), nil
}

func callRemote(ctx context.Context, io *IO, opts callOptions, body []byte) ([]byte, error) {
	c, err := server(io, opts.url, opts.bearer)
	if err != nil {
		return nil, err
	}
	return c.Call(ctx, opts.tool, body)
}

func callLocal(ctx context.Context, io *IO, opts callOptions, body []byte) ([]byte, error) {
	program, _, err := build(ctx, io, opts.dir)
	if err != nil {
		return nil, err
	}
	c, err := launchConfig("call", program)
	if err != nil {
		return nil, err
	}
	c.Tool = opts.tool
	if c.Agent, err = chooseAgent(opts.agent, program); err != nil {
		return nil, err
	}
	if opts.stateRoot == "" && opts.session == "" && opts.token == "" {
		if c.StateRoot, err = os.MkdirTemp("", "bdk-call-"); err != nil {
			return nil, fmt.Errorf("making a folder for the state: %w", err)
		}
		defer os.RemoveAll(c.StateRoot) //nolint:errcheck // the system cleans up what is left
	} else if c.StateRoot, err = stateRoot(opts.stateRoot, program); err != nil {
		return nil, err
	}
	return callProgram(ctx, io, program.Path, c, body)
}

// shown is what of an answer is for people.
type shown struct {
	OK        bool            `json:"ok"`
	Error     string          `json:"error"`
	Message   string          `json:"message"`
	Available []string        `json:"available"`
	IsError   bool            `json:"isError"`
	Result    json.RawMessage `json:"result"`
	Stubbed   bool            `json:"stubbed"`
	Scratch   bool            `json:"scratchWorkspace"`
}

// showAnswer prints the result on standard output and what is wrong on standard error. The error is the exit code.
func showAnswer(io *IO, opts callOptions, answer []byte) error {
	var a shown
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if opts.json {
		if err := printJSON(io, answer); err != nil {
			return err
		}
	}
	switch {
	case !a.OK:
		why := fmt.Sprintf("calling %s: %s (%s)", opts.tool, a.Message, a.Error)
		if len(a.Available) > 0 {
			why += "; there are: " + strings.Join(a.Available, ", ")
		}
		return errors.New(why)
	case a.IsError:
		return fmt.Errorf("the tool %s failed: %s", opts.tool, text(a.Result))
	}
	if a.Stubbed {
		fmt.Fprintln(io.Err, "(the session is a dry run: the tool was not run)")
	}
	if a.Scratch {
		fmt.Fprintln(io.Err, "(the call did not have the files of a session)")
	}
	if opts.json {
		return nil
	}
	var s string
	if json.Unmarshal(a.Result, &s) == nil && a.Result[0] == '"' {
		_, err := fmt.Fprintln(io.Out, strings.TrimSuffix(s, "\n"))
		return err
	}
	return printJSON(io, a.Result)
}

// text returns a result as a line of text.
func text(result json.RawMessage) string {
	var s string
	if json.Unmarshal(result, &s) == nil {
		return s
	}
	return string(result)
}

// printJSON prints JSON in lines where a person reads it, and as it is elsewhere.
func printJSON(io *IO, raw []byte) error {
	var b bytes.Buffer
	if !io.Pretty || json.Indent(&b, raw, "", "  ") != nil {
		b.Reset()
		b.Write(raw)
	}
	_, err := fmt.Fprintf(io.Out, "%s\n", bytes.TrimSpace(b.Bytes()))
	return err
}
