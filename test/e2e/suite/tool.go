package suite

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bdk-lambda/bdk/shared/event"
)

// call calls a tool without a model. More fields are those of the body besides the input.
func (c *Client) call(tool string, input any, more ...string) Answer {
	c.t.Helper()
	body := map[string]any{"input": input}
	for pair := range slices.Chunk(more, 2) {
		body[pair[0]] = pair[1]
	}
	return c.post("/v1/tools/"+tool, body)
}

// called checks that a call went well and returns its result.
func (a Answer) called(tool string) any {
	a.t.Helper()
	if a.Status != 200 || a.Field("ok") != true || a.Field("isError") != false || a.Text("toolName") != tool || !strings.HasPrefix(a.Text("callId"), "tool_"+tool+"_") {
		a.t.Errorf("%s: got %d %.500s", tool, a.Status, a.Raw)
	}
	return a.Field("result")
}

type object = map[string]any

// callTools: the tables of calls without a model, for calls that are bound to nothing.
func callTools(t *testing.T, target Target) {
	ann := target.Ann(t)
	if got := ann.call("add", object{"a": 2, "b": 3}).called("add"); got != 5.0 {
		t.Errorf("2 + 3 = %v", got)
	}
	ann.call("shout", object{"text": "x"}).Refused("a script", 400, "tool_not_callable")
	ann.call("read", object{"path": "x"}).Refused("a tool of the harness", 404, "unknown_tool")
	unknown := ann.call("ad", object{})
	unknown.Refused("an unknown tool", 404, "unknown_tool")
	if names, _ := unknown.Field("available").([]any); !slices.Contains(names, any("add")) || slices.Contains(names, any("shout")) {
		t.Errorf("available: %v", names)
	}
	ann.call("add", object{"a": "2", "b": 3}).Refused("bad input", 400, "invalid_tool_input")
	ann.call("add", 7).Refused("no object", 400, "invalid_tool_input")
	ann.call("add", object{"a": 2, "b": 3}, "continuationToken", "nothing").Refused("no token", 400, "invalid_continuation_token")
	ann.call("add", object{"a": 2, "b": 3}, "continuationToken", "http:a.b", "sessionId", "ses_x").Refused("both", 400, "invalid_continuation_token")
	ann.call("add", object{"a": 2, "b": 3}, "sessionId", "ses_nobody").Refused("no session", 404, "session_not_found")
	if a := ann.call("fail", object{}); a.Status != 200 || a.Field("isError") != true || !strings.Contains(a.Raw, "out of paint") {
		t.Errorf("a tool that fails: %d %.500s", a.Status, a.Raw)
	}
	if a := ann.call("burst", object{}); a.Status != 200 || a.Field("isError") != true {
		t.Errorf("a tool that panics: %d %.500s", a.Status, a.Raw)
	}
	// what is written without a session is gone afterwards; the agent's own files are there
	ann.call("jot", object{"path": "a.txt", "text": "x"}).called("jot")
	if got := ann.call("inspect", object{"path": "a.txt"}).called("inspect").(object); got["missing"] != true {
		t.Errorf("a file of an earlier call: %v", got)
	}
	if got := ann.call("inspect", object{"path": "docs/house-rules.md"}).called("inspect").(object); got["text"] != "Wipe your feet." {
		t.Errorf("the seed: %v", got)
	}
	if got := ann.call("inspect", object{"path": "x"}, "continuationToken", "http:no.body").called("inspect").(object); got["session"] != "no.body" {
		t.Errorf("a token without a session: %v", got)
	}
	// a gated tool is for who may approve it
	id := ann.call("promote", object{"build": "z"})
	id.called("promote")
	if ran := ann.Notes(); ran[id.Text("callId")] != 1 {
		t.Errorf("a gated tool ran %d times", ran[id.Text("callId")])
	}
	if target.Sign != nil {
		ann.call("release", object{"build": "z"}).Refused("for others to approve", 403, "forbidden")
	}
}

