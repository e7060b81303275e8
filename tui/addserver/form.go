package addserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/candidate"
	"goblin/registry/secrettext"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/textfield"
	"goblin/tui/uicontext"
)

const (
	title = "Add a server"
	intro = "Tests the server, then saves it to the config. "
	// keepSecrets explains how secrets stay out of the config.
	keepSecrets = "Secrets are stored outside the config. ${VAR} reads a variable instead."

	maxProblem = 200 // bytes of a server's problem
)

func nameField() form.Field {
	return form.Field{Name: "name", Title: "name", Required: true, OneLine: true, Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`, PatternHelp: "letters, digits, and . _ - (not first); up to 64"}
}

// text returns a JSON string, or nil for "".
func text(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	raw, _ := json.Marshal(s) // always succeeds
	return raw
}

// entryForm opens the form of a command or a URL. from may be nil.
func (d *search) entryForm(target string, from *candidate.Definition) tea.Cmd {
	start := values{Target: target}
	about, heading := intro+keepSecrets, title
	if from != nil {
		heading = "Add " + uicontext.SanitizeLine(from.Name)
		heading += d.position()
		start = valuesOf(from)
		if n := len(from.Secrets); n > 0 {
			about = intro + termtext.Count(n, "secret") + " will be stored outside the config."
		}
	}
	set, _ := json.Marshal(start) // always succeeds
	return d.push(heading, form.Spec{
		Intro:  about,
		Values: set,
		Fields: []form.Field{
			nameField(),
			{Name: "command or URL", Required: true, OneLine: true, Description: "Local program, or URL of a remote server", Mask: secrettext.MaskCommand},
			{Name: "args", Title: "arguments", Kind: form.List, Description: "For a local program", Mask: secrettext.MaskArgs},
			{Name: "env", Title: "variables", Kind: form.List, Description: "For a local program", Pattern: `^[^=]+=`, PatternHelp: "NAME=VALUE", Mask: secrettext.MaskPairs("=")},
			{Name: "headers", Title: "headers", Kind: form.List, Description: "For a remote server", Pattern: `^[^:]+:`, PatternHelp: "NAME: VALUE", Mask: secrettext.MaskPairs(":")},
		},
	}, func(args json.RawMessage) (*candidate.Definition, error) { return definition(args, from) })
}

// values are the values of the form of a command or a URL.
type values struct {
	Name    string   `json:"name,omitempty"`
	Target  string   `json:"command or URL,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	Headers []string `json:"headers,omitempty"`
}

func valuesOf(d *candidate.Definition) values {
	v := values{Name: d.Name}
	if v.Target, _ = d.Keys["url"].(string); v.Target == "" {
		v.Target, _ = d.Keys["command"].(string)
	}
	v.Args, _ = d.Keys["args"].([]string)
	v.Env = pairs(d.Keys["env"], "=")
	v.Headers = pairs(d.Keys["headers"], ": ")
	return v
}

func pairs(of any, by string) (all []string) {
	values, _ := of.(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+by+values[name])
	}
	return all
}

// definition returns the entry for values of a form. Keys of from without a field stay.
// Secrets stay if the entry still refers to them.
func definition(raw json.RawMessage, from *candidate.Definition) (*candidate.Definition, error) {
	var v values
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	d := &candidate.Definition{Name: v.Name, Keys: map[string]any{}}
	command := ""
	if from != nil {
		command, _ = from.Keys["command"].(string)
		d.Comment = from.Comment
		maps.Copy(d.Keys, from.Keys)
	}
	for _, key := range []string{"command", "url", "args", "env", "headers"} {
		delete(d.Keys, key)
	}
	if err := v.fill(d.Keys, command); err != nil || from == nil {
		return d, err
	}
	written, err := termtext.EncodeJSON(d.Keys, "")
	for _, s := range from.Secrets {
		if strings.Contains(written, "${keyring:"+s.Name+"}") {
			d.Secrets = append(d.Secrets, s)
		}
	}
	return d, err
}

