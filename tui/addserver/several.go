package addserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/candidate"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// several adds marked servers of clients.
type several struct {
	marked   map[*candidate.Server]bool
	problems map[*candidate.Server]string // of servers that were not added
	reviewed *candidate.Server            // its form is one of several, or nil
	total    int                          // of the review or the run
	running  string                       // what is tested, or ""
	cancel   context.CancelFunc           // of the run
	added    []string
}

// mark marks a client's server. In a text it types a space.
func (d *search) mark() tea.Cmd {
	s := d.selected()
	switch {
	case d.query() != "" && !d.moved || s == nil:
		return d.typeKey(tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}})
	case s.Entry == nil || s.Present:
		return d.app.Complain("only new servers of clients can be marked")
	case d.several.marked[s]:
		delete(d.several.marked, s)
	default:
		d.several.marked[s] = true
	}
	d.moved = true
	d.window.Move(1)
	return nil
}

// markAll marks the listed servers of clients, or unmarks them if all are marked. In a
// command it types the key.
func (d *search) markAll() tea.Cmd {
	if d.isCommand() {
		return d.typeKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'*'}})
	}
	var found []*candidate.Server
	all := true
	for _, s := range d.rows {
		if s != nil && s.Entry != nil && !s.Present {
			found, all = append(found, s), all && d.several.marked[s]
		}
	}
	if len(found) == 0 {
		return d.app.Complain("only new servers of clients can be marked")
	}
	for _, s := range found {
		if all {
			delete(d.several.marked, s)
		} else {
			d.several.marked[s] = true
		}
	}
	d.moved = true
	return nil
}

// queue returns the marked servers in the order of the list.
func (d *search) queue() (all []*candidate.Server) {
	if d.clients == nil {
		return nil
	}
	for i := range d.clients.Servers {
		if s := &d.clients.Servers[i]; d.several.marked[s] {
			all = append(all, s)
		}
	}
	return all
}

// chooseSeveral asks how to add the marked servers.
func (d *search) chooseSeveral(all []*candidate.Server) tea.Cmd {
	c := &dialog.Confirm{
		Screen: d.app, Title: "Add " + termtext.Count(len(all), "server") + "?",
		Yes: "review each", Then: func() tea.Cmd {
			d.several.total = len(all)
			return d.reviewNext()
		},
		Always: "test and add all", ThenAlways: func() tea.Cmd {
			ctx, cancel := context.WithCancel(d.app.Ctx)
			d.several = several{marked: d.several.marked, problems: map[*candidate.Server]string{}, total: len(all), cancel: cancel}
			return d.addNext(ctx, all)
		},
	}
	var lines []string
	for _, s := range all {
		line := uicontext.SanitizeLine(s.Name + "  " + s.Description)
		if n := len(s.Entry.Secrets); n > 0 {
			line += "  (" + termtext.Count(n, "secret") + " stored outside the config)"
		}
		lines = append(lines, line)
	}
	c.Body = strings.Join(lines, "\n")
	return d.app.Push(c)
}

// reviewNext opens the form of the next marked server.
func (d *search) reviewNext() tea.Cmd {
	all := d.queue()
	d.several.reviewed = all[0]
	d.window.MoveTo(max(slices.Index(d.rows, all[0]), 0))
	return d.entryForm("", all[0].Entry)
}

// position returns the place of the reviewed server, or "".
func (d *search) position() string {
	if d.several.reviewed == nil {
		return ""
	}
	return fmt.Sprintf(", %d of %d", d.several.total-len(d.queue())+1, d.several.total)
}

// isReviewing notes that a form's server was added. It reports whether another one follows.
func (d *search) isReviewing() bool {
	s := d.several.reviewed
	if s == nil {
		return false
	}
	delete(d.several.marked, s)
	s.Present = true
	return len(d.queue()) > 0
}

// addNext tests and adds servers in order.
func (d *search) addNext(ctx context.Context, left []*candidate.Server) tea.Cmd {
	if len(left) == 0 {
		return d.finishAll()
	}
	s, backend := left[0], d.app.Backend
	d.several.running = fmt.Sprintf("testing %s, %d of %d", uicontext.SanitizeLine(s.Name), d.several.total-len(left)+1, d.several.total)
	return func() tea.Msg {
		lacks, err := backend.AddDefinition(ctx, s.Entry, false)
		return keys.FuncMsg(func() tea.Cmd {
			switch {
			case err == nil && lacks == "":
				d.several.added = append(d.several.added, s.Name)
				delete(d.several.marked, s)
				s.Present = true
			case ctx.Err() != nil:
			case err != nil:
				d.several.problems[s] = err.Error()
			default:
				d.several.problems[s] = lacks
			}
			if ctx.Err() != nil {
				return d.app.Say("Cancelled; %s added to the config", termtext.Count(len(d.several.added), "server"))
			}
			return d.addNext(ctx, left[1:])
		})
	}
}

// finishAll closes the dialog if all servers were added. Otherwise they stay marked.
func (d *search) finishAll() tea.Cmd {
	d.several.cancel()
	d.several.cancel, d.several.running = nil, ""
	n := len(d.several.added)
	if len(d.several.problems) > 0 {
		return d.app.Complain("%d of %d added; the details of the others name their problems", n, d.several.total)
	}
	d.close()
	d.app.Say("Added %s to the config", strings.Join(d.several.added, ", "))
	return d.added(d.several.added[n-1])
}

// interrupt cancels a run and reports whether there was one.
func (d *search) interrupt() bool {
	if d.several.cancel == nil {
		return false
	}
	d.several.cancel()
	d.several.cancel, d.several.running = nil, ""
	return true
}