// callToolsInASession: a bound call has the session's files, is recorded, and belongs to the owner.
func callToolsInASession(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("hello")
	s.Completed()
	wrote := ann.call("jot", object{"path": "d/a.txt", "text": "from a call"}, "sessionId", s.ID)
	wrote.called("jot")
	if wrote.Text("sessionId") != s.ID || wrote.Field("scratchWorkspace") != nil {
		t.Errorf("a bound call: %s", wrote.Raw)
	}
	got := ann.call("inspect", object{"path": "d/a.txt"}, "continuationToken", s.Token).called("inspect").(object)
	if got["text"] != "from a call" || got["session"] != s.ID {
		t.Errorf("the next call: %v", got)
	}
	old := s.Token
	s.Say("hello")
	s.Completed()
	ann.call("inspect", object{"path": "d/a.txt"}, "continuationToken", old).Refused("a stale token", 409, "stale_token")
	ann.Do("GET", "/v1/tools?continuationToken="+url.QueryEscape(old), "").Refused("a listing for a stale token", 409, "stale_token")
	if a := ann.Do("GET", "/v1/tools?continuationToken="+url.QueryEscape(s.Token), ""); a.Status != 200 {
		t.Errorf("a listing for a token: %d %s", a.Status, a.Raw)
	}
	log := s.Events("")
	Check(t, log)
	own := 0
	for _, e := range log {
		if e.TurnID == wrote.Text("callId") {
			own++
		}
	}
	if own != 2 {
		t.Errorf("%d events of the call; want its request and its result", own)
	}
	if target.Sign != nil {
		bob := target.client(t, "bob")
		bob.call("inspect", object{"path": "d/a.txt"}, "sessionId", s.ID).Refused("a foreigner", 403, "forbidden")
		bob.call("inspect", object{"path": "d/a.txt"}, "continuationToken", s.Token).Refused("a foreigner's token", 403, "forbidden")
		bob.Do("GET", "/v1/tools?continuationToken="+url.QueryEscape(s.Token), "").Refused("a listing for a foreigner's token", 403, "forbidden")
	}
	dry := ann.Start("hello", object{"dryRun": true})
	dry.Completed()
	if a := ann.call("release", object{"build": "z"}, "sessionId", dry.ID); a.called("release") != "would release z" || a.Field("stubbed") != true {
		t.Errorf("in a dry run: %s", a.Raw)
	}
}

// callToolsWhileBusy: while a turn runs, or waits for people, reads run beside it and writes are refused.
func callToolsWhileBusy(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("promote it")
	id := s.Waiting(1)[0]
	ann.call("jot", object{"path": "a", "text": "x"}, "sessionId", s.ID).Refused("a write", 409, "session_busy")
	ann.call("note", object{}, "sessionId", s.ID).Refused("what says nothing of its effect", 409, "session_busy")
	read := ann.call("inspect", object{"path": "docs/house-rules.md"}, "sessionId", s.ID)
	if got := read.called("inspect").(object); got["text"] != "Wipe your feet." {
		t.Errorf("a read: %v", got)
	}
	s.decided(id, "approve", "")
	Check(t, s.Completed())
	ann.call("jot", object{"path": "a", "text": "x"}, "sessionId", s.ID).called("jot")
	s.Usable()
}

// otherSessions: a tool asks the agent in another session, in a turn and without one.
func otherSessions(t *testing.T, target Target) {
	ann := target.Ann(t)
	results := Results(ann.Start("relay it").Completed())
	if len(results) != 1 || string(results[0].Output) != `"finished: ok"` {
		t.Fatalf("in a turn: %+v", results)
	}
	a := ann.call("relay", object{"text": "hello"})
	if got := a.called("relay"); got != "finished: ok" {
		t.Errorf("without one: %v", got)
	}
	list := ann.Do("GET", "/v1/sessions?limit=1000", "").Raw
	for _, id := range []string{results[0].CallID, a.Text("callId")} {
		if !strings.Contains(list, `"title":"relayed `+id+`"`) {
			t.Errorf("the session of call %s is not in the list", id)
		}
	}
}

