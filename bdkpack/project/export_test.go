package project

// What the fuzz tests of the parsers call.
var (
	Nearest      = nearest
	Snake        = snake
	JoinMarkdown = joinMarkdown
)

// IsToolName says whether a file of tools/ may have a name.
func IsToolName(name string) bool { return toolPattern().MatchString(name) }

// ModuleError returns the messages that the go command's standard error becomes.
func ModuleError(stderr string) []string {
	l := &loader{ws: &Workspace{Module: Module{Dir: "/module"}}, sources: sources{}}
	l.moduleError(stderr)
	var messages []string
	for _, d := range l.diags {
		messages = append(messages, d.Message)
	}
	return messages
}

// Explain returns an error of the compiler as one line, and what to do about it.
func Explain(text string) (what, help string) { return (&loader{ws: &Workspace{}}).explain(text, nil) }
