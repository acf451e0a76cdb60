package bdk

// Project is one agent with everything that was discovered in its folder. Generated programs build it and pass it to a
// host; authors do not need it.
type Project struct {
	Slug         string       // the name of the agent's folder
	Agent        Agent        // as defined in agent.go; the zero Agent if there is none
	Instructions Instructions // Agent.Instructions wins if it is set
	Tools        []NamedTool  // in name order
}

// NamedTool is a tool and the name its path gave it.
type NamedTool struct {
	Name   string // as the model sees it
	Source string // the file it is defined in, relative to the agent's folder
	Tool   Tool   // its definition
}
