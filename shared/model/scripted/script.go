package scripted

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/bdk-lambda/bdk/shared/model"
)

// A Script is a checked list of rules. It does not change and is safe for concurrent use.
type Script struct {
	rules []rule
	names []Name
}

type rule struct {
	message    *regexp.Regexp // nil: any
	toolResult string         // "": any
	toolFailed string         // "": any
	step       int            // 0: any
	times      int            // 0: without limit

	reasoning         string
	chunks            []string
	calls             []call
	fault             *model.Error
	delay, chunkDelay time.Duration
	usage             *model.Usage // nil: estimated
	outputTokens      int64        // the estimate
}

type call struct{ tool, args string }

// The YAML forms.
type (
	scriptYAML struct {
		Rules []ruleYAML `yaml:"rules"`
	}
	ruleYAML struct {
		When       *whenYAML  `yaml:"when"`
		Times      *int       `yaml:"times"`
		Text       *piece     `yaml:"text"`
		Chunks     []piece    `yaml:"chunks"`
		Reasoning  string     `yaml:"reasoning"`
		Calls      []callYAML `yaml:"calls"`
		Error      *errorYAML `yaml:"error"`
		Delay      string     `yaml:"delay"`
		ChunkDelay string     `yaml:"chunkDelay"`
		Usage      *usageYAML `yaml:"usage"`
	}
	whenYAML struct {
		Message    *string `yaml:"message"`
		ToolResult *string `yaml:"toolResult"`
		ToolFailed *string `yaml:"toolFailed"`
		Step       *int    `yaml:"step"`
	}
	callYAML struct {
		Tool    string         `yaml:"tool"`
		Args    map[string]any `yaml:"args"`
		RawArgs *string        `yaml:"rawArgs"`
	}
	errorYAML struct {
		Kind       model.Kind `yaml:"kind"`
		Message    string     `yaml:"message"`
		RetryAfter string     `yaml:"retryAfter"`
	}
	usageYAML struct {
		InputTokens      int64 `yaml:"inputTokens"`
		OutputTokens     int64 `yaml:"outputTokens"`
		CacheReadTokens  int64 `yaml:"cacheReadTokens"`
		CacheWriteTokens int64 `yaml:"cacheWriteTokens"`
		ReasoningTokens  int64 `yaml:"reasoningTokens"`
	}
)

// piece is a string, or any bytes as !!binary.
type piece string

// UnmarshalYAML decodes a string, and the base64 of a !!binary scalar.
func (p *piece) UnmarshalYAML(n ast.Node) error {
	tag, ok := n.(*ast.TagNode)
	binary := ok && tag.Start.Value == "!!binary"
	if binary {
		n = tag.Value
	}
	var s string
	if err := yaml.NodeToValue(n, &s); err != nil {
		return err
	}
	if !binary {
		*p = piece(s)
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: "!!binary needs base64 with its padding"}
	}
	*p = piece(b)
	return nil
}

// Load reads and parses the script at path. Errors begin with the path.
func Load(path string) (*Script, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the author chose the file
	if err != nil {
		return nil, fmt.Errorf("reading script: %w", err)
	}
	s, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script strictly. The error is [ParseErrors].
func Parse(data []byte) (s *Script, err error) {
	defer func() {
		if r := recover(); r != nil { // the YAML decoder panics on some nonsense
			s, err = nil, ParseErrors{{1, 1, fmt.Sprintf("not a script (%v)", r), `start with the line "rules:"`}}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, located(err)
	}
	var y scriptYAML
	if err := yaml.UnmarshalWithOptions(data, &y, yaml.Strict()); err != nil {
		return nil, located(err)
	}
	c := checker{file: file}
	s = c.script(&y)
	if len(c.mistakes) > 0 {
		return nil, c.mistakes
	}
	s.names = c.names
	return s, nil
}

// ParseErrors are all that is wrong with a script, at least one; as an error they are one a line.
type ParseErrors []Mistake

// Mistake is one thing that is wrong with a script. As text it is LINE:COLUMN: What: Remedy.
type Mistake struct {
	Line, Column int // from 1
	What, Remedy string
}

// Error returns the mistakes, one a line.
func (m ParseErrors) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = fmt.Sprintf("%d:%d: %s: %s", one.Line, one.Column, one.What, one.Remedy)
	}
	return strings.Join(lines, "\n")
}

