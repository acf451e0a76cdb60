package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bdk-lambda/bdk/bdkpack/cli/loggroup"
	"github.com/bdk-lambda/bdk/bdkpack/project"
	"github.com/bdk-lambda/bdk/shared/clock"
)

type logsOptions struct {
	dir     string
	agent   string
	url     string
	token   string
	session string
	since   time.Duration
	follow  bool
	json    bool
}

func newLogsCmd(io *IO) *cobra.Command {
	var opts logsOptions
	cmd := &cobra.Command{
		Use:   "logs [dir]",
		Short: "show what an agent has logged",
		Long: "logs shows what the functions of a deployed agent have logged, in the account and region of your credentials, or with\n" +
			"--url what a server remembers of its log. Times are in UTC.",
		Example: "  bdk logs --agent my-agent --follow\n  bdk logs --agent my-agent --since 2h --session ses_01\n  bdk logs --url http://127.0.0.1:3000/my-agent",
		Args:    oneFolder(&opts.dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := cmd.Flags().Changed("dir") || len(args) > 0
			switch {
			case opts.url != "" && (folder || opts.agent != ""):
				return usagef("--url asks a server: --agent and --dir have no meaning with it")
			case opts.agent != "" && folder:
				return usagef("the agent is named twice, with --agent and by its folder")
			case opts.since < 0:
				return usagef("--since %s: it takes a time such as 10m or 2h", opts.since)
			}
			return logsRun(cmd.Context(), io, opts)
		},
	}
	dirFlag(cmd, &opts.dir)
	f := cmd.Flags()
	f.StringVar(&opts.agent, "agent", "", "slug of a deployed agent (default the name of its folder)")
	f.StringVar(&opts.url, "url", "", "URL of a served agent, for example http://127.0.0.1:3000/my-agent")
	f.StringVar(&opts.token, "bearer-token", "", "token for --url ("+tokenEnv+" works too)")
	f.StringVar(&opts.session, "session", "", "show only what is about the session with this id")
	f.DurationVar(&opts.since, "since", 10*time.Minute, "how far back to begin")
	f.BoolVarP(&opts.follow, "follow", "f", false, "go on with what is logged from now on, until interrupted")
	f.BoolVar(&opts.json, "json", false, "print each record as it is, a JSON object as a rule")
	return cmd
}

// readLogs shows the records that were not shown yet, and returns how many.
type readLogs func(ctx context.Context) (int, error)

func logsRun(ctx context.Context, io *IO, opts logsOptions) error {
	open, every := servedLogs, time.Second
	if opts.url == "" {
		open, every = deployedLogs, 2*time.Second // the service allows few requests
	}
	read, err := open(ctx, io, opts)
	if err != nil {
		return err
	}
	for {
		shown, err := read(ctx)
		if err == nil && shown == 0 && !opts.follow {
			fmt.Fprintf(io.Err, "nothing in the last %s; --since goes back further\n", span(opts.since))
		}
		if err != nil || !opts.follow {
			return err
		}
		if err := clock.Sleep(ctx, io.Clock, every); err != nil {
			return err
		}
	}
}

// servedLogs reads what a server remembers.
func servedLogs(_ context.Context, io *IO, opts logsOptions) (readLogs, error) {
	c, err := server(io, opts.url, opts.token)
	if err != nil {
		return nil, err
	}
	from, after := io.Clock.Now().Add(-opts.since), int64(0)
	return func(ctx context.Context) (shown int, err error) {
		records, next, err := c.Logs(ctx, after)
		if err != nil {
			return 0, err
		}
		after = next
		for _, r := range records {
			text, err := json.Marshal(r)
			if err != nil {
				return shown, err
			}
			if r.Time.Before(from) || !strings.Contains(string(text), opts.session) {
				continue
			}
			line := string(text)
			if !opts.json {
				line = logLine{r.Time, r.Level, "", r.Message, r.Attrs}.String()
			}
			if _, err := fmt.Fprintln(io.Out, line); err != nil {
				return shown, err
			}
			shown++
		}
		return shown, nil
	}, nil
}

