package project

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// skillText is what the Markdown file of a skill says.
type skillText struct {
	name        string // as its front matter names it; "" if it does not
	description string // of the front matter; "" if it has none
	body        string
	faults      []skillFault
}

// skillFault is a mistake in the file of a skill.
type skillFault struct {
	line       int // 0: the file as a whole
	severity   diag.Severity
	what, help string
}

// maxDescription is how many characters of a description readers of the open format keep.
const maxDescription = 1024

// parseSkill reads Markdown with optional front matter: YAML between a first line --- and the next one. The keys are those of the
// open format for skills; others are warned about.
func parseSkill(data []byte) skillText {
	var s skillText
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		s.body = joinMarkdown([][]byte{[]byte(text)})
		return s
	}
	front, body, closed := cutFrontMatter(rest)
	if !closed {
		s.fault(1, diag.Error, "close it with a line --- before the text", "the front matter is not closed")
		return s
	}
	s.body = joinMarkdown([][]byte{[]byte(body)})
	s.readFrontMatter(front)
	return s
}

func (s *skillText) fault(line int, severity diag.Severity, help, format string, args ...any) {
	s.faults = append(s.faults, skillFault{line, severity, fmt.Sprintf(format, args...), help})
}

// cutFrontMatter splits what follows the first line at the line that ends the front matter.
func cutFrontMatter(text string) (front, body string, closed bool) {
	at := 0
	for line := range strings.Lines(text) {
		if strings.TrimRight(line, " \t\n") == "---" {
			return text[:at], text[at+len(line):], true
		}
		at += len(line)
	}
	return "", "", false
}

func (s *skillText) readFrontMatter(front string) {
	const help = "write the front matter as YAML: key: value, with text that has a colon in quotes"
	fields, err := decodeYAML(front)
	if err != nil {
		line, what := yamlPlace(err)
		if fields, err = decodeYAML(quoteColons(front)); err != nil {
			s.fault(line+1, diag.Error, help, "%s", what)
			return
		}
		s.fault(line+1, diag.Warning, help, "the line is no YAML, %s: it is read as one text", what)
	}
	for _, f := range fields {
		key := fmt.Sprint(f.Key)
		line := 1 + lineOf(front, key)
		switch key {
		case "name":
			s.name = s.text(f.Value, key, line)
		case "description":
			s.description = strings.TrimSpace(s.text(f.Value, key, line))
		case "license", "compatibility", "metadata", "allowed-tools":
		default:
			s.fault(line, diag.Warning, "remove it; the keys are name, description, license, compatibility, metadata and allowed-tools", "the key %s has no meaning", key)
		}
	}
	if n := utf8.RuneCountInString(s.description); n > maxDescription {
		s.fault(1+lineOf(front, "description"), diag.Warning, "say when to use the skill, and the rest in its text",
			"the description has %d characters: others keep %d", n, maxDescription)
	}
}

// quoteColons puts quotes around the texts of top-level keys that have a colon in them, which is no YAML but often written.
func quoteColons(front string) string {
	return regexp.MustCompile("(?m)^[\\w-]+:[ \t]+[^\\s\"'|>\\[{&*!#%@`].*:[ \t].*$").ReplaceAllStringFunc(front, func(line string) string {
		key, value, _ := strings.Cut(line, ":")
		return key + ": '" + strings.ReplaceAll(strings.TrimSpace(value), "'", "''") + "'"
	})
}

// text returns the value of a key that must be a text.
func (s *skillText) text(value any, key string, line int) string {
	switch value := value.(type) {
	case string:
		return value
	case nil:
		return ""
	case int, uint64, int64, float64, bool:
		return fmt.Sprint(value)
	}
	s.fault(line, diag.Error, "write it as text", "%s is no text", key)
	return ""
}

// decodeYAML reads a mapping in the order of its keys. The parser is foreign code: a panic in it is an error.
func decodeYAML(text string) (fields yaml.MapSlice, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML cannot be read: %v", p)
		}
	}()
	err = yaml.NewDecoder(bytes.NewReader([]byte(text))).Decode(&fields)
	if err != nil && strings.TrimSpace(text) == "" {
		err = nil // there is nothing
	}
	return fields, err
}

// yamlPlace returns the line, 0 if it is not known, and the first line of what is wrong.
func yamlPlace(err error) (line int, what string) {
	what = firstLine(err.Error())
	if m := regexp.MustCompile(`^\[(\d+):\d+\] (.*)`).FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		what = m[2]
	}
	return line, what
}

// lineOf returns the line of a top-level key, from 1; 0 if it is not found.
func lineOf(front, key string) int {
	lines := strings.Split(front, "\n")
	i := slices.IndexFunc(lines, func(line string) bool {
		rest, ok := strings.CutPrefix(strings.Trim(line, `"'`), key)
		return ok && strings.HasPrefix(strings.TrimLeft(rest, `"' `), ":")
	})
	return i + 1
}

// fallback returns the first line of a text as a description, "" if there is none.
func (s *skillText) fallback() string {
	for line := range strings.Lines(s.body) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
			return line
		}
	}
	return ""
}