// fill sets the keys of an entry. command is one word although it may contain spaces.
func (v *values) fill(entryKeys map[string]any, command string) error {
	remote := strings.Contains(v.Target, "://")
	words := strings.Fields(v.Target)
	switch {
	case remote && len(v.Args)+len(v.Env) > 0:
		return fmt.Errorf("arguments and variables only apply to local programs")
	case !remote && len(v.Headers) > 0:
		return fmt.Errorf("headers only apply to remote servers")
	case len(words) == 0:
		return fmt.Errorf("enter a program or a URL")
	case remote:
		entryKeys["url"] = strings.TrimSpace(v.Target)
	case v.Target == command || len(v.Args) > 0:
		entryKeys["command"] = strings.TrimSpace(v.Target)
		if len(v.Args) > 0 {
			entryKeys["args"] = v.Args
		}
	default: // typed in one line
		entryKeys["command"] = words[0]
		if len(words) > 1 {
			entryKeys["args"] = words[1:]
		}
	}
	setPairs(entryKeys, "env", v.Env, "=")
	setPairs(entryKeys, "headers", v.Headers, ":")
	return nil
}

func setPairs(entryKeys map[string]any, key string, all []string, by string) {
	values := make(map[string]string)
	for _, pair := range all {
		name, value, _ := strings.Cut(pair, by) // the form validated the separator
		if by == ":" {
			value = strings.TrimSpace(value)
		}
		values[strings.TrimSpace(name)] = value
	}
	if len(values) > 0 {
		entryKeys[key] = values
	}
}

// registryForm opens the form with the variables of a registry's server.
func (d *search) registryForm(s *candidate.Server, c *candidate.Choice) tea.Cmd {
	own := nameField()
	own.Name, own.Default = ownName, text(s.Name)
	fields := []form.Field{own}
	for i := range c.Variables {
		fields = append(fields, variableField(&c.Variables[i]))
	}
	about := intro
	if c.Missing != "" {
		about += "It needs " + c.Missing + ", which is not installed. "
	}
	if s.Deprecated {
		about += "The registry marks it as deprecated. "
	}
	return d.push("Add "+uicontext.SanitizeLine(strings.TrimSpace(s.Origin+" "+s.Version)), form.Spec{
		Intro: about, Fields: fields,
		Preview: func(set map[string]string) string { return preview(c, set) },
	}, func(args json.RawMessage) (*candidate.Definition, error) {
		name, answers, err := readAnswers(c, args)
		if err != nil {
			return nil, err
		}
		return c.Build(name, answers)
	})
}

// ownName is the field of the server's name beside those of variables, which may be
// called "name".
const ownName = "name in the config"

func variableField(v *candidate.Variable) form.Field {
	f := form.Field{
		Name: v.Key, Required: v.Required && v.Default == "", OneLine: true,
		Description: v.Description, Default: text(v.Default), Mask: secrettext.MaskValue(v.Key),
	}
	if v.Secret {
		f.Mask = textfield.MaskAll
	}
	note := func(s string) { f.Description = strings.TrimSpace(strings.TrimRight(f.Description, ". ") + ". " + s) }
	switch {
	case v.Placeholder != "":
		note("Such as " + v.Placeholder + ".")
	case v.Format != "" && v.Format != "string":
		note("Format: " + v.Format + ".")
	}
	if v.Secret {
		note("It is stored outside the config. ${VAR} reads a variable instead.")
	}
	f.Description = strings.TrimPrefix(f.Description, ". ")
	options := v.Choices
	if len(options) == 0 && v.Format == "boolean" {
		options = []string{"true", "false"}
	}
	switch {
	case v.Repeated:
		f.Kind = form.List
		if v.Default != "" {
			f.Default, _ = json.Marshal([]string{v.Default}) // always succeeds
		}
	case len(options) > 0:
		f.Kind = form.Enum
		for _, o := range options {
			f.Options = append(f.Options, form.Option{Value: text(o), Label: o})
		}
	}
	return f
}