// values: what a tool keeps is there for all sessions, and of many who change it none is lost.
func values(t *testing.T, target Target) {
	ann := target.Ann(t)
	name := ann.Start("hello").ID
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := ann.try("POST", "/v1/tools/tally", encode(object{"input": object{"name": name}})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := ann.call("tally", object{"name": name}).called("tally"); got != 9.0 {
		t.Errorf("counted %v; want 9", got)
	}
}

// artifacts: what a tool hands in is told in the stream, listed and downloaded, by its owner alone.
func artifacts(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("hand it in")
	tagged := all[event.ArtifactTagged](s.Completed())
	if len(tagged) != 1 || tagged[0].Kind != "report" || tagged[0].Key != "weekly" {
		t.Fatalf("tagged: %+v", tagged)
	}
	var list struct {
		Artifacts []struct{ ID, Title, File, SessionID string }
	}
	a := ann.Do("GET", "/v1/artifacts?kind=report&limit=5&sessionId="+s.ID, "")
	if err := json.Unmarshal([]byte(a.Raw), &list); err != nil || len(list.Artifacts) != 1 || list.Artifacts[0].ID != tagged[0].ID || list.Artifacts[0].File != "report.md" {
		t.Errorf("the list: %d %s", a.Status, a.Raw)
	}
	content := "/v1/artifacts/" + tagged[0].ID + "/content"
	a = ann.Do("GET", content, "")
	if a.Status != 200 || a.Raw != "all is well" || !strings.Contains(a.Header.Get("Content-Disposition"), "report.md") {
		t.Errorf("the content: %d %v %q", a.Status, a.Header, a.Raw)
	}
	ann.Do("GET", "/v1/artifacts/art_nothing/content", "").Refused("no artifact", 404, "not_found")
	ann.Do("GET", "/v1/artifacts?limit=0", "").Refused("a limit", 400, "invalid_request")
	if target.Sign != nil {
		target.client(t, "bob").Do("GET", content, "").Refused("a foreigner", 403, "forbidden")
	}
}

// filesStay: what tools write is there for later steps, turns and calls, whoever made it: the harness, a script, a shell.
func filesStay(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("keep it")
	var got []string
	for _, r := range Results(s.Completed()) {
		var text string
		_ = json.Unmarshal(r.Output, &text)
		if r.IsError {
			t.Errorf("%s: %s", r.ToolName, text)
		}
		got = append(got, r.ToolName+": "+text)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"shout: {\"TEXT\":\"LOUD\"}\nWipe your feet.\n0", "two"} {
		if !strings.Contains(all, want) {
			t.Errorf("the results:\n%s\nwant %q among them", all, want)
		}
	}
	if got := ann.call("inspect", object{"path": "notes/bin"}, "sessionId", s.ID).called("inspect").(object); got["text"] != "\x01" {
		t.Errorf("what the shell wrote: %v", got)
	}
	s.Say("hello")
	s.Completed()
	if got := ann.call("inspect", object{"path": "notes/today.md"}, "sessionId", s.ID).called("inspect").(object); got["text"] != "two" {
		t.Errorf("in a later turn: %v", got)
	}
	other := ann.Start("hello")
	other.Completed()
	if got := ann.call("inspect", object{"path": "notes/today.md"}, "sessionId", other.ID).called("inspect").(object); got["missing"] != true {
		t.Errorf("in another session: %v", got)
	}
}

// filesOfTheAgent: the seed, the skills and the catalog are found with the tools that list and search.
func filesOfTheAgent(t *testing.T, target Target) {
	results := map[string]string{}
	for _, r := range Results(target.Ann(t).Start("files of it").Completed()) {
		var text string
		if json.Unmarshal(r.Output, &text) != nil {
			text = string(r.Output)
		}
		if r.IsError {
			t.Errorf("%s: %s", r.ToolName, text)
		}
		results[r.ToolName] = text
	}
	for tool, want := range map[string][]string{
		"ls":   {"AGENTS.md", "docs"},
		"glob": {"docs/house-rules.md", ".agents/skills/deploy/SKILL.md", ".agents/skills/deploy/references/checklist.md", ".agents/skills/triage/SKILL.md"},
		"grep": {"docs/house-rules.md", "Wipe your feet."},
		"read": {"shout", "Say it loud."},
	} {
		for _, w := range want {
			if !strings.Contains(results[tool], w) {
				t.Errorf("%s: %q lacks %q", tool, results[tool], w)
			}
		}
	}
}

// filesOfTheClient: the files that a session was started with are there, in place of the seed's.
func filesOfTheClient(t *testing.T, target Target) {
	ann := target.Ann(t)
	large := strings.Repeat("0123456789abcdef", 20_000)
	s := ann.Start("hello", object{"workspaceFiles": object{"docs/house-rules.md": "Come in.", "large.txt": large}})
	s.Completed()
	for path, want := range map[string]string{"docs/house-rules.md": "Come in.", "large.txt": large} {
		if got := ann.call("inspect", object{"path": path}, "sessionId", s.ID).called("inspect").(object); got["text"] != want {
			t.Errorf("%s: %.100v", path, got["text"])
		}
	}
	for _, path := range []string{"../a", "/a", "a/../../b", "a\\b", "a\x00b", ".", "", "a//b", "C:/x", strings.Repeat("a", 5000)} {
		a := ann.post("/v1/session", object{"message": "hello", "workspaceFiles": object{path: "x"}})
		a.Refused(fmt.Sprintf("the file %.20q", path), 400, "invalid_request")
	}
}

// pathsThatEscape: no tool of the harness leaves the session's files.
func pathsThatEscape(t *testing.T, target Target) {
	results := Results(target.Ann(t).Start("escape").Completed())
	for _, r := range results {
		if !r.IsError || strings.Contains(string(r.Output), "root:") {
			t.Errorf("%s: %s", r.ToolName, r.Output)
		}
	}
	if len(results) != 5 {
		t.Errorf("%d results; want 5", len(results))
	}
}

// skills: a skill is loaded by name, which an event tells, and its files are found where it says.
func skills(t *testing.T, target Target) {
	log := target.Ann(t).Start("skills").Completed()
	var loaded []string
	for _, s := range all[event.SkillLoaded](log) {
		loaded = append(loaded, s.Name)
	}
	slices.Sort(loaded)
	if d := cmp.Diff([]string{"deploy", "triage"}, loaded); d != "" {
		t.Error(d)
	}
	var text strings.Builder
	for _, r := range Results(log) {
		fmt.Fprintf(&text, "%s %t %s\n", r.ToolName, r.IsError, r.Output)
	}
	for _, want := range []string{"Read references/checklist.md first.", "Look for the first line that is wrong.", "read false ", "nobody deploys on a Friday", "skill true "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the results:\n%s", want, text.String())
		}
	}
}

