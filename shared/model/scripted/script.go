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

// Parse reads a script strictly. Each line of the error is LINE:COLUMN: what is wrong: how to mend it.
func Parse(data []byte) (s *Script, err error) {
	defer func() {
		if r := recover(); r != nil { // the YAML decoder panics on some nonsense
			s, err = nil, fmt.Errorf("1:1: not a script (%v): start with the line %q", r, "rules:")
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
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return s, nil
}

// located puts the position in front of a decoder's error, and a remedy behind it.
func located(err error) error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return fmt.Errorf("1:1: %w: see `go doc github.com/bdk-lambda/bdk/shared/model/scripted` for an example", err)
	}
	remedy := "see `go doc github.com/bdk-lambda/bdk/shared/model/scripted` for an example"
	var unknown *yaml.UnknownFieldError
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &unknown):
		remedy = "remove it or mend its spelling; a rule has when {message, toolResult, toolFailed, step}, times, text, chunks, reasoning, " +
			"calls [{tool, args, rawArgs}], error {kind, message, retryAfter}, delay, chunkDelay, usage"
	case errors.As(err, &syntax):
		remedy = "mend the YAML here"
	}
	p := y.GetToken().Position
	return fmt.Errorf("%d:%d: %s: %s", p.Line, p.Column, y.GetMessage(), remedy)
}

// A checker turns the YAML form into rules and collects all mistakes.
type checker struct {
	file *ast.File
	errs []error
}

// add records a mistake at a YAML path below the rules, or at the nearest place above it that exists.
func (c *checker) add(path, format string, args ...any) {
	line, column := 1, 1
	for at := "$." + path; at != "$"; at = at[:strings.LastIndexAny(at, ".[")] {
		p, err := yaml.PathString(at)
		if err != nil {
			continue
		}
		if n, err := p.FilterFile(c.file); err == nil && n.GetToken() != nil {
			at := start(n).GetToken().Position
			line, column = at.Line, at.Column
			break
		}
	}
	c.errs = append(c.errs, fmt.Errorf("%d:%d: %s: %s", line, column, path, fmt.Sprintf(format, args...)))
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
		c.add("rules", "the file holds several YAML documents: keep one, without a second ---")
	}
	if len(y.Rules) == 0 {
		c.add("rules", "there are no rules: add at least one, for example - text: ok")
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
			c.add(path+".times", "must be at least 1: remove the rule instead")
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
		c.add(path, "answers nothing: give it text, chunks, calls or error")
	case y.Error != nil && len(y.Calls) > 0:
		c.add(path+".error", "stands beside calls: an answer that fails has no calls, make two rules of it")
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
			c.add(path+".message", "%v: mend the pattern, in the syntax of Go's package regexp", err)
		}
		r.message = re
	}
	if y.ToolResult != nil {
		if r.toolResult = *y.ToolResult; r.toolResult == "" {
			c.add(path+".toolResult", "is empty: name the tool")
		}
	}
	if y.ToolFailed != nil {
		if r.toolFailed = *y.ToolFailed; r.toolFailed == "" {
			c.add(path+".toolFailed", "is empty: name the tool")
		}
	}
	if y.Step != nil {
		if r.step = *y.Step; r.step < 1 {
			c.add(path+".step", "must be at least 1, the first model call of a turn")
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
		c.add(path+".chunks", "do not add up to text: change one of them, or leave text out")
	}
	return chunks
}

func (c *checker) call(path string, y *callYAML) call {
	if y.Tool == "" {
		c.add(path, "names no tool: add tool")
	}
	switch {
	case y.Args != nil && y.RawArgs != nil:
		c.add(path+".rawArgs", "stands beside args: keep one of them")
	case y.RawArgs != nil:
		return call{tool: y.Tool, args: *y.RawArgs}
	case y.Args != nil:
		b, err := json.Marshal(y.Args)
		if err != nil {
			c.add(path+".args", "%v: write it as rawArgs", err)
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
			c.add(path+".retryAfter", "goes with throttled, overloaded and unavailable only: remove it")
		}
	default:
		c.add(path+".kind", "%q is no kind: use throttled, overloaded, unavailable, invalid, context_length or denied", y.Kind)
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
		c.add(path, "%q is no duration: write a number with its unit, such as 50ms or 2s", s)
	}
	return d
}

func (c *checker) usage(path string, y *usageYAML) *model.Usage {
	u := model.Usage(*y)
	if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens) < 0 {
		c.add(path, "has a negative count: tokens are 0 or more")
	}
	return &u
}
