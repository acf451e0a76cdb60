package bdk

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/bdk-lambda/bdk/shared/schema"
)

// Agent configures an agent. It is optional: without one, every field has its default.
//
// It is defined in bot/agent.go:
//
//	var Agent = bdk.Agent{Model: "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
type Agent struct {
	// Name is what people read. Default: the slug, which is the name of the agent's folder.
	Name string

	// Description says what the agent is for, in one sentence. The model that may delegate to a subagent decides by it, so a
	// subagent needs one: say when to use it. Default: none.
	Description string

	// Model is provider:name, where the provider is bedrock, anthropic, openai or scripted. The name of a scripted
	// model is a file, relative to the agent's folder. The environment variable BDK_MODEL overrides it.
	// It is required, here or in the environment.
	Model string

	// Fallbacks are models to ask, in order, when the one before cannot answer. Default: none.
	Fallbacks []string

	// Instructions is the system prompt. Default: bot/instructions.md, bot/instructions.go or the files of bot/instructions/.
	Instructions Instructions

	// Tools are those of the harness that the model is offered beside the agent's own: [ToolRead], [ToolWrite], [ToolEdit],
	// [ToolList], [ToolGlob], [ToolGrep] and [ToolShell]. [ToolSkill] is offered where there are skills, [ToolTask] where
	// there are subagents and [ToolTagArtifact] where [ArtifactKinds] say so, unless Tools is not nil and does not name them. Default: none of the others.
	Tools []string

	// Result is what the last text of a turn must be, see [ResultOf]. Default: any text.
	Result ResultSchema

	// MaxOutputTokens bounds one answer of the model. Default: 8,192.
	MaxOutputTokens int

	// ContextTokens is how much the model can read. A conversation that nears it is compacted. Default: 200,000.
	ContextTokens int

	// SessionTTL is how long after its last turn a session is removed. One whose turn runs, or waits for approval, stays. Nobody sees it
	// from then on; on AWS its record may take two days more to go. What its files contained stays among the blobs, where files of the
	// same content are one. It counts for sessions whose turns end after it was set. Default: never.
	SessionTTL time.Duration

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

// The tools of the harness. They work on the files of the session.
const (
	ToolRead  = "read"
	ToolWrite = "write"
	ToolEdit  = "edit"
	ToolList  = "ls"
	ToolGlob  = "glob"
	ToolGrep  = "grep"
	ToolShell = "shell" // runs commands beside the files, see the README for what contains them
	ToolTask  = "task"  // delegates to a subagent
	ToolSkill = "skill" // loads a skill

	ToolTagArtifact = "tag_artifact" // records an artifact
)

// HarnessTools returns the names of all tools of the harness.
func HarnessTools() []string {
	return []string{ToolRead, ToolWrite, ToolEdit, ToolList, ToolGlob, ToolGrep, ToolShell, ToolTask, ToolSkill, ToolTagArtifact}
}

// ResultSchema says what the last text of a turn must be: JSON that matches a schema. The model is told the schema. A text that
// does not match is answered once with what is wrong; if the next one does not match either, the turn fails. The zero
// ResultSchema accepts any text.
type ResultSchema struct {
	schema *schema.Schema
	err    error
}

// ResultOf returns the schema of JSON that fits T, a struct, inferred as the input of a tool is:
//
//	var Agent = bdk.Agent{Result: bdk.ResultOf[verdict]()}
func ResultOf[T any]() ResultSchema {
	s, err := schema.For[T](nil)
	return ResultSchema{s, err}
}

// RawResult returns a given JSON Schema of type object as a ResultSchema.
func RawResult(raw json.RawMessage) ResultSchema {
	s, err := schema.Parse(raw)
	return ResultSchema{s, err}
}

// JSON returns the schema, nil if there is none or the definition is wrong. Do not change the bytes.
func (r ResultSchema) JSON() json.RawMessage {
	if r.schema == nil {
		return nil
	}
	return r.schema.JSON()
}

// Err returns what is wrong with the definition; nil if nothing is.
func (r ResultSchema) Err() error { return r.err }

// Equal reports whether both accept the same texts.
func (r ResultSchema) Equal(other ResultSchema) bool {
	return string(r.JSON()) == string(other.JSON()) && (r.err == nil) == (other.err == nil)
}

// Check returns what keeps text from being a result; nil if nothing does. The error is written for the model.
func (r ResultSchema) Check(text string) error {
	if r.schema == nil {
		return r.err
	}
	err := schema.Object([]byte(text))
	if err == nil {
		err = r.schema.Validate(json.RawMessage(text))
	}
	if err == nil {
		return nil
	}
	if rest, ok := strings.CutPrefix(err.Error(), "the input "); ok {
		return errors.New("the text " + rest)
	}
	return err
}

// Skill is a procedure that the model loads when a task calls for it. It is advertised by its description:
//
//	var Skill = bdk.Skill{Description: "Use when a topic is unfamiliar.", Markdown: "Gather evidence first."}
//
// in bot/skills/research.go defines the skill research; bot/skills/research.md, or bot/skills/research/SKILL.md with the
// files beside it, do the same without code.
type Skill struct {
	Description string            // when to use it; required
	Markdown    string            // what the model reads when it loads the skill; required
	Files       map[string]string // more files, by path relative to the skill, such as references/checklist.md
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