// deployedLogs reads what the functions of a deployed agent log.
func deployedLogs(ctx context.Context, io *IO, opts logsOptions) (readLogs, error) {
	slug := opts.agent
	if slug == "" {
		dir, err := project.Resolve(opts.dir)
		if err != nil {
			return nil, err
		}
		slug = filepath.Base(dir)
	}
	group, err := loggroup.Open(ctx, "/bdk/"+slug, opts.session, io.Clock.Now().Add(-opts.since))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (shown int, err error) {
		err = group.Read(ctx, func(e loggroup.Entry) error {
			line := e.Message
			if !opts.json {
				if line = deployedLine(e); line == "" {
					return nil
				}
			}
			shown++
			_, err := fmt.Fprintln(io.Out, line)
			return err
		})
		return shown, err
	}, nil
}

// deployedLine returns an entry for people, "" if it does not matter to them.
func deployedLine(e loggroup.Entry) string {
	line := logLine{time: e.Time, function: functionOf(e.Stream)}
	if json.Unmarshal([]byte(e.Message), &line.attrs) != nil || line.attrs == nil {
		if routine(e.Message) {
			return ""
		}
		line.attrs, line.message = nil, e.Message // such as what a crash leaves
		return line.String()
	}
	take := func(to any, keys ...string) bool {
		for _, key := range keys {
			if raw, ok := line.attrs[key]; ok && json.Unmarshal(raw, to) == nil {
				delete(line.attrs, key)
				return true
			}
		}
		return false
	}
	take(&line.time, "time", "timestamp")
	take(&line.level, "level")
	var about string
	if take(&about, "type") && strings.HasPrefix(about, "platform.") {
		return line.platform(about)
	}
	take(&line.message, "msg", "message")
	take(&line.function, "function")
	delete(line.attrs, "slug") // it is the same in each
	withoutMetrics(line.attrs)
	return line.String()
}

// routine says whether a line of the service is one of those around every invocation. Those about a failure have a status.
func routine(text string) bool {
	for _, begin := range []string{"INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: "} {
		if strings.HasPrefix(text, begin) && !strings.Contains(text, "\tStatus: ") {
			return true
		}
	}
	return false
}

// withoutMetrics removes what CloudWatch makes metrics of: the members that _aws names, and itself.
func withoutMetrics(attrs map[string]json.RawMessage) {
	var meta struct {
		CloudWatchMetrics []struct {
			Metrics []struct {
				Name string `json:"Name"`
			} `json:"Metrics"`
		} `json:"CloudWatchMetrics"`
	}
	if json.Unmarshal(attrs["_aws"], &meta) == nil {
		for _, set := range meta.CloudWatchMetrics {
			for _, m := range set.Metrics {
				delete(attrs, m.Name)
			}
		}
	}
	delete(attrs, "_aws")
}

// platform returns what the service says about a function if it went wrong.
func (l logLine) platform(about string) string {
	var record struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
	}
	if json.Unmarshal(l.attrs["record"], &record) != nil || record.Status == "" || record.Status == "success" {
		return ""
	}
	l.level, l.message, l.attrs = "ERROR", strings.TrimSpace(about+": "+record.Status+" "+record.ErrorType), nil
	return l.String()
}

// functionOf returns the function whose instance writes to a log stream: YYYY/MM/DD/name[version]id.
func functionOf(stream string) string {
	name, _, ok := strings.Cut(stream[strings.LastIndexByte(stream, '/')+1:], "[")
	if !ok {
		return ""
	}
	return name
}

// logLine is a record of a log for people.
type logLine struct {
	time     time.Time
	level    string
	function string
	message  string
	attrs    map[string]json.RawMessage
}

// String returns one line: time, level, function, message and key=value in the order of the keys.
func (l logLine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s", l.time.UTC().Format("2006-01-02T15:04:05.000Z"), l.level)
	for _, part := range []string{l.function, l.message} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.attrs)) {
		fmt.Fprintf(&b, " %s=%s", key, logValue(key, l.attrs[key]))
	}
	return b.String()
}

// logValue returns a value without quotes where it can be read without. Durations are in the log as nanoseconds.
func logValue(key string, raw json.RawMessage) string {
	var nanoseconds int64
	if (key == "duration" || key == "took") && json.Unmarshal(raw, &nanoseconds) == nil {
		return rounded(time.Duration(nanoseconds)).String()
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' }) {
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	return compact.String()
}

// rounded leaves of a duration what somebody can use.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// span returns a duration without units that are zero: 10m rather than 10m0s.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
