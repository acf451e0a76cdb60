// Package suite is one set of HTTP tests for a deployed agent, whatever host it runs on. [Run] talks to a [Target], which
// serves the fixture workshop of test/agents; all it knows of the host is what an HTTP client can see.
package suite
