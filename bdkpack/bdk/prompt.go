package bdk

import "strings"

// Prompt returns a text that was written indented with the code around it, without that indentation:
//
//	Description: bdk.Prompt(`
//		Inspect a pull request before approval.
//		Prefer this over guessing from the title alone.
//	`),
//
// It removes one line end from the beginning, and from each line the white space that all lines have in common. Tabs and
// spaces are told apart; lines of white space only do not count and become empty. Blank lines and deeper indentation are
// kept, and so is the line end before the closing quote. Line ends become "\n".
func Prompt(text string) string {
	return strings.Join(dedent(text), "\n")
}

// PromptLines returns the lines of [Prompt] without their ends, none for no text.
func PromptLines(text string) []string {
	lines := dedent(text)
	if last := len(lines) - 1; lines[last] == "" {
		return lines[:last:last]
	}
	return lines
}

func dedent(text string) []string {
	lines := strings.Split(text, "\n")
	common, found := "", false
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		rest := strings.TrimLeft(line, " \t")
		if rest == "" {
			lines[i] = ""
			continue
		}
		lines[i] = line
		indent := line[:len(line)-len(rest)]
		if !found {
			common, found = indent, true
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	if len(lines) > 1 && lines[0] == "" {
		lines = lines[1:]
	}
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], common)
	}
	return lines
}
