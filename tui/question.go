package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/tui/form"
	"goblin/tui/keys"
)

// grace is how long there must be no key before a question that opened by
// itself takes any: they were meant for what it covers.
const grace = 400 * time.Millisecond

// refusal is an error that a server gets as the answer to its question.
type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return r.message }

// Code is the JSON-RPC code.
func (r *refusal) ErrorCode() int { return r.code }

// errRejected is the specification's example of a user who says no (MCP
// 2025-11-25, Sampling, Error Handling).
var errRejected = &refusal{-1, "User rejected sampling request"}

// JSON-RPC codes.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
)

// questionKind is what a question is shown as.
type questionKind uint8

const (
	asksForm questionKind = iota
	asksURL
	asksSampling
)

// kind says how a question is shown, or why nobody can answer it here.
func (o *question) kind() (questionKind, error) {
	switch o.method {
	case "sampling/createMessage":
		var p struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(o.params, &p); err != nil {
			return 0, &refusal{codeBadParams, "Invalid params: " + err.Error()}
		}
		return asksSampling, nil
	case "elicitation/create":
		var p elicitation
		if err := json.Unmarshal(o.params, &p); err != nil {
			return 0, &refusal{codeBadParams, "Invalid params: " + err.Error()}
		}
		switch p.Mode {
		case "", "form":
			return asksForm, nil
		case "url":
			return asksURL, nil
		}
		return 0, &refusal{codeBadParams, "Invalid params: unknown mode " + cutText(p.Mode, 40)}
	}
	return 0, &refusal{codeNoMethod, "Method not found: " + cutText(o.method, 80)}
}

// elicitation is the params of elicitation/create.
type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	URL             string          `json:"url"`
}

// waiting are the questions, the oldest first.
func (q *questions) waiting() []*question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// questioned follows the questions after they or their dialogs changed: those
// that nobody can answer are refused, dialogs whose asker gave up are closed,
// and a new one opens where nobody is in the middle of something.
func (a *app) questioned() tea.Cmd {
	var cmds []tea.Cmd
	waiting := a.questions.waiting()
	waiting = slices.DeleteFunc(waiting, func(q *question) bool {
		_, err := q.kind()
		if err != nil {
			q.reply(nil, err)
			a.questions.drop(q)
			a.complain("A server's request was refused: %v", err)
		}
		return err != nil
	})
	for _, d := range slices.Clone(a.dialogs) {
		k, ok := d.(*asking)
		switch {
		case !ok:
		case k.q.over() || !slices.Contains(waiting, k.q):
			a.drop(k)
			a.complain("The question was withdrawn, or answered on another screen")
		default:
			cmds = append(cmds, k.follow())
		}
	}
	fresh := slices.ContainsFunc(waiting, func(q *question) bool { return !slices.Contains(a.told, q) })
	a.told, a.head.questions = waiting, len(waiting)
	if fresh && !a.opens() {
		a.say("A server asks something: a answers")
	} else if fresh {
		cmds = append(cmds, a.openQuestion(waiting[0], true))
	}
	return tea.Batch(cmds...)
}

// opens says whether a question may open by itself: nothing is typed and no
// dialog stands in front.
func (a *app) opens() bool {
	return len(a.dialogs) == 0 && !a.filtering && !a.geometry().small
}

// answer opens the question that waits longest.
func (a *app) answer() tea.Cmd {
	q := a.questions.first()
	if q == nil {
		return a.complain("no server asks anything")
	}
	return a.openQuestion(q, false)
}

// openQuestion shows a question; one that opens by itself takes no keys until
// there was a moment without any.
func (a *app) openQuestion(q *question, byItself bool) tea.Cmd {
	kind, err := q.kind()
	if err != nil {
		return a.questioned()
	}
	d := &asking{app: a, q: q, last: a.now(), ready: !byItself}
	switch kind {
	case asksSampling:
		d.inner = newSampling(a, q.params, d.finish)
	case asksURL:
		d.inner = newURLAsk(a, q.params, d.finish)
	default:
		f := newElicitation(a, q.params, d.finish)
		d.inner, d.bare = f, byItself && f.form.OnButton()
	}
	cmd := a.push(d)
	return tea.Batch(cmd, d.follow())
}

// finish answers the question in front; said is what its user is told.
func (d *asking) finish(result any, err error, said string) tea.Cmd {
	a := d.app
	var raw json.RawMessage
	if err == nil {
		if raw, err = json.Marshal(result); err != nil {
			return a.complain("%v", err)
		}
	}
	if d.q.over() {
		said = "The server had withdrawn its question"
	}
	d.q.reply(raw, err)
	a.questions.drop(d.q)
	a.drop(d)
	a.head.questions = a.questions.len()
	a.say("%s", said)
	if next := a.questions.first(); next != nil && a.opens() {
		return a.openQuestion(next, true)
	}
	return nil
}