func readAnswers(c *candidate.Choice, raw json.RawMessage) (name string, answers map[string][]string, err error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return "", nil, err
	}
	answers = map[string][]string{}
	for _, v := range c.Variables {
		value, ok := values[v.Key]
		if !ok {
			continue
		}
		var one string
		var several []string
		if json.Unmarshal(value, &one) == nil {
			several = []string{one}
		} else if err := json.Unmarshal(value, &several); err != nil {
			return "", nil, fmt.Errorf("%s must be text", v.Key)
		}
		if len(several) > 0 && several[0] != "" {
			answers[v.Key] = several
		}
	}
	return name, answers, json.Unmarshal(values[ownName], &name)
}

// preview returns what will run, with "${...}" instead of missing values.
func preview(c *candidate.Choice, set map[string]string) string {
	answers := map[string][]string{}
	for _, v := range c.Variables {
		switch value := set[v.Key]; {
		case value != "" && v.Repeated:
			answers[v.Key] = strings.Split(value, "\n")
		case value != "":
			answers[v.Key] = []string{value}
		case v.Required && v.Default == "":
			answers[v.Key] = []string{"${...}"}
		}
	}
	d, err := c.Build(set[ownName], answers)
	if err != nil {
		return c.Kind + " " + c.Summary
	}
	if url, ok := d.Keys["url"].(string); ok {
		return url
	}
	command, _ := d.Keys["command"].(string)
	args, _ := d.Keys["args"].([]string)
	return termtext.QuoteWords(append([]string{command}, args...)...)
}

// push opens a form. build returns the entry for its values. The server is tested first.
// If the test fails, submitting the same values again adds the server anyway.
func (d *search) push(heading string, spec form.Spec, build func(args json.RawMessage) (*candidate.Definition, error)) tea.Cmd {
	a := d.app
	spec.Actions, spec.Submit = a.Actions, "add"
	f := &dialog.FormDialog{Screen: a, Title: heading, Form: form.New(a.Theme, spec)}
	var cancel context.CancelFunc // of the running test, or nil
	f.Interrupt = func() bool {
		if cancel == nil {
			return false
		}
		cancel()
		cancel, f.Testing = nil, time.Time{}
		f.Form.ShowError("test cancelled; nothing was added")
		return true
	}
	failed := "" // values that failed
	f.Submit = func(args, _ json.RawMessage) tea.Cmd {
		entry, err := build(args)
		if err != nil {
			f.Form.ShowError(uicontext.SanitizeLine(err.Error()))
			return nil
		}
		if cancel != nil {
			return nil
		}
		ctx, end := context.WithCancel(a.Ctx)
		cancel = end
		f.Testing = a.Now()
		f.Form.ShowError("")
		untested := failed == string(args)
		return func() tea.Msg {
			lacks, err := a.Backend.AddDefinition(ctx, entry, untested)
			return keys.FuncMsg(func() tea.Cmd {
				cancelled := ctx.Err() != nil
				end()
				added := err == nil && lacks == ""
				if cancelled && !added {
					return nil
				}
				cancel, f.Testing = nil, time.Time{}
				switch {
				case added:
					a.Drop(f)
					a.Say("Added %s to the config", entry.Name)
					if d.isReviewing() {
						return d.reviewNext()
					}
					d.close()
					return d.added(entry.Name)
				case err != nil:
					f.Form.ShowError(uicontext.SanitizeLine(err.Error()))
				default:
					failed = string(args)
					f.Form.ShowError("not added: " + uicontext.CutText(uicontext.SanitizeLine(lacks), maxProblem) + ". " + a.KeyOf("form.submit") + " again adds it anyway.")
				}
				return nil
			})
		}
	}
	return a.Push(f)
}
