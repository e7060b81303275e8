package doctor

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/policy"
	"goblin/gateway/upstream/stderr"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

func (p *serverCheck) checkLists(t *session) {
	if p.checkListed(t) && p.schemas(t) {
		p.limits(t)
		p.overrides(t)
	}
}

func (p *serverCheck) overrides(t *session) {
	for _, w := range policy.CheckOverrides(p.Config, policy.CatalogEntries(t.Load())) {
		p.AddWarning("overrides", w.Text, fmt.Sprintf("fix line %d of %s", w.Line, p.Config.Path))
	}
}

var limited = pattern(`\((limits\.\w+)\)`)

func (p *serverCheck) checkListed(t *session) bool {
	const name = "lists"
	if why := t.connectError(); why != nil {
		fix := "check the server's log; Goblin got no further details"
		if p.s.Type == config.Stdio {
			fix = p.runByHandFix()
		}
		p.fail(name, why, fix)
		c := &p.Checks[len(p.Checks)-1]
		c.Text = "the connection closed during or after listing: " + c.Text
		return false
	}
	if len(t.missing) > 0 {
		text, fix := firstOf(t.missing), "update the server, or report this to its authors"
		switch limit := limited().FindStringSubmatch(text); {
		case strings.Contains(text, fmt.Sprintf("(code %d)", jsonrpc.CodeMethodNotFound)):
			fix += ": it declares a capability that it doesn't implement"
		case limit != nil:
			fix = fmt.Sprintf("raise %s under gateway, or report this to the server's authors", limit[1])
		}
		if help, _ := stderr.FindFix(t.missing); help != "" && p.s.Type == config.Stdio {
			fix = help
		}
		if cause, add := p.missingVariables(t.missing); cause != "" {
			text, fix = text+"; "+cause, add
		}
		p.AddBroken(name, text, fix)
		return false
	}
	var dropped []string
	for _, w := range t.problems {
		if w.Level >= slog.LevelWarn && !slices.ContainsFunc(t.tools, func(def []byte) bool { return longDescription(def) == w.Text }) {
			dropped = append(dropped, fmt.Sprintf("%s %q: %s", w.Kind, short(w.Name, 80), w.Text))
		}
	}
	if len(dropped) > 0 {
		p.AddWarning(name, firstOf(dropped), "report this to the server's authors")
	} else {
		p.AddOK(name, t.summary())
	}
	p.reportRepairs(t)
	return true
}

const maxRepaired = 10

func (p *serverCheck) reportRepairs(t *session) {
	s, _ := t.State(p.s.Name)
	var shown []string
	for _, d := range s.Repairs.Details {
		if !d.Dropped && len(shown) < maxRepaired {
			shown = append(shown, fmt.Sprintf("%s %q: %s", d.Kind, short(d.Name, 80), d.Text))
		}
	}
	if len(shown) == 0 {
		return
	}
	text := strings.Join(shown, "; ")
	if more := s.Repairs.Changed - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	p.AddWarning("definitions", registry.ChangedText+": "+text, "report this to the server's authors")
}

func firstOf(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("%s; and %d more", all[0], len(all)-1)
}

// schemas checks the tools' schemas as most clients get them.
func (p *serverCheck) schemas(t *session) bool {
	const name = "schemas"
	if len(t.tools) == 0 {
		return true
	}
	var broken, refused []string
	for e := range t.Load().Server(p.s.Name, registry.Tool) {
		for _, f := range SchemaFaults(e.LegacyJSON()) {
			text := fmt.Sprintf("tool %q: %s", short(e.Name, 80), f.Text)
			if f.Broken {
				broken = append(broken, text)
			} else {
				refused = append(refused, text)
			}
		}
	}
	switch {
	case len(broken) > 0:
		p.AddBroken(name, firstOf(broken), p.hideToolFix("report this to the server's authors; until then, hide the tool"))
	case len(refused) > 0:
		p.AddWarning(name, firstOf(refused), p.hideToolFix("if your client rejects it, hide the tool"))
	default:
		p.AddOK(name, termtext.Count(len(t.tools), "tool")+" with valid schemas")
	}
	return len(broken) == 0
}

func (p *serverCheck) hideToolFix(when string) string {
	if p.s.JSON {
		return fmt.Sprintf(`%s: "tools": {"deny": ["NAME"]} in %q`, when, p.s.Name)
	}
	return fmt.Sprintf("%s: tools: {deny: [NAME]} in %q", when, p.s.Name)
}

// longDescription returns why clients cut a tool's description, or "".
func longDescription(def []byte) string {
	text := rawjson.GetString(def, "description")
	return definition.LongDescription(text)
}

func (p *serverCheck) limits(t *session) {
	const name = "limits"
	tools := 0
	cut := 0
	long := ""
	example := ""
	for e := range t.Load().All(registry.Tool) {
		if e.Server != p.s.Name {
			continue
		}
		tools++
		for _, l := range report.KnownLimits {
			if l.Name > 0 && len(l.Prefix)+len(e.Listed) > l.Name && long == "" {
				long = fmt.Sprintf("tool %q is listed as %q, too long for %s: the limit is %d characters after %q", short(e.Name, 80), e.Listed, l.Client, l.Name-len(l.Prefix), l.Prefix)
			}
		}
		if n := len(p.s.Name) + 1 + len(e.Name); n > len(e.Listed) {
			cut++
			example = e.Listed
		}
	}
	if long != "" {
		p.AddBroken(name, long, "set max_name: 51 in gateway")
		return
	}
	for _, def := range t.tools {
		if why := longDescription(def); why != "" {
			tool := rawjson.GetString(def, "name")
			p.Add(report.Check{Name: name, State: report.Warning, Text: fmt.Sprintf("tool %q: %s", short(tool, 80), why), Fix: "report to the server's authors that the important parts should come first"})
			return
		}
	}
	if tools == 0 {
		return
	}
	text := []string{"names fit known clients"}
	if cut > 0 {
		text = append(text, fmt.Sprintf("%d shortened, such as %s", cut, example))
	}
	p.AddOK(name, strings.Join(text, "; "))
}
