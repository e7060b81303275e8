package tui

import (
	"context"
	"time"

	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/content"
)

// detail is the panel that shows what the cursor is on. Its text is made in
// commands; one that comes too late is dropped.
type detail struct {
	app    *app
	view   *content.View
	now    subject // what is shown or being made
	width  int
	depth  int // of JSON that is not folded
	gen    int
	busy   bool // a text is being made
	dirty  bool // … which is not the last one
	jump   bool // what comes next is an answer that is waited for
	news   bool // … whose changed lines are to be marked
	cancel context.CancelFunc
	marked time.Time // when changed lines were marked
}

// unfolded is the depth to which JSON is shown at first.
const unfolded = 12

func newDetail(a *app) *detail {
	return &detail{app: a, view: content.NewView(a.look), depth: unfolded, cancel: func() {}}
}

// show makes the text of a subject, unless it is there already.
func (d *detail) show(s subject, width int) tea.Cmd {
	if width <= 0 {
		return nil
	}
	d.now.running = s.running
	if s.key == d.now.key && s.version == d.now.version && width == d.width {
		return nil
	}
	same := s.key == d.now.key && width == d.width
	news := same && s.content && d.now.content && s.version != d.now.version
	same = s.key == d.now.key
	d.now, d.width = s, width
	if same && d.busy { // let it come to its end, however often there is news
		d.dirty, d.news = true, d.news || news
		return nil
	}
	return d.build(same, news)
}

// build makes the text in a command.
func (d *detail) build(same, news bool) tea.Cmd {
	d.cancel()
	d.gen++
	d.busy, d.dirty, d.news = false, false, false
	gen, s, lk := d.gen, d.now, d.app.look
	if s.blocks == nil {
		d.view.Show(nil, false)
		return nil
	}
	ctx, cancel := context.WithCancel(d.app.ctx)
	d.cancel, d.busy = cancel, true
	o := content.Options{Width: d.width, Depth: d.depth, Numbers: s.numbers}
	return func() tea.Msg {
		defer cancel()
		doc, err := content.Build(ctx, lk, s.blocks(ctx), o)
		return work.Done(func() tea.Cmd {
			if gen != d.gen {
				return nil
			}
			d.busy = false
			if err != nil {
				return nil
			}
			old := d.view.Doc()
			if news && old.Len() > 0 {
				doc.Mark(old)
				d.marked = d.app.now()
			}
			d.view.Show(doc, same)
			if d.jump {
				d.jump = false
				d.view.ToStart()
			}
			if d.dirty {
				return d.build(true, d.news)
			}
			return nil
		})
	}
}

// fold changes the depth to which JSON is shown.
func (d *detail) fold(by int) tea.Cmd {
	d.depth = max(1, min(d.depth+by, 64))
	return d.build(true, false)
}

// fade takes the marks off lines that changed a while ago.
func (d *detail) fade(now time.Time) {
	if !d.marked.IsZero() && now.Sub(d.marked) > changedFor {
		d.view.Unmark()
		d.marked = time.Time{}
	}
}

func (d *detail) lines(a *app, r rect, border int, focused bool) []string {
	w, h := r.w-2*border, r.h-2*border
	var lines []string
	if run := d.now.running; run != nil {
		lines = run.lines(a, w, min(h, 4))
		h -= len(lines)
	}
	lines = append(lines, d.view.Lines(w, max(h, 0))...)
	if border == 0 {
		return lines
	}
	style := a.look.Border
	if focused {
		style = a.look.Accent
	}
	return a.look.Frame(lines, clean(d.now.title), d.where(), r.w, r.h, style)
}

// where says how far down the text is.
func (d *detail) where() string {
	first, last, total := d.view.Position()
	if total == 0 || first <= 1 && last >= total {
		return ""
	}
	return grouped(last) + "/" + grouped(total)
}
