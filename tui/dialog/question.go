// Package dialog implements the dialogs in front of the panes.
//
// A dialog implements [uicontext.Dialog] and runs on the goroutine of the UI's Update and
// View. [Questions] queues requests from servers to the user (elicitation, sampling); any
// goroutine may fill it. [QuestionPresenter] shows the oldest request as a dialog while
// the user is idle. The package must not import panes.
package dialog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// KeyGrace is the pause in typing before a request that opened automatically accepts
// keys. Earlier keys were meant for the view below it.
const KeyGrace = 400 * time.Millisecond

type questionError struct {
	code    int
	message string
}

func (r *questionError) Error() string { return r.message }

// ErrorCode returns the JSON-RPC error code.
func (r *questionError) ErrorCode() int { return r.code }

// errRejected is the specification's example of a rejection by the user (MCP 2025-11-25,
// Sampling, Error Handling).
var errRejected = &questionError{-1, "User rejected sampling request"}

// JSON-RPC codes.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
)

type dialogOpener func(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog

// opener returns the dialog for a request, or the error to answer if there is none.
func (o *Question) opener() (dialogOpener, error) {
	var s struct {
		Messages []json.RawMessage `json:"messages"`
	}
	var p elicitation
	params := map[string]any{"sampling/createMessage": &s, "elicitation/create": &p}[o.Method]
	switch err := json.Unmarshal(o.Params, params); {
	case params == nil:
		return nil, &questionError{codeNoMethod, "Method not found: " + uicontext.CutText(o.Method, 80)}
	case err != nil:
		return nil, &questionError{codeBadParams, "Invalid params: " + err.Error()}
	case params == &s:
		return newSampling, nil
	case p.Mode == "", p.Mode == "form":
		return newElicitation, nil
	case p.Mode == "url":
		return newURLQuestion, nil
	}
	return nil, &questionError{codeBadParams, "Invalid params: unknown mode " + uicontext.CutText(p.Mode, 40)}
}

type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	URL             string          `json:"url"`
}

// waiting returns a copy of the queue, the oldest first.
func (q *Questions) waiting() []*Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.List)
}

// QuestionPresenter shows the queued requests from servers in one UI.
type QuestionPresenter struct {
	*uicontext.Context
	Questions *Questions
	announced []*Question // the user was notified of them
	IsIdle    func() bool // nothing is typed and a dialog would be visible
}

// Sync follows a change of the queue or of the dialogs. It refuses requests that cannot
// be answered and closes dialogs of withdrawn ones. It opens the next if the user is
// idle.
func (a *QuestionPresenter) Sync() tea.Cmd {
	var cmds []tea.Cmd
	waiting := a.Questions.waiting()
	waiting = slices.DeleteFunc(waiting, func(q *Question) bool {
		_, err := q.opener()
		if err != nil {
			q.reply(nil, err)
			a.Questions.drop(q)
			a.Complain("A server's request was refused: %v", err)
		}
		return err != nil
	})
	for _, d := range slices.Clone(a.Dialogs) {
		k, ok := d.(*QuestionDialog)
		switch {
		case !ok:
		case k.q.isWithdrawn() || !slices.Contains(waiting, k.q):
			a.Drop(k)
			a.Complain("Request withdrawn or answered in another UI")
		default:
			cmds = append(cmds, k.layOut())
		}
	}
	fresh := slices.ContainsFunc(waiting, func(q *Question) bool { return !slices.Contains(a.announced, q) })
	a.announced = waiting
	if fresh && !a.canOpen() {
		a.Say("A server asks for input; press %s to answer", a.KeyOf("answer"))
	} else if fresh {
		cmds = append(cmds, a.openQuestion(waiting[0], true))
	}
	return tea.Batch(cmds...)
}

func (a *QuestionPresenter) canOpen() bool {
	return len(a.Dialogs) == 0 && a.IsIdle()
}

// Answer opens the oldest request.
func (a *QuestionPresenter) Answer() tea.Cmd {
	q := a.Questions.first()
	if q == nil {
		return a.Complain("no requests from servers")
	}
	return a.openQuestion(q, false)
}

// openQuestion shows a request. If automatic is true, the dialog ignores keys until a
// pause in typing.
func (a *QuestionPresenter) openQuestion(q *Question, automatic bool) tea.Cmd {
	open, err := q.opener()
	if err != nil {
		return a.Sync()
	}
	d := &QuestionDialog{app: a, q: q, lastIgnored: a.Now(), ready: !automatic}
	d.Inner = open(a.Context, q.Params, d.finish)
	if f, ok := d.Inner.(*FormDialog); ok {
		d.buttonsOnly = automatic && f.Form.ButtonFocused()
	}
	cmd := a.Push(d)
	return tea.Batch(cmd, d.layOut())
}

func (d *QuestionDialog) finish(result any, err error, notice string) tea.Cmd {
	a := d.app
	var raw json.RawMessage
	if err == nil {
		if raw, err = json.Marshal(result); err != nil {
			return a.Complain("%v", err)
		}
	}
	if d.q.isWithdrawn() {
		notice = "The server has withdrawn its request"
	}
	d.q.reply(raw, err)
	a.Questions.drop(d.q)
	a.Drop(d)
	a.Say("%s", notice)
	if next := a.Questions.first(); next != nil && a.canOpen() {
		return a.openQuestion(next, true)
	}
	return nil
}

