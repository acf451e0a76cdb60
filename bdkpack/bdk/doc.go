// Package bdk is what authors of agents import: the definitions an agent folder is made of.
//
// An agent is a folder. Each definition is one exported package-level variable in a file of its own, and the file's path
// is its name: bot/tools/inspect_pr.go defines the tool inspect_pr. Nothing is registered and nothing runs at import; the
// bdk command finds the definitions by their types:
//
//   - [Agent] in bot/agent.go says which model the agent uses and what bounds it;
//   - [Instructions] in bot/instructions.go, or the file bot/instructions.md, tell the model what it is for;
//   - [DefineTool] in a file of bot/tools/ gives it a tool that runs in the host, [DefineScript] one that runs as a script beside
//     the session's files;
//   - [Skill] in a file of bot/skills/, or a Markdown file or folder there, gives it a procedure to load when it is needed.
//
// Definitions are values: they are read when the program starts, and what they hold is called concurrently, by all sessions
// of the agent. A zero field of a definition has the default that is documented with it.
//
// [Prompt] is for texts that are longer than a line, [Call] is what a tool knows about who calls it, and [Event] is what
// the stream of a session delivers.
package bdk
