// Package workspacetest has paths that no entry point for files may accept.
package workspacetest

import "strings"

// BadPaths returns paths that must be refused wherever somebody may name a file of a workspace. All of them are refused by
// workspace.CheckPath.
func BadPaths() []string {
	groups := [][]string{
		{ // out of it, or nowhere
			"", ".", "..", "/", "//", "../x", "../../etc/passwd", "a/..", "a/../b", "a/../../b", "a/b/../../../c", "./a", "a/.", "a/./b",
			"a//b", "a/", "/a", "/etc/passwd", "//server/share/x", "...", "a/.../b", "....//x", "~/../x", ".. /x", "a/ ../b", ". ./x",
		},
		{ // Windows
			`..\x`, `a\b`, `\x`, `\\server\share\x`, `\\?\C:\x`, `C:\x`, `C:x`, "C:/x", "a:stream", "a.txt::$DATA", `a/..\..\b`, "nul", "NUL.txt", "a/con",
			"Aux.c", "prn", "com1", "COM9.log", "LPT1.txt", "com¹", "conin$", "clock$", "a./b", "a ", "a /b", "a.", "a<b", "a>b", "a|b", `a"b`, "a?b", "a*b",
			"con .txt",
		},
		{ // what ends a string, moves the cursor, or is not text
			"\x00", "a\x00", "a\x00.txt", "../\x00", "a\nb", "a\rb", "a\tb", "a\x1b[2Jb", "a\x7fb", "a\u0085b", "a\xffb", "\xc0\xae\xc0\xae/x", "\xe0\x80\xaf",
			"\xed\xa0\x80", "a\u2028b", "a\u2029b", "a\uFFFDb",
		},
		{ // look-alikes of dots, slashes and backslashes
			"\uFF0E\uFF0E/x", "\u2024\u2024/x", "\u2025/x", "a\u2026", "\uFE52\uFE52/x", "..\u2215x", "a\u2044b", "a\uFF0Fb", "a\u29F8b", "a\u2571b", "a\uFF3Cb", "a\uFE68b",
			"a\u29F5b", "a\u29F9b", "a\u2216b", "..\u00A5x", "..\u20A9x",
		},
		{ // invisible, direction-changing, private, unassigned
			"a\u200Bb", ".\u200B./x", "a\u200Cb", "a\u200Db", "a\u2060b", "\uFEFFa", "a\u00ADb", "a\u202Egpj.exe", "a\u202Ab", "a\u2066b", "a\u200Eb", "a\uFE0F", "a\u034Fb",
			"a\u3164b", "a\U000E0041b", "a\uF05Cb", "a\uE000", "a\uFFFE", "a\U0010FFFF", "a\u0378", "a\u3000", "a\u00A0/b",
		},
		{ // what normalisation replaces
			"e\u0301", "A\u030A", "\u212B", "\u212Aelvin", "\u2126", "\uF900", "\u1100\u1161", "a\u0338b", "\u30AB\u3099", "a\u037Eb",
		},
		{ // too long
			strings.Repeat("a", 256), "b/" + strings.Repeat("a", 256), strings.Repeat("é", 128), strings.Repeat("abcdefg/", 128) + "x",
			strings.Repeat("a/", 64) + "x", strings.Repeat("../", 100) + "etc/passwd",
		},
	}
	var all []string
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}
