package dialog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

const newServerTitle = "Add a server"

// maxProblem limits the text of a server's problem, in bytes.
const maxProblem = 200

// NewServerForm opens a form that adds a server to the config. The daemon tests the
// server first. If the test fails, submitting the same values again adds it anyway. added
// runs afterwards.
func NewServerForm(a *uicontext.Context, added func(name string) tea.Cmd) tea.Cmd {
	ctx, giveUp := context.WithCancel(a.Ctx)
	d := &FormDialog{Screen: a, Title: newServerTitle, Form: form.New(a.Theme, form.Spec{
		Actions: a.Actions,
		Intro:   "Tests the server, then saves it to the config. Use ${VAR} or ${keyring:NAME} to keep secrets out of the file.",
		Submit:  "add",
		Fields: []form.Field{
			{Name: "name", Title: "name", Required: true, OneLine: true, Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`, PatternHelp: "letters, digits, and . _ - (not first); up to 64"},
			{Name: "target", Title: "command or URL", Required: true, OneLine: true, Description: "Local program, or URL of a remote server"},
			{Name: "args", Title: "arguments", Kind: form.List, Description: "For a local program"},
			{Name: "env", Title: "variables", Kind: form.List, Description: "For a local program", Pattern: `^[^=]+=`, PatternHelp: "NAME=VALUE"},
			{Name: "headers", Title: "headers", Kind: form.List, Description: "For a remote server", Pattern: `^[^:]+:`, PatternHelp: "NAME: VALUE"},
		},
	})}
	d.Refuse = func(bool) tea.Cmd {
		giveUp()
		return nil
	}
	trying, failed := false, "" // a test is running; values that failed
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		name, entryKeys, err := serverEntry(args)
		if err != nil {
			d.Form.ShowError(err.Error())
			return nil
		}
		if trying {
			return nil
		}
		anyhow := failed == string(args)
		d.Title, trying = newServerTitle+": testing, "+a.KeyOf("form.cancel")+" cancels", true
		return func() tea.Msg {
			lacks := ""
			if !anyhow {
				lacks, err = a.Backend.TryServer(ctx, name, entryKeys)
			}
			if lacks == "" && err == nil && ctx.Err() == nil {
				err = a.Backend.AddServer(name, entryKeys)
			}
			return keys.FuncMsg(func() tea.Cmd {
				d.Title, trying = newServerTitle, false
				switch {
				case ctx.Err() != nil:
				case err != nil:
					d.Form.ShowError(uicontext.SanitizeLine(err.Error()))
				case lacks != "":
					failed = string(args)
					d.Form.ShowError("not added: " + uicontext.CutText(uicontext.SanitizeLine(lacks), maxProblem) + ". " + a.KeyOf("form.submit") + " again adds it anyway.")
				default:
					giveUp()
					a.Drop(d)
					a.Say("Added %s to the config", name)
					return added(name)
				}
				return nil
			})
		}
	}
	return a.Push(d)
}

func serverEntry(values json.RawMessage) (name string, entryKeys map[string]any, err error) {
	var v struct {
		Name, Target       string
		Args, Env, Headers []string
	}
	if err := json.Unmarshal(values, &v); err != nil {
		return "", nil, err
	}
	entryKeys = make(map[string]any)
	remote := strings.Contains(v.Target, "://")
	switch {
	case remote && len(v.Args)+len(v.Env) > 0:
		return "", nil, fmt.Errorf("arguments and variables only apply to local programs")
	case !remote && len(v.Headers) > 0:
		return "", nil, fmt.Errorf("headers only apply to remote servers")
	case remote:
		entryKeys["url"] = strings.TrimSpace(v.Target)
	case len(v.Args) == 0: // typed in one line
		words := strings.Fields(v.Target)
		if len(words) == 0 {
			return "", nil, fmt.Errorf("enter a program or a URL")
		}
		entryKeys["command"] = words[0]
		if len(words) > 1 {
			entryKeys["args"] = words[1:]
		}
	default:
		entryKeys["command"], entryKeys["args"] = strings.TrimSpace(v.Target), v.Args
	}
	for key, list := range map[string]struct {
		pairs []string
		by    string
	}{"env": {v.Env, "="}, "headers": {v.Headers, ":"}} {
		values := make(map[string]string)
		for _, pair := range list.pairs {
			name, value, _ := strings.Cut(pair, list.by) // the form validated the separator
			if list.by == ":" {
				value = strings.TrimSpace(value)
			}
			values[strings.TrimSpace(name)] = value
		}
		if len(values) > 0 {
			entryKeys[key] = values
		}
	}
	return v.Name, entryKeys, nil
}
