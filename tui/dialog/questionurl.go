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

// URLQuestion is a dialog for a server's request to open a URL. For safety Goblin only
// shows and copies it.
type URLQuestion struct {
	uicontext.BaseDialog
	app      *uicontext.Context
	finish   finisher
	message  string
	address  string
	host     string
	about    string
	asker    string
	problem  error // reason not to offer the URL
	warnings []string
	copied   bool // required before accepting
}

func newURLQuestion(a *uicontext.Context, params json.RawMessage, finish finisher) uicontext.Dialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // opener already decoded it
	d := &URLQuestion{app: a, finish: finish, message: p.Message, address: p.URL, about: askerText(params), asker: askerName(params)}
	d.check()
	return d
}

func (d *URLQuestion) check() {
	u, err := url.Parse(d.address)
	switch {
	case err != nil:
		d.problem = errors.New("invalid URL")
		return
	case u.Scheme != "https" && u.Scheme != "http":
		d.problem = errors.New("not a web URL (https)")
		return
	case u.Hostname() == "":
		d.problem = errors.New("the URL has no host")
		return
	}
	d.host = u.Host
	if u.Scheme == "http" {
		d.warnings = append(d.warnings, "Not encrypted (http).")
	}
	if u.User != nil {
		d.warnings = append(d.warnings, "The user name before the host can look like another host.")
	}
	for _, label := range strings.Split(strings.ToLower(u.Hostname()), ".") {
		if strings.HasPrefix(label, "xn--") || strings.IndexFunc(label, func(r rune) bool { return r > 0x7e }) >= 0 {
			d.warnings = append(d.warnings, "The host has letters that can look like others.")
			break
		}
	}
}

func (d *URLQuestion) Heading() string { return d.asker + " asks you to open a URL" }

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
		t[1].Hint = "accept (copy first)"
	}
	return t.Hints()
}

// text returns the content, at most h lines.
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
		add("", "Host:")
		host := uicontext.SanitizeLine(d.host)
		for _, part := range strings.Split(ansi.Hardwrap(host, max(room-2, 1), true), "\n") {
			add(lk.Accent, "  "+part)
		}
		add("", "", "Full URL:")
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
			accept = lk.Dim.On(d.app.KeyOf("address.accept")+" accept (copy first)") + "   "
		}
		last = append(last, "Check the host, then copy the URL and open it in a browser.",
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
		{ID: "address.copy", Hint: "copy", Long: "Copy the URL (Goblin doesn't open it)", Run: d.copy},
		{ID: "address.accept", Hint: "accept", Long: "Accept (copy the URL first)", Run: d.accept},
		{ID: "address.decline", Hint: "decline", Long: "Decline", Run: func() tea.Cmd {
			return d.finish(elicitationAnswer{Action: "decline"}, nil, "Declined")
		}},
		{ID: "address.cancel", Hint: "cancel", Long: "Cancel without an answer", Run: func() tea.Cmd {
			return d.finish(elicitationAnswer{Action: "cancel"}, nil, "Cancelled without an answer")
		}},
	}
}

func (d *URLQuestion) copy() tea.Cmd {
	if d.problem != nil {
		return d.app.Complain("%v", d.problem)
	}
	d.copied = true
	return d.app.Copy(d.address, "the URL")
}

func (d *URLQuestion) accept() tea.Cmd {
	switch {
	case d.problem != nil:
		return d.app.Complain("%v", d.problem)
	case !d.copied:
		return d.app.Complain("copy the URL with %s first, then accept with %s", d.app.KeyOf("address.copy"), d.app.KeyOf("address.accept"))
	}
	return d.finish(elicitationAnswer{Action: "accept"}, nil, "Accepted; the server waits for the result")
}
