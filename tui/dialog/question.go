// Package dialog implements the dialogs in front of the panes.
//
// A dialog is a [uicontext.Dialog] in front of the panes. [Questions] queues requests of
// servers to the user (elicitation, sampling); any goroutine may fill it. [QuestionPresenter] shows the
// first of them as a dialog while the user does nothing else. The package imports no pane.
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

// KeyGrace is the pause in typing after which a question that opened by itself takes keys.
// Earlier keys were meant for what it covers.
const KeyGrace = 400 * time.Millisecond

// questionError is the error that answers a question of a server.
type questionError struct {
	code    int
	message string
}

func (r *questionError) Error() string { return r.message }

// ErrorCode returns the JSON-RPC error code.
func (r *questionError) ErrorCode() int { return r.code }

// errRejected is the specification's example of a user who says no (MCP
// 2025-11-25, Sampling, Error Handling).
var errRejected = &questionError{-1, "User rejected sampling request"}

// JSON-RPC codes.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
)

// dialogOpener creates the dialog of a question.
type dialogOpener func(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog

// opener says how a question is shown, or why nobody can answer it here.
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

// elicitation is the params of elicitation/create.
type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	URL             string          `json:"url"`
}

// waiting are the questions, the oldest first.
func (q *Questions) waiting() []*Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.List)
}

// QuestionPresenter shows the queued questions of servers in one UI.
type QuestionPresenter struct {
	*uicontext.Context
	Questions *Questions
	announced []*Question // questions that the user was notified of
	IsIdle    func() bool // nothing is typed, and a dialog is seen
}

// Sync follows a change of the queue or of the dialogs. It refuses questions that cannot
// be answered, closes dialogs of withdrawn ones, and opens the next if the user is idle.
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
			a.Complain("The question was withdrawn, or answered on another screen")
		default:
			cmds = append(cmds, k.layOut())
		}
	}
	fresh := slices.ContainsFunc(waiting, func(q *Question) bool { return !slices.Contains(a.announced, q) })
	a.announced = waiting
	if fresh && !a.canOpen() {
		a.Say("A server asks something: %s answers", a.KeyOf("answer"))
	} else if fresh {
		cmds = append(cmds, a.openQuestion(waiting[0], true))
	}
	return tea.Batch(cmds...)
}

// canOpen reports whether a question may open by itself: nothing is typed and no
// dialog stands in front.
func (a *QuestionPresenter) canOpen() bool {
	return len(a.Dialogs) == 0 && a.IsIdle()
}

// Answer opens the question that waits longest.
func (a *QuestionPresenter) Answer() tea.Cmd {
	q := a.Questions.first()
	if q == nil {
		return a.Complain("no server asks anything")
	}
	return a.openQuestion(q, false)
}

// openQuestion shows a question; one that opens by itself takes no keys until
// there was a moment without any.
func (a *QuestionPresenter) openQuestion(q *Question, byItself bool) tea.Cmd {
	open, err := q.opener()
	if err != nil {
		return a.Sync()
	}
	d := &QuestionDialog{app: a, q: q, lastIgnored: a.Now(), ready: !byItself}
	d.Inner = open(a.Context, q.Params, d.finish)
	if f, ok := d.Inner.(*FormDialog); ok {
		d.buttonsOnly = byItself && f.Form.ButtonFocused()
	}
	cmd := a.Push(d)
	return tea.Batch(cmd, d.layOut())
}

