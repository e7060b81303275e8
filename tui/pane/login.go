package pane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

type login struct {
	uicontext.BaseDialog
	app             *uicontext.Context
	server          string
	previousUser    *registry.Account // logged in before
	ctx             context.Context
	cancel          context.CancelFunc
	pages           chan string         // the last page to open; capacity 1
	pendingQuestion chan secretQuestion // requests of askToSendSecret
	pasted          chan string         // capacity 1
	page            string              // "" until known
	browserError    error               // why no browser was started
	startTime       time.Time
	entry           *dialog.TextPrompt // nil before it was opened
	secret          *dialog.Confirm    // nil before it was opened
}

type secretQuestion struct {
	issuer, before string
	answer         chan bool // capacity 1
}

// LogIn opens the dialog of a login.
func (p *Servers) LogIn(s registry.ServerState) tea.Cmd {
	a := p.app.Context
	d := &login{app: a, server: s.Name, previousUser: s.Login, startTime: a.Now(), pages: make(chan string, 1), pendingQuestion: make(chan secretQuestion), pasted: make(chan string, 1)}
	d.ctx, d.cancel = context.WithCancel(a.Ctx)
	return a.Push(d)
}

// LogOut logs out. It asks first if clients are connected.
func (p *Servers) LogOut(s registry.ServerState) tea.Cmd {
	a := p.app
	return p.confirmDisturbing("Log out of "+s.Name+"?", "log out", "Its tools, prompts and resources fail until you log in again.", func() tea.Cmd {
		return a.Do(func() error { return a.Backend.Logout(a.Ctx, s.Name) }, "log out of "+s.Name,
			func() tea.Cmd { return a.Say("%s: logged out", s.Name) })
	})
}

// Begin starts the login.
func (d *login) Begin() tea.Cmd {
	d.app.Logins++
	return tea.Batch(d.run, d.await)
}

func (d *login) run() tea.Msg {
	user, err := d.app.Backend.Login(d.ctx, d.server, d.show, d.askToSendSecret, d.pasted)
	left := d.ctx.Err() != nil
	d.cancel()
	return keys.FuncMsg(func() tea.Cmd {
		d.app.Logins--
		d.close()
		switch {
		case left: // already reported
			return nil
		case err != nil:
			return d.app.Complain("%s: %v", d.server, err)
		}
		return d.welcome(user)
	})
}

func (d *login) close() {
	d.app.Drop(d)
	if d.entry != nil {
		d.app.Drop(d.entry)
	}
	if d.secret != nil {
		d.app.Drop(d.secret)
	}
}

func (d *login) welcome(user string) tea.Cmd {
	if user == "" {
		return d.app.Say("%s: logged in", d.server)
	}
	return d.app.Say("%s: logged in as %s", d.server, uicontext.SanitizeLine(user))
}

// Refresh closes the dialog when the server was logged in to elsewhere.
func (d *login) Refresh(registry.Changes) tea.Cmd {
	s, _ := d.app.Reg.State(d.server)
	if d.previousUser != nil || s.Login == nil {
		return nil
	}
	d.cancel()
	d.close()
	return d.welcome(s.Login.User)
}

func (d *login) show(page string) {
	select {
	case <-d.pages:
	default:
	}
	d.pages <- page
}

func (d *login) askToSendSecret(ctx context.Context, issuer, before string) bool {
	q := secretQuestion{issuer, before, make(chan bool, 1)}
	select {
	case d.pendingQuestion <- q:
	case <-ctx.Done():
		return false
	}
	select {
	case yes := <-q.answer:
		return yes
	case <-ctx.Done():
		return false
	}
}

func (d *login) confirm(q secretQuestion) tea.Cmd {
	body := q.issuer
	if q.before != "" {
		body += "\n(previously " + q.before + ")"
	}
	reply := func(yes bool) func() tea.Cmd {
		return func() tea.Cmd {
			q.answer <- yes
			return nil
		}
	}
	d.secret = &dialog.Confirm{
		Screen: d.app, Title: "Send the client secret of " + uicontext.SanitizeLine(d.server) + "?",
		Text: []string{"Authorization server:"}, Body: body,
		Yes: "send", Then: reply(true), Refuse: reply(false),
	}
	return tea.Batch(d.app.Push(d.secret), d.await)
}

