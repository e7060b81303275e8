package breakpoints

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/rawjson"
	"goblin/registry/rule"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// Target selects requests for a new rule. Empty members match everything.
type Target struct {
	Title                        string
	Method, Name, Server, Client string
	// Reason explains why no rule can match, or is "".
	Reason string
}

// methods are the requests that use an entry.
var methods = map[registry.Kind]string{
	registry.Tool: "tools/call", registry.Prompt: "prompts/get", registry.Resource: "resources/read", registry.Template: "resources/read",
}

// TargetOfItem returns the requests for an entry of the catalog.
func TargetOfItem(it uicontext.Item) Target {
	if it.IsEmpty() {
		return Target{Reason: "no call, tool or server selected"}
	}
	t := Target{Title: it.Listed, Method: methods[it.Kind], Name: "=" + it.Listed, Server: "=" + it.Server}
	if it.Kind == registry.Template {
		t.Name = variables().ReplaceAllString(it.Listed, "*")
	}
	return t
}

var variables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[^{}]*\}`) })

// TargetOfServer returns the requests to a server.
func TargetOfServer(server string) Target {
	if server == "" {
		return Target{Reason: "no server selected"}
	}
	return Target{Title: server, Server: "=" + server}
}

// TargetOfRecord returns the requests like a recorded one.
func TargetOfRecord(rec *registry.TrafficRecord) Target {
	if rec.Direction == registry.ToClient || rec.Status == registry.StatusNotification {
		return Target{Reason: "rules apply only to requests of clients"}
	}
	t := Target{Title: cmp.Or(rec.Name, rec.Method), Method: rec.Method}
	exact := func(value string) string {
		if value == "" {
			return ""
		}
		return "=" + value
	}
	t.Name, t.Server, t.Client = exact(rec.Name), exact(rec.Server), exact(rec.Client)
	return t
}

// terms returns the filter terms of a target.
func (t Target) terms() (all []string) {
	for _, f := range [][2]string{{"method", t.Method}, {"name", t.Name}, {"server", t.Server}, {"client", t.Client}} {
		if f[1] != "" {
			all = append(all, query.Set("", f[0], []string{f[1]}))
		}
	}
	return all
}

// Add opens a form that adds a rule for a target, or the rule that b made for it before.
func (r *Rules) Add(t Target) tea.Cmd {
	if t.Reason != "" {
		return r.app.Complain("%s", t.Reason)
	}
	when := strings.Join(t.terms(), " ")
	for _, e := range r.own() {
		if e.ID == r.made[when] || e.When == when {
			r.app.Say("This is %s; %s changes it", ruleName(&e), r.app.KeyOf("rules.open"))
			return r.show(ruleKey(e.ID))
		}
	}
	return r.newRule(t.Title, t.terms(), func(id uint64) tea.Cmd {
		r.made[when] = id
		return nil
	})
}

// newRule opens the form of a new rule with terms that can be deselected.
func (r *Rules) newRule(title string, terms []string, added func(id uint64) tea.Cmd) tea.Cmd {
	a := r.app
	d := &dialog.FormDialog{Screen: a, Title: "Add a rule"}
	if title != "" {
		d.Title += " for " + uicontext.CutText(uicontext.SanitizeLine(title), 60)
	}
	fields, err := form.FromSchema(ruleSchema(terms))
	if err != nil {
		return a.Complain("%v", err)
	}
	spec := form.Spec{
		Actions: a.Actions, Submit: "add", Fields: fields,
		Preview: func(map[string]string) string {
			if d.Form == nil { // being created
				return (&rule.Rule{When: strings.Join(terms, " "), Then: rule.Stop}).String()
			}
			args, _, err := d.Form.Values()
			if err != nil {
				return ""
			}
			one, err := ruleOf(args)
			if err != nil {
				return ""
			}
			return one.String()
		},
	}
	if title != "" {
		spec.Intro = a.KeyOf("form.enter") + " adds a breakpoint that stops such requests. The fields above can change it."
	}
	d.Form = form.New(a.Theme, spec)
	if title != "" {
		d.Form.FocusSubmit()
	}
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		one, err := ruleOf(args)
		if err != nil {
			d.Form.ShowError(err.Error())
			return nil
		}
		var id uint64
		text := one.String()
		return r.save(d, func() (err error) {
			id, err = a.Backend.AddRule(text)
			return err
		}, func() tea.Cmd {
			a.Say("Added rule %d: %s; %s lists the rules", id, text, a.KeyOf("rules"))
			return added(id)
		})
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

// save runs a change in a command. The form shows its error or closes.
func (r *Rules) save(d *dialog.FormDialog, change func() error, done func() tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		err := change()
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				d.Form.ShowError(uicontext.SanitizeLine(err.Error()))
				return nil
			}
			r.app.Drop(d)
			return done()
		})
	}
}

// edit opens the text of a rule.
func (r *Rules) edit(e *registry.RuleEntry) tea.Cmd {
	a, id := r.app, e.ID
	if why := whyNotChange(e); why != "" {
		return a.Complain("%s", why)
	}
	d := &dialog.FormDialog{Screen: a, Title: "Change " + ruleName(e)}
	d.Form = form.New(a.Theme, form.Spec{
		Actions: a.Actions, Submit: "change",
		Intro:  "A mapping as in rules of the config. A changed rule starts without hits.",
		Fields: []form.Field{{Name: "rule", Title: "rule", Required: true}},
		Values: rawjson.Object("rule", e.Text),
	})
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		return r.save(d, func() error { return a.Backend.ChangeRule(id, rawjson.GetString(args, "rule")) },
			func() tea.Cmd { return a.Say("Changed rule %d", id) })
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

var memberSchemas = map[string]string{
	"timeout": `{"type":"string","pattern":"^[0-9].*[a-z]$","description":"such as 30s; stop: 50s if empty"}`,
	"default": `{"enum":["deny","send"],"description":"when time is up, or without a UI"}`,
	"text":    `{"type":"string","description":"for the model, the error's message, or the result's text"}`,
	"ask":     `{"type":"boolean","title":"ask client","description":"also ask the client's user"}`,
	"result":  `{"description":"JSON object that the client gets; or fill in the text"}`,
	"delay":   `{"type":"string","pattern":"^[0-9].*[a-z]$","description":"such as 2s"}`,
	"code":    `{"type":"integer","description":"of the JSON-RPC error"}`,
}

// ruleSchema returns the schema of the form of a rule.
func ruleSchema(terms []string) json.RawMessage {
	var actions []string
	for _, action := range rule.Actions {
		members := fmt.Sprintf(`"then":{"enum":[%q]}`, action)
		for _, m := range action.Keys() {
			members += fmt.Sprintf(`,%q:%s`, m, memberSchemas[m])
		}
		must := `"then"`
		if action == rule.Delay {
			must += `,"delay"`
		}
		actions = append(actions, fmt.Sprintf(`{"title":%q,"type":"object","properties":{%s},"required":[%s]}`, action, members, must))
	}
	match, also := "", `"title":"when","description":"a filter, such as name:delete_* or destructive:yes; everything if empty"`
	if len(terms) > 0 {
		also = `"description":"further terms, such as arg.path:/etc or destructive:yes"`
		all := rawjson.Strings(terms)
		match = fmt.Sprintf(`"match":{"type":"array","uniqueItems":true,"items":{"enum":%s},"default":%s},`, all, all)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{%s
"also":{"type":"string",%s},
"on":{"enum":["request","answer"]},
"then":{"oneOf":[%s],"default":{"then":"stop"}},
"p":{"type":"number","minimum":0,"maximum":1,"description":"probability; 1 if empty"},
"count":{"type":"integer","minimum":1,"description":"hits until the rule ends; no limit if empty"}},"required":["then"]}`, match, also, strings.Join(actions, ","))
}

// ruleOf returns the values of the form as a rule.
func ruleOf(values json.RawMessage) (*rule.Rule, error) {
	var v struct {
		Match []string
		Also  string
		On    rule.On
		P     *float64
		Count *int
		Then  struct {
			Then                          rule.Action
			Text, Default, Delay, Timeout string
			Result                        json.RawMessage
			Code                          int
			Ask                           bool
		}
	}
	if err := json.Unmarshal(values, &v); err != nil {
		return nil, err
	}
	terms := v.Match
	if also := strings.TrimSpace(v.Also); also != "" {
		terms = append(terms, also)
	}
	r := &rule.Rule{
		When: strings.Join(terms, " "), On: v.On, Then: v.Then.Then, P: v.P, Count: v.Count,
		Text: v.Then.Text, Default: v.Then.Default, Result: v.Then.Result, Code: v.Then.Code,
	}
	if v.Then.Ask {
		r.Ask = rule.AskClient
	}
	var err error
	if r.Delay, err = duration(v.Then.Delay); err == nil {
		r.Timeout, err = duration(v.Then.Timeout)
	}
	return r, err
}

// duration parses a time of the form. "" is 0.
func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time; write it as in 30s or 1m30s", text)
	}
	return d, nil
}