// finish answers the question in front and flashes notice.
func (d *QuestionDialog) finish(result any, err error, notice string) tea.Cmd {
	a := d.app
	var raw json.RawMessage
	if err == nil {
		if raw, err = json.Marshal(result); err != nil {
			return a.Complain("%v", err)
		}
	}
	if d.q.isWithdrawn() {
		notice = "The server had withdrawn its question"
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

// finisher answers with a result, or with an error.
type finisher func(result any, err error, notice string) tea.Cmd

// QuestionDialog is a question in front of the panes. It shows its inner dialog as long as
// the server waits.
type QuestionDialog struct {
	app         *QuestionPresenter
	q           *Question
	Inner       uicontext.Dialog
	lastIgnored time.Time // of the last key that was not taken
	ready       bool      // keys are taken
	buttonsOnly bool      // nothing but buttons opened by itself: the first press is no answer
}

func (d *QuestionDialog) Heading() string {
	text := d.Inner.Heading() + ", waits " + termtext.Age(d.app.Now().Sub(d.q.Since))
	if n := d.app.Questions.Len(); n > 1 {
		text += fmt.Sprintf(", 1 of %d", n)
	}
	return text
}

func (d *QuestionDialog) Size(w, h int) (int, int) { return d.Inner.Size(w, h) }
func (d *QuestionDialog) Lines(w, h int) []string  { return d.Inner.Lines(w, h) }
func (d *QuestionDialog) Typing() bool             { return d.Inner.Typing() }

// Keys are those of the inner dialog, which update gives it.
func (d *QuestionDialog) Keys() keys.Table { return nil }

func (d *QuestionDialog) Hints() []keys.Hint {
	if !d.takesKeys() {
		return []keys.Hint{{Key: "?", Label: "a server asks; keys are taken after a moment without any"}}
	}
	return d.app.DialogHints(d.Inner)
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
		// It may have been meant for a list.
		d.buttonsOnly = false
		return d.app.Say("The question opened by itself: press the key again if you mean it")
	}
	return d.app.SendTo(d.Inner, msg)
}

// pressesButton reports whether a key presses a button.
func (d *QuestionDialog) pressesButton(key tea.KeyMsg) bool {
	id := d.app.Actions.In(keymap.InForm)[keys.KeyName(key)]
	return id == "form.enter" || id == "form.toggle"
}

func (d *QuestionDialog) SetTheme() { uicontext.SetTheme(d.Inner) }

func (d *QuestionDialog) Background(msg tea.Msg) tea.Cmd { return d.Inner.Background(msg) }

// layOut lays out long text in a command.
func (d *QuestionDialog) layOut() tea.Cmd {
	if s, ok := d.Inner.(*SamplingQuestion); ok {
		w, _ := s.Size(d.app.W-2, d.app.H-2)
		return s.build(w - 2) // without the border
	}
	return nil
}

// askerText returns which server asks, and why it asks the user of this UI.
func askerText(params json.RawMessage) string {
	var by registry.Asker
	if err := json.Unmarshal(rawjson.Path(params, "_meta", registry.AskerKey), &by); err != nil {
		return "It is not known which server asks."
	}
	server := "Server " + quotedName(by.Server)
	switch by.Why {
	case registry.AskOwnCall:
		if by.Call == "" {
			return server + " asks in one of your calls."
		}
		return server + " asks in your call of " + quotedName(by.Call) + "."
	case registry.AskUnable:
		call := "a call"
		if by.Call != "" {
			call += " of " + quotedName(by.Call)
		}
		return server + " asks in " + call + " by client " + quotedName(by.Client) + ", which cannot be asked."
	case registry.AskAmbiguous:
		return server + " asks while calls of several clients run. No client can be asked, as it is not known whose call it is about."
	}
	return server + " asks outside of any call, so no client can be asked."
}

// quotedName returns a name for use in a sentence.
func quotedName(name string) string {
	if name == "" {
		return "without a name"
	}
	return strconv.Quote(uicontext.CutText(name, 100))
}

// elicitationAnswer is an answer to elicitation/create.
type elicitationAnswer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// newElicitation is the form of what a server wants to know.
func newElicitation(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // opener has seen that it works
	s := form.Spec{
		Actions: a.Actions,
		Intro:   uicontext.CutText(p.Message, 4000) + "\n" + askerText(params), Schema: p.RequestedSchema, Submit: "answer", Decline: true,
		Danger: "goes to the server: no passwords",
	}
	if fields, err := form.FromSchema(p.RequestedSchema); err == nil {
		s.Fields = fields
	}
	return &FormDialog{
		Screen: a, Title: "A server asks", Form: form.New(a.Theme, s),
		Submit: func(args, _ json.RawMessage) tea.Cmd {
			return finish(elicitationAnswer{"accept", args}, nil, "Answered")
		},
		Refuse: func(declined bool) tea.Cmd {
			if declined {
				return finish(elicitationAnswer{Action: "decline"}, nil, "Declined to answer")
			}
			return finish(elicitationAnswer{Action: "cancel"}, nil, "Cancelled: the question was not answered")
		},
	}
}
