package project

import (
	"fmt"

	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// The codes of discovery. A code is never given another meaning.
const (
	codeNoAgent        = "BDK101" // nothing in the folder is an agent
	codeTwoRoots       = "BDK102" // both bot/ and agent/
	codeBadSlug        = "BDK103" // the folder's name cannot be an agent's name
	codeReservedSlug   = "BDK104" // the folder's name is a route of the host
	codeUnreadable     = "BDK105" // a file or folder cannot be read
	codeBrokenLink     = "BDK106" // a symbolic link leads nowhere
	codeUnknownEntry   = "BDK107" // a name that is nearly, or not at all, one that is known
	codeUnsupported    = "BDK108" // a feature of a later version
	codeStrayGoFile    = "BDK109" // a Go file that defines nothing
	codeNoModule       = "BDK110" // no go.mod
	codeNoBDK          = "BDK111" // the module does not require this one
	codeManyModules    = "BDK112" // agents of different modules
	codeModule         = "BDK113" // the go command cannot read the module
	codeFolder         = "BDK114" // Go cannot import from a folder
	codeNoInstructions = "BDK120"
	codeManyForms      = "BDK121" // instructions in several forms
	codeEmpty          = "BDK122" // empty instructions
	codeNotUTF8        = "BDK123"
	codeNotMarkdown    = "BDK124" // something else among the files of instructions/
	codeToolName       = "BDK130"
	codeReservedName   = "BDK131" // a name with __
	codeNested         = "BDK132" // tools in a folder of tools/
	codeConstrained    = "BDK133" // a file Go leaves out on this machine
	codeNone           = "BDK140" // no definition in a file
	codeTwo            = "BDK141" // two definitions in a file
	codeWrongType      = "BDK142"
	codeUnexported     = "BDK143"
	codeMain           = "BDK144" // package main
	codeNoDescription  = "BDK145"
	codeModel          = "BDK146" // a model without a known provider
	codeInput          = "BDK147" // a tool's input that is no struct
	codeNoModel        = "BDK148"
	codeLimit          = "BDK149" // a limit below zero
	codeScript         = "BDK151" // the script of a model that is not there
	codeShape          = "BDK152" // a tool's input or output that JSON cannot hold
	codeTag            = "BDK153" // a json tag on a field that is not exported
	codeScriptFault    = "BDK154" // a mistake in the script of a model
	codeScriptTool     = "BDK155" // a script that names a tool the agent does not have
	codeSkill          = "BDK156" // what is wrong with a skill's file or folder
	codeSkillName      = "BDK157" // a name of a skill or subagent
	codeWorkspaceFile  = "BDK158" // a file that cannot be in a workspace
	codeSubagent       = "BDK159" // what is wrong with a subagent's folder or configuration
	codeNoHandler      = "BDK166" // a hook that does nothing
	codeTwoHandlers    = "BDK167" // a hook with two handlers for the same events
	codeSlotName       = "BDK165" // a name of a hook, channel, schedule or connection
	codeCron           = "BDK190" // when a schedule is due, as it cannot be
	codeScheduleFile   = "BDK191" // what is wrong with the Markdown of a schedule
	codeScheduleSpec   = "BDK192" // what is wrong with the definition of a schedule
	codeTransport      = "BDK200" // a connection that leads nowhere, or to two places
	codeNotSet         = "BDK201" // a variable of a connection that is not set
	codeTemplate       = "BDK202" // a text of a connection with a variable, or a URL, that is none
	codeOtherTransport = "BDK203" // a field of a connection that has no effect
	codePattern        = "BDK204" // a filter of a connection that is none
	codeAdvertised     = "BDK205" // a connection whose tools the model does not have
	codeTwin           = "BDK207" // two connections of one name
	codeHarness        = "BDK162" // a tool of the harness that is not there, or has the name of one of the agent's
	codeApproval       = "BDK163" // an approval that cannot be meant
	codeTimeArg        = "BDK164" // a time argument that the input does not have
	codeReplace        = "BDK115" // a replace directive that leads nowhere
	codeCompile        = "BDK150" // what the Go compiler says
)

// fail records a mistake that prevents a build.
func (l *loader) fail(code string, pos diag.Pos, help, format string, args ...any) {
	l.add(diag.Error, code, pos, help, format, args...)
}

// warn records what may not be what the author expects.
func (l *loader) warn(code string, pos diag.Pos, help, format string, args ...any) {
	l.add(diag.Warning, code, pos, help, format, args...)
}

func (l *loader) add(severity diag.Severity, code string, pos diag.Pos, help, format string, args ...any) {
	l.diags = append(l.diags, diag.Diagnostic{
		Code: code, Severity: severity, Pos: pos, Message: fmt.Sprintf(format, args...), Help: help,
		Excerpt: l.sources.line(pos),
	})
}