// subagents: delegations run beside each other, ask for approval, and come back as results; what goes wrong is one, too.
func subagents(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("delegate it")
	id := s.Waiting(1)[0]
	s.decided(id, "approve", "")
	log := s.Completed()
	called, completed := all[event.SubagentCalled](log), all[event.SubagentCompleted](log)
	if len(called) != 2 || len(completed) != 2 || completed[0].IsError || completed[1].IsError {
		t.Errorf("called %+v, completed %+v", called, completed)
	}
	parents := map[string]bool{}
	for _, c := range called {
		parents[c.CallID] = true
	}
	for _, a := range all[event.ApprovalRequested](log) {
		if a.CallID == id && !parents[a.ParentCallID] {
			t.Errorf("asked for %+v; want the call of the delegation", a)
		}
	}
	tasks := 0
	for _, r := range Results(log) {
		if r.ToolName != "task" {
			continue
		}
		tasks++
		if r.IsError == parents[r.CallID] {
			t.Errorf("%+v", r)
		}
	}
	if tasks != 3 || ann.Notes()[id] != 1 {
		t.Errorf("%d results of delegations, the approved call ran %d times", tasks, ann.Notes()[id])
	}
	s.Usable()
}

// storedFiles: files of the deployment are there for all sessions, and those in memory/ are shown to the model; files of a session are its own.
func storedFiles(t *testing.T, target Target) {
	ann := target.Ann(t)
	for range 2 {
		if got := Results(ann.Start("stash it").Completed()); len(got) != 1 || string(got[0].Output) != `"a line to remember\n"` {
			t.Fatalf("the files of a session: %+v", got)
		}
	}
	s := ann.Start("recall it")
	got := Results(s.Completed())
	if len(got) != 2 {
		t.Fatalf("recalled %+v", got)
	}
	for _, r := range got {
		if r.ToolName == "read" && strings.Count(string(r.Output), "a line to remember") < 2 || r.IsError {
			t.Errorf("%s: %s", r.ToolName, r.Output)
		}
	}
	if dry := Results(ann.Start("stash it", object{"dryRun": true}).Completed()); len(dry) != 1 || !dry[0].Stubbed {
		t.Errorf("in a dry run: %+v", dry)
	}
}

// artifactKinds: the model records artifacts of the kinds that there are, and is told what is wrong with others.
func artifactKinds(t *testing.T, target Target) {
	ann := target.Ann(t)
	s := ann.Start("score it")
	log := s.Completed()
	if tagged := all[event.ArtifactTagged](log); len(tagged) != 1 || tagged[0].Kind != "score" || tagged[0].Title != "A game" {
		t.Errorf("tagged %+v", tagged)
	}
	var faults []string
	for _, r := range Results(log) {
		if r.IsError {
			faults = append(faults, string(r.Output))
		}
	}
	if text := strings.Join(faults, " "); len(faults) != 2 || !strings.Contains(text, "points") || !strings.Contains(text, "the kinds are report, score") {
		t.Errorf("told %s", faults)
	}
	a := ann.Do("GET", "/v1/artifacts?kind=score&sessionId="+s.ID, "")
	if a.Status != 200 || !strings.Contains(a.Raw, `"data":{"points":3}`) {
		t.Errorf("the list: %d %s", a.Status, a.Raw)
	}
	if dry := Results(ann.Start("score it", object{"dryRun": true}).Completed()); len(dry) != 3 || !dry[0].Stubbed {
		t.Errorf("in a dry run: %+v", dry)
	}
	if info := ann.Do("GET", "/v1/info", ""); !strings.Contains(info.Raw, `{"name":"report","description":"What somebody has handed in."}`) {
		t.Errorf("info does not show the kinds: %s", info.Raw)
	}
}
