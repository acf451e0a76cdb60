// Package bdk is what authors of agents import: the definitions an agent folder is made of.
//
// An agent is a folder. Each definition is one exported package-level variable in a file of its own, and the file's path
// is its name: bot/tools/inspect_pr.go defines the tool inspect_pr. Nothing is registered and nothing runs at import; the
// bdk command finds the definitions by their types.
package bdk
