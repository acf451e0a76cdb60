package workspace

import (
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
)

// The limits of paths.
const (
	MaxPath    = 1024 // bytes of a path
	MaxSegment = 255  // bytes of a name between two slashes
	MaxDepth   = 64   // names in a path
)

// CheckPath returns a bdkerr.InvalidRequest error that says what is wrong with p unless it can name a file of a workspace: a
// relative path with slashes that means the same on Linux, macOS and disks of Windows, to people and to programs. Refused are
//
//   - absolute paths, and names that are empty, "." or ".." ([fs.ValidPath]);
//   - invalid UTF-8, control characters, invisible and direction-changing characters, private and unassigned ones;
//   - the characters \ : * ? " < > | and those that some systems take for a dot, slash or backslash, such as U+FF0F;
//   - names that end in a dot or a space, and the names of devices, such as "nul.txt";
//   - characters that Unicode normalisation (NFC) would replace or join, such as a letter with a combining accent. The check
//     is made character by character: that of a few Indic vowels written in two parts is not noticed;
//   - more than [MaxPath] bytes, [MaxSegment] in a name, or [MaxDepth] names.
func CheckPath(p string) error {
	if why := pathFault(p); why != "" {
		return bdkerr.New(bdkerr.InvalidRequest, "the path %.200q cannot be used in a workspace: %s", p, why)
	}
	return nil
}

func pathFault(p string) string {
	switch {
	case p == "":
		return "it is empty"
	case len(p) > MaxPath:
		return "it is longer than 1,024 bytes"
	case !utf8.ValidString(p):
		return "it is not valid UTF-8"
	case strings.ContainsRune(p, '\\'):
		return "it has a backslash: names are separated by /"
	case p[0] == '/':
		return "it is absolute: paths are relative to the workspace"
	case p == "." || !fs.ValidPath(p):
		return `it has a name that is empty, "." or ".."`
	case strings.Count(p, "/") >= MaxDepth:
		return "it has more than 64 names"
	}
	for _, r := range p {
		if why := runeFault(r); why != "" {
			return why
		}
	}
	for name := range strings.SplitSeq(p, "/") {
		if why := nameFault(name); why != "" {
			return why
		}
	}
	return ""
}

func nameFault(name string) string {
	last, _ := utf8.DecodeLastRuneInString(name)
	switch {
	case len(name) > MaxSegment:
		return "it has a name longer than 255 bytes"
	case last == '.' || unicode.IsSpace(last):
		return "it has a name that ends in a dot or a space"
	case isDevice(name):
		return "it has a name that means a device on Windows"
	}
	return ""
}

// isDevice reports whether Windows takes name for a device, in whatever folder and with whatever extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		if n, ok := strings.CutPrefix(stem, port); ok && utf8.RuneCountInString(n) == 1 && strings.ContainsAny(n, "0123456789¹²³") {
			return true
		}
	}
	return false
}

func runeFault(r rune) string {
	if r >= ' ' && r < unicode.MaxASCII && !strings.ContainsRune(`:*?"<>|`, r) {
		return ""
	}
	switch {
	case unicode.IsControl(r):
		return "it has a control character"
	case r < unicode.MaxASCII:
		return `it has one of the characters : * ? " < > |`
	case isLookAlike(r):
		return "it has a character that looks like a dot, a slash or a backslash"
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return "it has an invisible character"
	case r == utf8.RuneError || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs):
		return "it has a private, unassigned or replacement character"
	case isDenormal(r):
		return "it has a combining or compatibility character: write the composed one (Unicode NFC)"
	}
	return ""
}

// isLookAlike reports whether compatibility normalisation, or the conversion to some code page, makes a dot, slash or backslash
// of r, or people see one.
func isLookAlike(r rune) bool {
	switch r {
	case 0x2024, 0x2025, 0x2026, 0xFE19, 0xFE30, 0xFE52, 0xFF0E, // dots
		0x2044, 0x2215, 0x2571, 0x27CB, 0x29F6, 0x29F8, 0xFF0F, // slashes
		0x2216, 0x2572, 0x27CD, 0x29F5, 0x29F7, 0x29F9, 0xFE68, 0xFF3C, // backslashes
		0x00A5, 0x20A9, 0xFFE5, 0xFFE6: // what has the place of the backslash in Japan and Korea
		return true
	}
	return false
}

// isDenormal reports whether NFC replaces r, or joins it with the character before it. It errs on the safe side for marks
// that are joined with some letters only.
func isDenormal(r rune) bool {
	switch {
	case r >= 0x0300 && r <= 0x036F, // combining marks
		r >= 0x1100 && r <= 0x11FF, r >= 0xA960 && r <= 0xA97F, r >= 0xD7B0 && r <= 0xD7FF, // parts of Hangul syllables
		r == 0x3099, r == 0x309A, // voiced kana
		r >= 0xF900 && r <= 0xFAFF, r >= 0x2F800 && r <= 0x2FA1F, // compatibility ideographs
		r >= 0xFB1D && r <= 0xFB4E, // Hebrew presentation forms
		r >= 0x0958 && r <= 0x095F: // Devanagari with nukta
		return true
	}
	switch r {
	case 0x0374, 0x037E, 0x0387, 0x09DC, 0x09DD, 0x09DF, 0x0A33, 0x0A36, 0x0A59, 0x0A5A, 0x0A5B, 0x0A5E, 0x0B5C, 0x0B5D,
		0x1F71, 0x1F73, 0x1F75, 0x1F77, 0x1F79, 0x1F7B, 0x1F7D, 0x1FBB, 0x1FBE, 0x1FC9, 0x1FCB, 0x1FD3, 0x1FDB, 0x1FE3,
		0x1FEB, 0x1FEE, 0x1FEF, 0x1FF9, 0x1FFB, 0x1FFD, 0x2000, 0x2001, 0x2126, 0x212A, 0x212B, 0x2329, 0x232A, 0x2ADC:
		return true
	}
	return false
}

// fold returns what is the same for all paths that a file system may take for p because it ignores case.
func fold(p string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII {
			return unicode.ToLower(r)
		}
		least := r
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			least = min(least, o)
		}
		return unicode.ToLower(least)
	}, p)
}

// AgentDir is the folder of the agent's own files in workspaces.
const AgentDir = ".agents"

// InAgentDir says whether a path is AgentDir or in it, on any file system.
func InAgentDir(p string) bool {
	top, _, _ := strings.Cut(p, "/")
	return strings.EqualFold(top, AgentDir)
}
