package suite

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// Target is a deployed agent: the fixture workshop of test/agents, on any host.
type Target struct {
	// URL is where the agent's routes are; it ends before /v1.
	URL string

	// HostURL is where the routes of the host are. "": they are left out.
	HostURL string

	// Sign makes a request one of the given principal, "ann" or "bob". nil: every caller is the same, and what needs two
	// principals is left out.
	Sign func(r *http.Request, principal string)

	// HTTP sends the requests.
	HTTP *http.Client

	// Texts says that a body is text by the time the agent gets it: what is no UTF-8 has been replaced on the way.
	Texts bool

	// Expiry is how long after its time a call may wait at most that nobody decides about.
	Expiry time.Duration

	// LateLogs says that what was logged may be shown some seconds later.
	LateLogs bool
}

// Run runs every case against the target. The cases run at the same time, each with sessions of its own.
func Run(t *testing.T, target Target) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, Target){
		"Start":                     start,
		"FollowUps":                 followUps,
		"IdempotencyKeys":           idempotencyKeys,
		"ManyRequestsWithOneKey":    manyRequestsWithOneKey,
		"DryRun":                    dryRun,
		"Lists":                     lists,
		"Cost":                      cost,
		"Discovery":                 discovery,
		"Logs":                      logs,
		"HostRoutes":                hostRoutes,
		"WrongPathsAndMethods":      wrongPathsAndMethods,
		"BadBodies":                 badBodies,
		"BadQueries":                badQueries,
		"HugeBodies":                hugeBodies,
		"EveryRouteNeedsACaller":    everyRouteNeedsACaller,
		"SessionsBelongToTheirUser": sessionsBelongToTheirUser,
		"StreamReplaysThenFollows":  streamReplaysThenFollows,
		"StreamParameters":          streamParameters,
		"ReconnectAtEveryIndex":     reconnectAtEveryIndex,
		"ReconnectThroughAProxy":    reconnectThroughAProxy,
		"ReaderGoesAway":            readerGoesAway,
		"WholeCharacters":           wholeCharacters,
		"Stop":                      stop,
		"StopDuringAnAnswer":        stopDuringAnAnswer,
		"StopOfADeafTool":           stopOfADeafTool,
		"InterruptByAMessage":       interruptByAMessage,
		"MalformedCalls":            malformedCalls,
		"ToolsThatFail":             toolsThatFail,
		"LargeOutputs":              largeOutputs,
		"WritesRunOnce":             writesRunOnce,
		"Runaway":                   runaway,
		"ModelFaults":               modelFaults,
		"Approvals":                 approvals,
		"Denials":                   denials,
		"ApprovalsInAnyOrder":       approvalsInAnyOrder,
		"InterruptedApprovals":      interruptedApprovals,
		"OtherApprovers":            otherApprovers,
		"ExpiredApprovals":          expiredApprovals,
		"FiftyDecisions":            fiftyDecisions,
		"GatedScript":               gatedScript,
		"CallTools":                 callTools,
		"CallToolsInASession":       callToolsInASession,
		"CallToolsWhileBusy":        callToolsWhileBusy,
		"OtherSessions":             otherSessions,
		"Values":                    values,
		"Artifacts":                 artifacts,
		"FilesStay":                 filesStay,
		"FilesOfTheAgent":           filesOfTheAgent,
		"FilesOfTheClient":          filesOfTheClient,
		"PathsThatEscape":           pathsThatEscape,
		"Skills":                    skills,
		"Subagents":                 subagents,
		"Schedules":                 schedules,
		"DevRoutes":                 devRoutes,
		"Reminders":                 reminders,
		"Connections":               connections,
		"MCPChat":                   mcpChat,
		"MCPApprovals":              mcpApprovals,
		"MCPTools":                  mcpTools,
		"MCPMessages":               mcpMessages,
		"Hooks":                     hooks,
		"StoredFiles":               storedFiles,
		"ArtifactKinds":             artifactKinds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, target)
		})
	}
}

// twoPrincipals skips a case on a target with one.
func (target Target) twoPrincipals(t *testing.T) {
	t.Helper()
	if target.Sign == nil {
		t.Skip("skipped: the target has one principal")
	}
}

// Ann returns the client most cases use.
func (target Target) Ann(t *testing.T) *Client {
	t.Helper()
	return target.client(t, "ann")
}

func (target Target) client(t *testing.T, principal string) *Client {
	t.Helper()
	c := &Client{t: t, base: target.URL, http: target.HTTP}
	if target.Sign != nil && principal != "" {
		c.sign = func(r *http.Request) { target.Sign(r, principal) }
	}
	return c
}

// address returns the host and port of the target.
func (target Target) address(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