// A page opens on the terminal's machine.
func (d *login) await() tea.Msg {
	select {
	case q := <-d.pendingQuestion:
		return keys.FuncMsg(func() tea.Cmd { return d.confirm(q) })
	case page := <-d.pages:
		wrong := d.app.Term.Browse(d.ctx, page)
		if errors.Is(wrong, context.Canceled) {
			return nil
		}
		return keys.FuncMsg(func() tea.Cmd {
			d.page, d.browserError = page, wrong
			if d.secret != nil { // another user may have agreed
				d.app.Drop(d.secret)
			}
			return d.await
		})
	case <-d.ctx.Done():
		return nil
	}
}

func (d *login) Heading() string { return "Log in to " + uicontext.SanitizeLine(d.server) }

func (d *login) Size(w, h int) (int, int) {
	w = min(w, 92)
	return w, min(h, len(d.text(w-2, h-2))+2)
}

func (d *login) Lines(w, h int) []string { return d.app.Theme.Lines(d.text(w, h), w, h) }

// The last two lines show the progress.
func (d *login) text(w, h int) []string {
	lk := d.app.Theme
	room := max(w-4, 1)
	out := []string{""}
	add := func(lines ...string) {
		for _, l := range lines {
			out = append(out, "  "+l)
		}
	}
	state := "finding the login page"
	if d.page != "" {
		state = "waiting for the browser"
		if d.browserError == nil {
			add("Your browser opens this page. Log in there:", "")
		} else {
			add(lk.Warn.On("! "+lk.Cut("Could not open a browser: "+uicontext.SanitizeLine(d.browserError.Error()), room-2)), "Open this page yourself:", "")
		}
		parts := strings.Split(ansi.Hardwrap(uicontext.SanitizeLine(d.page), room, true), "\n")
		if most := max(h-len(out)-3, 1); len(parts) > most {
			parts = append(parts[:most-1], lk.Cut(parts[most-1]+parts[most], room))
		}
		for _, part := range parts {
			add(lk.Accent.On(part))
		}
		add("")
		hint := uicontext.WrapText("A browser elsewhere ends at a page that doesn't load: press "+d.app.KeyOf("login.paste")+" to paste its URL.", room, 2)
		if d.browserError != nil && len(out)+len(hint)+3 <= h {
			add(hint...)
			add("")
		}
	}
	seconds := int(d.app.Now().Sub(d.startTime).Seconds())
	add(d.app.Spin.View() + " " + state + fmt.Sprintf("  %d:%02d", seconds/60, seconds%60))
	key := func(does string) string { return lk.Key.On(d.app.KeyOf("login." + does)) }
	hints := ""
	if d.page != "" {
		hints = key("copy") + " copy   " + key("paste") + " paste   "
	}
	add(hints + key("cancel") + " cancel")
	if len(out) > h {
		out = append(out[:max(h-2, 0)], out[len(out)-2:]...)
	}
	return out
}

// LoginKeys returns all keys of the dialog.
func LoginKeys() keys.Table { return (&login{page: "known"}).Keys() }

func (d *login) Keys() keys.Table {
	t := keys.Table{
		{ID: "login.cancel", Hint: "cancel", Long: "Cancel the login", Run: func() tea.Cmd {
			d.cancel()
			d.close()
			return d.app.Say("%s: login cancelled", d.server)
		}},
	}
	if d.page == "" {
		return t
	}
	return append(keys.Table{
		{ID: "login.copy", Hint: "copy the URL", Long: "Copy the URL of the page", Run: func() tea.Cmd {
			return d.app.Copy(uicontext.SanitizeLine(d.page), "the URL")
		}},
		{ID: "login.paste", Hint: "paste", Long: "Paste the URL that the browser ended up at", Run: func() tea.Cmd {
			d.entry = dialog.NewTextPrompt(d.app, "URL that the browser ended up at", "", d.paste)
			return d.app.Push(d.entry)
		}},
	}, t...)
}

func (d *login) paste(text string) tea.Cmd {
	select {
	case d.pasted <- text:
	default: // another URL is being checked
	}
	return nil
}
