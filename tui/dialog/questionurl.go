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

// URL is a server's wish that its user opens an address. Goblin opens none:
// it shows where the address leads, and copies it.
type URL struct {
	uicontext.Still
	app     *uicontext.Common
	finish  finisher
	message string
	address string
	host    string
	about   string
	wrong   error    // why it is not offered at all
	odd     []string // what should make one think
	copied  bool     // so that it can be opened, and accepted
}

func newURLAsk(a *uicontext.Common, params json.RawMessage, finish finisher) uicontext.Dialog {
	var p elicitation
	_ = json.Unmarshal(params, &p) // opener has seen that it works
	d := &URL{app: a, finish: finish, message: p.Message, address: p.URL, about: whoAsks(params)}
	d.judge()
	return d
}

// judge finds where the address leads and what is odd about it.
func (d *URL) judge() {
	u, err := url.Parse(d.address)
	switch {
	case err != nil:
		d.wrong = errors.New("this is no address that could be read")
		return
	case u.Scheme != "https" && u.Scheme != "http":
		d.wrong = errors.New("this is no web address (https)")
		return
	case u.Hostname() == "":
		d.wrong = errors.New("this address has no host")
		return
	}
	d.host = u.Host
	if u.Scheme == "http" {
		d.odd = append(d.odd, "It is not encrypted (http).")
	}
	if u.User != nil {
		d.odd = append(d.odd, "It has a user name before its host, which can look like another host.")
	}
	for _, label := range strings.Split(strings.ToLower(u.Hostname()), ".") {
		if strings.HasPrefix(label, "xn--") || strings.IndexFunc(label, func(r rune) bool { return r > 0x7e }) >= 0 {
			d.odd = append(d.odd, "Its host has letters that can look like others.")
			break
		}
	}
}

func (d *URL) Heading() string { return "A server wants you to open an address" }

func (d *URL) Size(w, h int) (int, int) {
	w = min(w, 92)
	return w, min(h, len(d.text(w-2, h-2))+2)
}

func (d *URL) Lines(w, h int) []string { return d.app.Look.Lines(d.text(w, h), w, h) }

func (d *URL) Hints() []keys.Hint {
	t := d.Keys().On(d.app.Actions)
	switch {
	case d.wrong != nil:
		t = t[2:]
	case !d.copied:
		t[1].Hint = "accept, once it is copied"
	}
	return t.Hints()
}

// text fills the dialog, at most h lines.
func (d *URL) text(w, h int) []string {
	lk := d.app.Look
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
	if d.wrong != nil {
		add(lk.Bad, "! "+d.wrong.Error()+":")
	} else {
		add("", "It leads to")
		host := uicontext.Clean(d.host)
		for _, part := range strings.Split(ansi.Hardwrap(host, max(room-2, 1), true), "\n") {
			add(lk.Accent, "  "+part)
		}
		add("", "", "The whole address:")
	}
	parts := strings.Split(ansi.Hardwrap(uicontext.Clean(uicontext.CutText(d.address, 4096)), room, true), "\n")
	if most := max(h/3, 2); len(parts) > most {
		parts = append(parts[:most-1], lk.Cut(parts[most-1], room-1)+lk.Ellipsis)
	}
	add("", parts...)
	add("", "")
	for _, o := range d.odd {
		add(lk.Warn, "! "+lk.Cut(o, room-2))
	}
	if len(d.odd) > 0 {
		add("", "")
	}
	var last []string
	key := func(does string) string { return lk.Key.On(d.app.KeyOf("address." + does)) }
	if d.wrong == nil {
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

func (d *URL) Keys() keys.Table {
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

func (d *URL) copy() tea.Cmd {
	if d.wrong != nil {
		return d.app.Complain("%v", d.wrong)
	}
	d.copied = true
	return d.app.Copy(d.address, "the address")
}

func (d *URL) accept() tea.Cmd {
	switch {
	case d.wrong != nil:
		return d.app.Complain("%v", d.wrong)
	case !d.copied:
		return d.app.Complain("copy the address with %s first; %s accepts after that", d.app.KeyOf("address.copy"), d.app.KeyOf("address.accept"))
	}
	return d.finish(elicitationAnswer{Action: "accept"}, nil, "Accepted: the server waits for what happens there")
}