// Name is the name of a tool in a script, where it stands: in a call, or in a condition of a rule.
type Name struct {
	Tool         string
	Line, Column int // from 1
	InCall       bool
}

// Names returns the tools that the script names, rule by rule, as often as it names them. Do not change the slice.
func (s *Script) Names() []Name { return s.names }

// located returns a decoder's error as a mistake.
func located(err error) ParseErrors {
	const remedy = "see `go doc github.com/bdk-lambda/bdk/shared/model/scripted` for an example"
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return ParseErrors{{1, 1, err.Error(), remedy}}
	}
	p := y.GetToken().Position
	m := Mistake{p.Line, p.Column, y.GetMessage(), remedy}
	var unknown *yaml.UnknownFieldError
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &unknown):
		m.Remedy = "remove it or mend its spelling; a rule has when {message, toolResult, toolFailed, step}, times, text, chunks, reasoning, " +
			"calls [{tool, args, rawArgs}], error {kind, message, retryAfter}, delay, chunkDelay, usage"
	case errors.As(err, &syntax):
		m.Remedy = "mend the YAML here"
	}
	return ParseErrors{m}
}

// A checker turns the YAML form into rules and collects all mistakes.
type checker struct {
	file     *ast.File
	mistakes ParseErrors
	names    []Name
}

// add records a mistake at a YAML path below the rules.
func (c *checker) add(path, remedy, format string, args ...any) {
	line, column := c.place(path)
	c.mistakes = append(c.mistakes, Mistake{line, column, path + ": " + fmt.Sprintf(format, args...), remedy})
}

// name records the name of a tool at a YAML path below the rules.
func (c *checker) name(path, tool string, inCall bool) {
	line, column := c.place(path)
	c.names = append(c.names, Name{tool, line, column, inCall})
}

// place returns where a YAML path below the rules is, or the nearest place above it that exists.
func (c *checker) place(path string) (line, column int) {
	for at := "$." + path; at != "$"; at = at[:strings.LastIndexAny(at, ".[")] {
		p, err := yaml.PathString(at)
		if err != nil {
			continue
		}
		if n, err := p.FilterFile(c.file); err == nil && n.GetToken() != nil {
			at := start(n).GetToken().Position
			return at.Line, at.Column
		}
	}
	return 1, 1
}

// start returns the node where n begins in the file: for a mapping its first key.
func start(n ast.Node) ast.Node {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		n = m.Values[0]
	}
	if v, ok := n.(*ast.MappingValueNode); ok {
		return v.Key
	}
	return n
}

func (c *checker) script(y *scriptYAML) *Script {
	if len(c.file.Docs) > 1 {
		c.add("rules", "keep one, without a second ---", "the file holds several YAML documents")
	}
	if len(y.Rules) == 0 {
		c.add("rules", "add at least one, for example - text: ok", "there are no rules")
	}
	s := &Script{rules: make([]rule, len(y.Rules))}
	for i := range y.Rules {
		s.rules[i] = c.rule(fmt.Sprintf("rules[%d]", i), &y.Rules[i])
	}
	return s
}

func (c *checker) rule(path string, y *ruleYAML) rule {
	r := rule{
		reasoning:  y.Reasoning,
		chunks:     c.chunks(path, y),
		delay:      c.duration(path+".delay", y.Delay),
		chunkDelay: c.duration(path+".chunkDelay", y.ChunkDelay),
	}
	if y.When != nil {
		c.when(path+".when", y.When, &r)
	}
	if y.Times != nil {
		if r.times = *y.Times; r.times < 1 {
			c.add(path+".times", "remove the rule instead", "must be at least 1")
		}
	}
	for i := range y.Calls {
		r.calls = append(r.calls, c.call(fmt.Sprintf("%s.calls[%d]", path, i), &y.Calls[i]))
	}
	if y.Error != nil {
		r.fault = c.fault(path+".error", y.Error)
	}
	switch {
	case y.Text == nil && y.Chunks == nil && len(y.Calls) == 0 && y.Error == nil:
		c.add(path, "give it text, chunks, calls or error", "answers nothing")
	case y.Error != nil && len(y.Calls) > 0:
		c.add(path+".error", "an answer that fails has no calls, make two rules of it", "stands beside calls")
	}
	r.outputTokens = tokens(outputOf(&r))
	if y.Usage != nil {
		r.usage = c.usage(path+".usage", y.Usage)
	}
	return r
}