type finisher func(result any, err error, notice string) tea.Cmd

// QuestionDialog is a dialog around the inner dialog of a request. It closes when the
// server withdraws the request.
type QuestionDialog struct {
	app         *QuestionPresenter
	q           *Question
	Inner       uicontext.Dialog
	lastIgnored time.Time // when a key was last ignored
	ready       bool      // keys are accepted
	buttonsOnly bool      // opened automatically: the first press of a button doesn't count
}

func (d *QuestionDialog) Heading() string {
	text := d.Inner.Heading() + " (waiting " + termtext.Age(d.app.Now().Sub(d.q.Since))
	if n := d.app.Questions.Len(); n > 1 {
		text += fmt.Sprintf(", 1 of %d", n)
	}
	return text + ")"
}

func (d *QuestionDialog) Size(w, h int) (int, int) { return d.Inner.Size(w, h) }
func (d *QuestionDialog) Lines(w, h int) []string  { return d.Inner.Lines(w, h) }
func (d *QuestionDialog) Typing() bool             { return d.Inner.Typing() }

// Keys returns nil: Update passes keys to the inner dialog.
func (d *QuestionDialog) Keys() keys.Table { return nil }

func (d *QuestionDialog) Hints() []keys.Hint {
	if !d.takesKeys() {
		return GraceHints()
	}
	return d.app.DialogHints(d.Inner)
}

// GraceHints returns the hints of a dialog that ignores keys for [KeyGrace].
func GraceHints() []keys.Hint {
	return []keys.Hint{{Key: "?", Label: "opened automatically; pause typing to use keys"}}
}

func (d *QuestionDialog) takesKeys() bool {
	return d.ready || d.app.Now().Sub(d.lastIgnored) >= KeyGrace
}

func (d *QuestionDialog) Update(msg tea.Msg) tea.Cmd {
	if !d.takesKeys() {
		d.lastIgnored = d.app.Now()
		return nil
	}
	d.ready = true
	if key, ok := msg.(tea.KeyMsg); ok && d.buttonsOnly && d.pressesButton(key) {
		// The press may have been meant for a list.
		d.buttonsOnly = false
		return d.app.Say("This dialog opened automatically; press the key again to confirm")
	}
	return d.app.SendTo(d.Inner, msg)
}

func (d *QuestionDialog) pressesButton(key tea.KeyMsg) bool {
	id := d.app.Actions.In(keymap.InForm)[keys.KeyName(key)]
	return id == "form.enter" || id == "form.toggle"
}

func (d *QuestionDialog) SetTheme() { uicontext.SetTheme(d.Inner) }

func (d *QuestionDialog) Background(msg tea.Msg) tea.Cmd { return d.Inner.Background(msg) }

func (d *QuestionDialog) layOut() tea.Cmd {
	if s, ok := d.Inner.(*SamplingQuestion); ok {
		w, _ := d.app.DialogSize(s)
		return s.build(w - 2) // without the border
	}
	return nil
}

// askerText returns the origin of a request and the reason why this UI shows it.
func askerText(params json.RawMessage) string {
	var by registry.Asker
	if err := json.Unmarshal(rawjson.Path(params, "_meta", registry.AskerKey), &by); err != nil {
		return "Unknown server."
	}
	server := "From server " + quotedName(by.Server)
	switch by.Why {
	case registry.AskOwnCall:
		if by.Call == "" {
			return server + ", during one of your calls."
		}
		return server + ", during your call of " + quotedName(by.Call) + "."
	case registry.AskUnable:
		call := "a call"
		if by.Call != "" {
			call += " of " + quotedName(by.Call)
		}
		return server + ", during " + call + " by client " + quotedName(by.Client) + ", which can't answer it."
	case registry.AskAmbiguous:
		return server + ", during calls by several clients. Goblin doesn't know which call it belongs to, so it asks you."
	}
	return server + ", outside of any call, so no client can answer it."
}

func askerName(params json.RawMessage) string {
	var by registry.Asker
	if err := json.Unmarshal(rawjson.Path(params, "_meta", registry.AskerKey), &by); err != nil || by.Server == "" {
		return "A server"
	}
	return uicontext.CutText(uicontext.SanitizeLine(by.Server), 40)
}

func quotedName(name string) string {
	if name == "" {
		return "(unnamed)"
	}
	return strconv.Quote(uicontext.CutText(name, 100))
}

type elicitationAnswer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

func newElicitation(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // opener already decoded it
	s := form.Spec{
		Actions: a.Actions,
		Intro:   uicontext.CutText(p.Message, 4000) + "\n" + askerText(params), Schema: p.RequestedSchema, Submit: "answer", Decline: true,
		Danger: "sent to the server; never enter passwords",
	}
	if fields, err := form.FromSchema(p.RequestedSchema); err == nil {
		s.Fields = fields
	}
	return &FormDialog{
		Screen: a, Title: askerName(params) + " asks", Form: form.New(a.Theme, s),
		Submit: func(args, _ json.RawMessage) tea.Cmd {
			return finish(elicitationAnswer{"accept", args}, nil, "Answer sent")
		},
		Refuse: func(declined bool) tea.Cmd {
			if declined {
				return finish(elicitationAnswer{Action: "decline"}, nil, "Declined")
			}
			return finish(elicitationAnswer{Action: "cancel"}, nil, "Cancelled without an answer")
		},
	}
}