// finisher answers with a result, or with an error.
type finisher func(result any, err error, said string) tea.Cmd

// asking is a question in front of the panes: what its inner dialog shows, for
// as long as the asker waits.
type asking struct {
	app   *app
	q     *question
	inner dialog
	last  time.Time // of the last key that was not taken
	ready bool      // keys are taken
	bare  bool      // nothing but buttons opened by itself: the first press is no answer
}

func (d *asking) heading() string {
	text := d.inner.heading() + ", waits " + age(d.app.now().Sub(d.q.since))
	if n := d.app.questions.len(); n > 1 {
		text += fmt.Sprintf(", 1 of %d", n)
	}
	return text
}

func (d *asking) size(w, h int) (int, int) { return d.inner.size(w, h) }
func (d *asking) lines(w, h int) []string  { return d.inner.lines(w, h) }
func (d *asking) typing() bool             { return d.inner.typing() }

// keys are those of the inner dialog, which update gives it.
func (d *asking) keys() keys.Table { return nil }

func (d *asking) hints() []keys.Hint {
	if !d.takes() {
		return []keys.Hint{{Key: "?", Does: "a server asks; keys are taken after a moment without any"}}
	}
	return hintsOf(d.inner)
}

func (d *asking) takes() bool { return d.ready || d.app.now().Sub(d.last) >= grace }

func (d *asking) update(msg tea.Msg) tea.Cmd {
	if !d.takes() {
		d.last = d.app.now()
		return nil
	}
	d.ready = true
	if key, ok := msg.(tea.KeyMsg); ok && d.bare && (key.Type == tea.KeyEnter || key.String() == " ") {
		// It may have been meant for a list.
		d.bare = false
		return d.app.say("The question opened by itself: press the key again if you mean it")
	}
	return press(d.inner, msg)
}

func (d *asking) setLook() { restyle(d.inner) }

func (d *asking) background(msg tea.Msg) tea.Cmd { return d.inner.background(msg) }

// follow makes text that is long in a command.
func (d *asking) follow() tea.Cmd {
	if s, ok := d.inner.(*sampling); ok {
		w, _ := s.size(d.app.w-2, d.app.h-2)
		return s.build(w - 2) // without the border
	}
	return nil
}

// about says who asks, and why it is this screen's user who is asked.
func (a *app) about(params json.RawMessage) string {
	var by registry.Asker
	if err := json.Unmarshal(rawjson.Path(params, "_meta", registry.AskerKey), &by); err != nil {
		return "It is not known which server asks."
	}
	server := "Server " + named(by.Server)
	switch by.Why {
	case registry.AskOwnCall:
		if by.Call == "" {
			return server + " asks in one of your calls."
		}
		return server + " asks in your call of " + named(by.Call) + "."
	case registry.AskUnable:
		call := "a call"
		if by.Call != "" {
			call += " of " + named(by.Call)
		}
		return server + " asks in " + call + " by client " + named(by.Client) + ", which cannot be asked."
	case registry.AskAmbiguous:
		return server + " asks while calls of several clients run. No client can be asked, as it is not known whose call it is about."
	}
	return server + " asks outside of any call, so no client can be asked."
}

// named is a name in a sentence.
func named(name string) string {
	if name == "" {
		return "without a name"
	}
	return strconv.Quote(cutText(name, 100))
}

// elicited is an answer to elicitation/create.
type elicited struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// newElicitation is the form of what a server wants to know.
func newElicitation(a *app, params json.RawMessage, finish finisher) *formDialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // kind has seen that it works
	s := form.Spec{
		Intro: cutText(p.Message, 4000) + "\n" + a.about(params), Schema: p.RequestedSchema, Submit: "answer", Decline: true, Deliberate: true,
		Danger: "goes to the server: no passwords",
	}
	if fields, err := form.FromSchema(p.RequestedSchema); err == nil {
		s.Fields = fields
	}
	return &formDialog{
		app: a, title: "A server asks", form: form.New(a.look, s),
		submit: func(args, _ json.RawMessage) tea.Cmd {
			return finish(elicited{"accept", args}, nil, "Answered")
		},
		refuse: func(declined bool) tea.Cmd {
			if declined {
				return finish(elicited{Action: "decline"}, nil, "Declined to answer")
			}
			return finish(elicited{Action: "cancel"}, nil, "Cancelled: the question was not answered")
		},
	}
}
