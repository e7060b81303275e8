package dialog

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/termtext"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// FormDialog is a dialog with a form.
type FormDialog struct {
	Screen *uicontext.Context
	item   uicontext.Item
	Title  string
	Form   *form.Form
	Submit func(args, meta json.RawMessage) tea.Cmd // must close the dialog itself
	warned bool                                     // that Esc discards input
	Refuse func(declined bool) tea.Cmd              // may be nil
	// Interrupt stops what Submit started and reports whether there was anything. The form
	// then stays open. It may be nil.
	Interrupt func() bool
	// Save saves the values as a call; nil: the form is no call.
	Save func(args, meta json.RawMessage) tea.Cmd
	// Testing is the time when a test of the values began. Zero: none runs. Meanwhile the
	// values can't be changed.
	Testing time.Time
	h       int // largest height so far

	cancel context.CancelFunc // of the running completion
}

func (d *FormDialog) Heading() string {
	if d.Testing.IsZero() {
		return d.Title
	}
	text := d.Title + ": testing, " + d.Screen.KeyOf("form.cancel") + " cancels"
	if took := d.Screen.Now().Sub(d.Testing); took >= time.Second {
		text += ", " + termtext.Age(took)
	}
	return text
}

func (d *FormDialog) Size(w, h int) (int, int) {
	w = min(w, 100)
	d.h = max(d.h, d.Form.Height(w-2, h-2)) // never shrinks, so the box doesn't jump
	return w, min(h, d.h+2)
}

func (d *FormDialog) Lines(w, h int) []string { return d.Form.Lines(w, h) }

func (d *FormDialog) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		uicontext.ScrollWheel(d.Form.Scroll, m)
		if !uicontext.LeftPress(m) {
			return nil
		}
		return d.handleAction(d.Form.Click(m.X, m.Y))
	}
	if key, ok := msg.(tea.KeyMsg); ok && d.Save != nil && d.Screen.Actions.In(keymap.InForm)[keys.KeyName(key)] == "form.save-call" {
		args, meta, err := d.Form.Values()
		if err != nil {
			d.Form.ShowError(err.Error())
			return nil
		}
		return d.Save(args, meta)
	}
	if key, ok := msg.(tea.KeyMsg); ok && !d.Testing.IsZero() && d.Screen.Actions.In(keymap.InForm)[keys.KeyName(key)] != "form.cancel" {
		return d.Screen.Complain("the test runs; %s cancels it", d.Screen.KeyOf("form.cancel"))
	}
	action, cmd := d.Form.Update(msg)
	if action == form.None && d.warned {
		d.warned = false
		d.Form.ShowError("")
	}
	return d.handleAction(action, cmd)
}

func (d *FormDialog) handleAction(action form.Action, cmd tea.Cmd) tea.Cmd {
	switch action {
	case form.Submitted:
		args, meta, err := d.Form.Values()
		if err != nil {
			d.Form.ShowError(err.Error())
			return cmd
		}
		return tea.Batch(cmd, d.Submit(args, meta))
	case form.Cancelled, form.Declined:
		if d.Interrupt != nil && d.Interrupt() {
			return cmd
		}
		if action == form.Cancelled && d.Form.IsEdited() && !d.warned {
			d.warned = true
			d.Form.ShowError(d.Screen.KeyOf("form.cancel") + " again discards your input")
			return cmd
		}
		d.Screen.Drop(d)
		if d.Refuse != nil {
			cmd = tea.Batch(cmd, d.Refuse(action == form.Declined))
		}
	}
	return cmd
}

func (d *FormDialog) Background(msg tea.Msg) tea.Cmd {
	if c, ok := msg.(form.Completion); ok {
		if c.Form == d.Form {
			return d.complete(c)
		}
		return nil
	}
	_, cmd := d.Form.Update(msg)
	return cmd
}

// complete requests completions of a value from the server (completion/complete).
func (d *FormDialog) complete(c form.Completion) tea.Cmd {
	if d.cancel != nil {
		d.cancel()
	}
	ctx, cancel := context.WithCancel(d.Screen.Ctx)
	d.cancel = cancel
	ref := map[string]string{"type": "ref/prompt", "name": d.item.Listed}
	if d.item.Kind == registry.Template {
		ref = map[string]string{"type": "ref/resource", "uri": d.item.Listed}
	}
	params, err := json.Marshal(map[string]any{
		"ref":      ref,
		"argument": map[string]string{"name": c.Field, "value": c.Value},
		"context":  map[string]any{"arguments": c.Others},
	})
	if err != nil {
		cancel()
		return nil
	}
	backend := d.Screen.Backend
	return func() tea.Msg {
		defer cancel()
		raw, err := backend.Request(ctx, "completion/complete", params, nil)
		var r struct {
			Completion struct {
				Values  []string `json:"values"`
				Total   int      `json:"total"`
				HasMore bool     `json:"hasMore"`
			} `json:"completion"`
		}
		if err != nil || json.Unmarshal(raw, &r) != nil {
			return nil // a form works without suggestions
		}
		values := slices.DeleteFunc(r.Completion.Values, func(v string) bool { return v == "" })
		return keys.FuncMsg(func() tea.Cmd {
			d.Form.ShowCompletions(c.Gen, values, r.Completion.Total, r.Completion.HasMore)
			return nil
		})
	}
}

func (d *FormDialog) Typing() bool { return true }

// Keys returns nil: the form handles its keys and shows them itself.
func (d *FormDialog) Keys() keys.Table { return nil }

func (d *FormDialog) SetTheme() { d.Form.SetTheme(d.Screen.Theme) }
