package bdk

// Connection is a server of tools, or another agent, that this agent calls. The file bot/mcp-connections/linear.go defines the connection
// linear, whose tools the model may be offered; one in bot/host-connections/ is for code only.
type Connection struct{}
