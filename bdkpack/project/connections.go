package project

import (
	"go/ast"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bdk-lambda/bdk/bdkpack/bdk"
	"github.com/bdk-lambda/bdk/bdkpack/diag"
)

// checkConnection looks for mistakes in the value of a bdk.Connection.
func (v *view) checkConnection(one variable, f *folder) {
	lit, ok := v.literal(one.value)
	if !ok {
		if one.value == nil && !one.shared {
			v.fail(codeTransport, one.obj.Pos(), "set URL, Command or Agent", "the connection leads nowhere")
		}
		return
	}
	v.checkLimits(lit, "Timeout")
	v.checkApproval(lit)
	v.checkTransport(lit)
	v.checkFields(lit)
	v.checkTemplates(lit, f)
	v.checkPatterns(lit)
	v.checkAdvertised(lit)
	if field(lit, "Command") != nil {
		f.agent.Programs = append(f.agent.Programs, v.src.name)
	}
}

// given returns the fields of a literal that are set, and not to "".
func (v *view) given(lit *ast.CompositeLit, names ...string) (set []string) {
	for _, name := range names {
		e := field(lit, name)
		if text, known := v.constant(e); e != nil && !v.isNil(e) && (!known || text != "") {
			set = append(set, name)
		}
	}
	return set
}

func (v *view) checkTransport(lit *ast.CompositeLit) {
	switch set := v.given(lit, "URL", "Command", "Agent"); {
	case len(set) == 0:
		v.fail(codeTransport, lit.Pos(), "set URL, Command or Agent", "the connection leads nowhere")
	case len(set) > 1:
		v.fail(codeTransport, field(lit, set[1]).Pos(), "make two connections of it", "the connection has %s", strings.Join(set, " and "))
	}
	if slug, known := v.constant(field(lit, "Agent")); known && slug != "" && !slugPattern().MatchString(slug) {
		v.fail(codeTransport, field(lit, "Agent").Pos(), "write the name of its folder", "%.80q cannot name an agent", slug)
	}
}

// checkFields complains about fields that go with another transport.
func (v *view) checkFields(lit *ast.CompositeLit) {
	command := len(v.given(lit, "Command")) > 0
	wrong := v.given(lit, "Args", "Env")
	help := "a server behind a URL takes Headers"
	if command {
		wrong, help = v.given(lit, "Headers", "Auth"), "a Command takes Env"
	}
	for _, name := range wrong {
		v.fail(codeOtherTransport, field(lit, name).Pos(), help, "%s has no effect here", name)
	}
}

// checkTemplates complains about what is wrong with texts in which variables stand, and about variables that are not set. It never shows
// a value.
func (v *view) checkTemplates(lit *ast.CompositeLit, f *folder) {
	env := (&exec.Cmd{Env: v.l.opts.Env}).Environ()
	for _, e := range v.texts(lit) {
		text, known := v.constant(e)
		if !known {
			continue
		}
		c := bdk.Connection{Command: "x", Args: []string{text}}
		if e == field(lit, "URL") {
			c = bdk.Connection{URL: text}
		}
		if err := c.Err(); err != nil && text != "" {
			v.fail(codeTemplate, e.Pos(), "a URL begins with http:// or https://; a variable is written ${NAME}", "%v", err)
			continue
		}
		for _, name := range c.Variables() {
			if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") && kv != name+"=" }) {
				v.warnAt(codeNotSet, e.Pos(), "set it where the agent is served; on AWS it may be in the deployment's secret", "the variable "+name+" is not set here")
			}
		}
	}
}

// texts returns the expressions in which variables may stand.
func (v *view) texts(lit *ast.CompositeLit) []ast.Expr {
	all := []ast.Expr{field(lit, "URL")}
	for _, name := range []string{"Headers", "Args", "Env"} {
		values, ok := v.literal(field(lit, name))
		if !ok {
			continue
		}
		for _, e := range values.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			all = append(all, e)
		}
	}
	return slices.DeleteFunc(all, func(e ast.Expr) bool { return e == nil })
}

func (v *view) checkPatterns(lit *ast.CompositeLit) {
	for _, name := range []string{"Allow", "Deny", "Reads"} {
		values, ok := v.literal(field(lit, name))
		if !ok {
			continue
		}
		for _, e := range values.Elts {
			text, known := v.constant(e)
			if _, err := path.Match(text, ""); known && (err != nil || text == "") {
				v.fail(codePattern, e.Pos(), "write the name of a tool, with * for any characters", "%.80q in %s is no pattern", text, name)
			}
		}
	}
}

// checkAdvertised warns of a connection that the model might be thought to have.
func (v *view) checkAdvertised(lit *ast.CompositeLit) {
	hidden := v.src.slot.dir == "host-connections"
	advertised := field(lit, "AdvertiseTools")
	on := advertised != nil && !v.isFalse(advertised)
	at := lit.Pos()
	if advertised != nil {
		at = advertised.Pos()
	}
	switch agent := len(v.given(lit, "Agent")) > 0; {
	case hidden && on:
		v.warnAt(codeAdvertised, at, "move the file into mcp-connections/, or remove AdvertiseTools", "the model is not offered the tools of a host connection")
	case !hidden && !on && !agent:
		v.warnAt(codeAdvertised, at, "set AdvertiseTools, or move the file into host-connections/ if it is for code only", "the model is offered no tools of this connection")
	}
}

func (v *view) isFalse(e ast.Expr) bool {
	value := v.pkg.TypesInfo.Types[e].Value
	return value != nil && value.String() == "false"
}

// checkTwins complains about a connection for code only that has the name of another one.
func (l *loader) checkTwins(f *folder) {
	for _, c := range f.agent.HostConnections {
		if slices.ContainsFunc(f.agent.Connections, func(o Named) bool { return o.Name == c.Name }) {
			l.fail(codeTwin, diag.Pos{File: filepath.Join(f.agent.Dir, filepath.FromSlash(c.File))}, "rename one of them: code knows both by their names",
				"mcp-connections/ has a connection %s, too", c.Name)
		}
	}
}
