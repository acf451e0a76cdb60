// Package mcp holds an agent against what others have made for the Model Context Protocol: the official conformance suite, the
// official inspector, and servers that everybody uses.
package mcp
