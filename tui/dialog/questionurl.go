package dialog

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// URLQuestion is a request of a server that its user opens an address. Goblin does not open
// it: it shows where the address leads, and copies it.
type URLQuestion struct {
	uicontext.BaseDialog
	app      *uicontext.Context
	finish   finisher
	message  string
	address  string
	host     string
	about    string
	problem  error    // why it is not offered at all
	warnings []string // what should make one think
	copied   bool     // so that it can be opened, and accepted
}

func newURLQuestion(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // opener has seen that it works
	d := &URLQuestion{app: a, finish: finish, message: p.Message, address: p.URL, about: askerText(params)}
	d.check()
	return d
}

// check finds out where the address leads, its problem and its warnings.
func (d *URLQuestion) check() {
	u, err := url.Parse(d.address)
	switch {
	case err != nil:
		d.problem = errors.New("this is no address that could be read")
		return
	case u.Scheme != "https" && u.Scheme != "http":
		d.problem = errors.New("this is no web address (https)")
		return
	case u.Hostname() == "":
		d.problem = errors.New("this address has no host")
		return
	}
	d.host = u.Host
	if u.Scheme == "http" {
		d.warnings = append(d.warnings, "It is not encrypted (http).")
	}
	if u.User != nil {
		d.warnings = append(d.warnings, "It has a user name before its host, which can look like another host.")
	}
	for _, label := range strings.Split(strings.ToLower(u.Hostname()), ".") {
		if strings.HasPrefix(label, "xn--") || strings.IndexFunc(label, func(r rune) bool { return r > 0x7e }) >= 0 {
			d.warnings = append(d.warnings, "Its host has letters that can look like others.")
			break
		}
	}
}

func (d *URLQuestion) Heading() string { return "A server wants you to open an address" }

func (d *URLQuestion) Size(w, h int) (int, int) {
	w = min(w, 92)
	return w, min(h, len(d.text(w-2, h-2))+2)
}

func (d *URLQuestion) Lines(w, h int) []string { return d.app.Theme.Lines(d.text(w, h), w, h) }

func (d *URLQuestion) Hints() []keys.Hint {
	t := d.Keys().WithKeys(d.app.Actions)
	switch {
	case d.problem != nil:
		t = t[2:]
	case !d.copied:
		t[1].Hint = "accept, once it is copied"
	}
	return t.Hints()
}

// text fills the dialog, at most h lines.
func (d *URLQuestion) text(w, h int) []string {
	lk := d.app.Theme
	room := max(w-4, 1)
	var out []string
	add := func(style theme.Style, lines ...string) {
		for _, l := range lines {
			out = append(out, "  "+style.On(l))
		}
	}
	add("", uicontext.WrapText(d.message, room, max(h/4, 1))...)
	add(lk.Dim, uicontext.WrapText(d.about, room, 2)...)
	add("", "")
	if d.problem != nil {
		add(lk.Bad, "! "+d.problem.Error()+":")
	} else {
		add("", "It leads to")
		host := uicontext.SanitizeLine(d.host)
		for _, part := range strings.Split(ansi.Hardwrap(host, max(room-2, 1), true), "\n") {
			add(lk.Accent, "  "+part)
		}
		add("", "", "The whole address:")
	}
	parts := strings.Split(ansi.Hardwrap(uicontext.SanitizeLine(uicontext.CutText(d.address, 4096)), room, true), "\n")
	if most := max(h/3, 2); len(parts) > most {
		parts = append(parts[:most-1], lk.Cut(parts[most-1], room-1)+lk.Ellipsis)
	}
	add("", parts...)
	add("", "")
	for _, o := range d.warnings {
		add(lk.Warn, "! "+lk.Cut(o, room-2))
	}
	if len(d.warnings) > 0 {
		add("", "")
	}
	var last []string
	key := func(does string) string { return lk.Key.On(d.app.KeyOf("address." + does)) }
	if d.problem == nil {
		accept := key("accept") + " accept   "
		if !d.copied {
			accept = lk.Dim.On(d.app.KeyOf("address.accept")+" accepts then") + "   "
		}
		last = append(last, "Goblin opens nothing: check the host, copy it and open it yourself.",
			key("copy")+" copy   "+accept+key("decline")+" decline   "+key("cancel")+" cancel")
	} else {
		last = append(last, key("decline")+" decline   "+key("cancel")+" cancel")
	}
	if len(out) > h-len(last) {
		out = out[:max(h-len(last), 0)]
	}
	add("", last...)
	return out
}

func (d *URLQuestion) Keys() keys.Table {
	return keys.Table{
		{ID: "address.copy", Hint: "copy the address", Long: "Copy the address: Goblin opens none", Run: d.copy},
		{ID: "address.accept", Hint: "accept", Long: "Accept, once the address was copied", Run: d.accept},
		{ID: "address.decline", Hint: "decline", Long: "Decline", Run: func() tea.Cmd {
			return d.finish(elicitationAnswer{Action: "decline"}, nil, "Declined")
		}},
		{ID: "address.cancel", Hint: "cancel", Long: "Cancel: the question was not answered", Run: func() tea.Cmd {
			return d.finish(elicitationAnswer{Action: "cancel"}, nil, "Cancelled: the question was not answered")
		}},
	}
}

func (d *URLQuestion) copy() tea.Cmd {
	if d.problem != nil {
		return d.app.Complain("%v", d.problem)
	}
	d.copied = true
	return d.app.Copy(d.address, "the address")
}

func (d *URLQuestion) accept() tea.Cmd {
	switch {
	case d.problem != nil:
		return d.app.Complain("%v", d.problem)
	case !d.copied:
		return d.app.Complain("copy the address with %s first; %s accepts after that", d.app.KeyOf("address.copy"), d.app.KeyOf("address.accept"))
	}
	return d.finish(elicitationAnswer{Action: "accept"}, nil, "Accepted: the server waits for what happens there")
}