func (c *checker) when(path string, y *whenYAML, r *rule) {
	if y.Message != nil {
		re, err := regexp.Compile(*y.Message)
		if err != nil {
			c.add(path+".message", "mend the pattern, in the syntax of Go's package regexp", "%v", err)
		}
		r.message = re
	}
	if y.ToolResult != nil {
		c.name(path+".toolResult", *y.ToolResult, false)
		if r.toolResult = *y.ToolResult; r.toolResult == "" {
			c.add(path+".toolResult", "name the tool", "is empty")
		}
	}
	if y.ToolFailed != nil {
		c.name(path+".toolFailed", *y.ToolFailed, false)
		if r.toolFailed = *y.ToolFailed; r.toolFailed == "" {
			c.add(path+".toolFailed", "name the tool", "is empty")
		}
	}
	if y.Step != nil {
		if r.step = *y.Step; r.step < 1 {
			c.add(path+".step", "the first model call of a turn is 1", "must be at least 1")
		}
	}
}

func (c *checker) chunks(path string, y *ruleYAML) []string {
	if y.Chunks == nil {
		if y.Text == nil || *y.Text == "" {
			return nil
		}
		return []string{string(*y.Text)}
	}
	var chunks []string
	for _, p := range y.Chunks {
		if p != "" {
			chunks = append(chunks, string(p))
		}
	}
	if y.Text != nil && strings.Join(chunks, "") != string(*y.Text) {
		c.add(path+".chunks", "change one of them, or leave text out", "do not add up to text")
	}
	return chunks
}

func (c *checker) call(path string, y *callYAML) call {
	c.name(path+".tool", y.Tool, true)
	if y.Tool == "" {
		c.add(path, "add tool", "names no tool")
	}
	switch {
	case y.Args != nil && y.RawArgs != nil:
		c.add(path+".rawArgs", "keep one of them", "stands beside args")
	case y.RawArgs != nil:
		return call{tool: y.Tool, args: *y.RawArgs}
	case y.Args != nil:
		b, err := json.Marshal(y.Args)
		if err != nil {
			c.add(path+".args", "write it as rawArgs", "%v", err)
		}
		return call{tool: y.Tool, args: string(b)}
	}
	return call{tool: y.Tool}
}

func (c *checker) fault(path string, y *errorYAML) *model.Error {
	e := &model.Error{Kind: y.Kind, Message: y.Message, RetryAfter: c.duration(path+".retryAfter", y.RetryAfter)}
	switch y.Kind {
	case model.Throttled, model.Overloaded, model.Unavailable:
	case model.Invalid, model.ContextLength, model.Denied:
		if e.RetryAfter != 0 {
			c.add(path+".retryAfter", "remove it", "goes with throttled, overloaded and unavailable only")
		}
	default:
		c.add(path+".kind", "use throttled, overloaded, unavailable, invalid, context_length or denied", "%q is no kind", y.Kind)
	}
	if e.Message == "" {
		e.Message = "scripted error"
	}
	return e
}

func (c *checker) duration(path, s string) time.Duration {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		c.add(path, "write a number with its unit, such as 50ms or 2s", "%q is no duration", s)
	}
	return d
}

func (c *checker) usage(path string, y *usageYAML) *model.Usage {
	u := model.Usage(*y)
	if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens) < 0 {
		c.add(path, "tokens are 0 or more", "has a negative count")
	}
	return &u
}
