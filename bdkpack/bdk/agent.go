package bdk

import "time"

// Agent configures an agent. It is optional: without one, every field has its default.
//
// It is defined in bot/agent.go:
//
//	var Agent = bdk.Agent{Model: "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
type Agent struct {
	// Name is what people read. Default: the slug, which is the name of the agent's folder.
	Name string

	// Description says what the agent is for, in one sentence. Default: none.
	Description string

	// Model is provider:name, where the provider is bedrock, anthropic, openai or scripted. The name of a scripted
	// model is a file, relative to the agent's folder. The environment variable BDK_MODEL overrides it.
	// It is required, here or in the environment.
	Model string

	// Fallbacks are models to ask, in order, when the one before cannot answer. Default: none.
	Fallbacks []string

	// Instructions is the system prompt. Default: bot/instructions.md, bot/instructions.go or the files of bot/instructions/.
	Instructions Instructions

	// MaxOutputTokens bounds one answer of the model. Default: 8,192.
	MaxOutputTokens int

	// ContextTokens is how much the model can read. A conversation that nears it is compacted. Default: 200,000.
	ContextTokens int

	// Limits bound what a turn and a session may use.
	Limits Limits
}

// Limits bound what a turn and a session may use. A limit that is reached ends the turn with turn.failed, whose message
// names it. Zero fields take the documented defaults.
type Limits struct {
	StepsPerTurn     int           // model calls in a turn; default 50
	TurnTime         time.Duration // wall time of a turn; default 1 hour
	RunningTurns     int           // turns of this agent that a process runs at once, the others wait; default 64; on AWS the account decides
	ParallelTools    int           // tool calls of one step that run at once; default 8
	ToolOutput       int           // bytes of all tool results of one step that the model reads, head and tail of each are kept; default 65,536
	TokensPerSession int64         // all tokens of a session; default: no limit
	USDPerSession    float64       // estimated cost of a session, where prices are known; default: no limit
}

// Instructions is the always-on system prompt of an agent, for instructions that are generated:
//
//	var Instructions = bdk.Instructions("You are the on-call assistant for " + os.Getenv("TEAM_NAME"))
type Instructions string

// WithDefaults returns a with every zero limit and size replaced by its documented default.
func (a Agent) WithDefaults() Agent {
	a.MaxOutputTokens = or(a.MaxOutputTokens, 8192)
	a.ContextTokens = or(a.ContextTokens, 200_000)
	l := &a.Limits
	l.StepsPerTurn = or(l.StepsPerTurn, 50)
	l.TurnTime = or(l.TurnTime, time.Hour)
	l.RunningTurns = or(l.RunningTurns, 64)
	l.ParallelTools = or(l.ParallelTools, 8)
	l.ToolOutput = or(l.ToolOutput, 65_536)
	return a
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
