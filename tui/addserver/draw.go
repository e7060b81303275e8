package addserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goblin/registry/candidate"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// listTop is the line of the first row.
const listTop = 2

func (d *search) Heading() string { return title }

func (d *search) Size(w, h int) (int, int) { return min(w, 120), min(h, 30) }

func (d *search) Lines(w, h int) []string {
	lk := d.app.Theme
	d.input.Width = max(1, w-5)
	out := []string{" " + lk.Accent.On("/") + " " + d.input.View(), " " + d.status(w-2)}
	below := h - listTop
	detail := 0
	if below >= 9 {
		detail = below/2 + 1
	}
	cols := d.columns(w - 2)
	out = append(out, d.window.Lines(lk, max(below-detail, 1), func(row int) string { return d.row(row, cols) })...)
	if detail > 0 {
		for len(out) < h-detail {
			out = append(out, "")
		}
		out = append(out, lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0))))
		lines := d.detail(w - 2)
		if most := detail - 1; len(lines) > most {
			lines = append(lines[:most-1], lk.Dim.On(lk.Ellipsis))
		}
		for _, line := range lines {
			out = append(out, " "+line)
		}
	}
	return lk.Lines(out, w, h)
}

// status returns the line between the text and the list.
func (d *search) status(w int) string {
	lk := d.app.Theme
	switch {
	case d.several.running != "":
		return lk.Warn.On(lk.Cut(d.several.running+lk.Ellipsis+" "+d.app.KeyOf("add.close")+" cancels", w))
	case d.frozen != "":
		return lk.Bad.On(lk.Cut("! the config cannot be changed: "+d.frozen, w))
	case d.failure != "":
		return lk.Bad.On(lk.Cut("! cannot search: "+d.failure, w))
	case d.isSlow:
		return lk.Warn.On(lk.Cut("no answer of the registry yet"+lk.Ellipsis, w))
	case d.searching:
		return lk.Dim.On(lk.Cut("searching the registry"+lk.Ellipsis, w))
	case d.found == nil && d.clients != nil && len(d.clients.Problems) > 0:
		return lk.Warn.On(lk.Cut("! cannot read "+uicontext.SanitizeLine(d.clients.Problems[0]), w))
	case d.found == nil:
		text := "Type a name to search the registry, or a command or URL."
		if theme.Width(text) > w {
			text = "Type a name, a command or a URL."
		}
		return lk.Dim.On(lk.Cut(text, w))
	}
	n, at := len(d.found.Servers), uicontext.SanitizeLine(d.found.Registry)
	text := fmt.Sprintf("%d found at %s", n, at)
	switch {
	case n == 0:
		text = "No matches at " + at + "; try other words."
	case d.found.HasMore:
		text = fmt.Sprintf("first %d at %s; type more words", n, at)
	}
	if bad := d.found.Invalid; bad > 0 {
		text = fmt.Sprintf("invalid entries: %d; %s", bad, text)
	}
	if !d.found.Cached.IsZero() {
		text = "cannot reach the registry; answer of " + d.found.Cached.Local().Format("2006-01-02 15:04") + ": " + text
	}
	return lk.Dim.On(lk.Cut(text, w))
}

// columns are widths in cells.
type columns struct{ name, kind, version, about int }

const byHand = "By hand"

func (d *search) columns(w int) columns {
	c := columns{name: theme.Width(byHand)}
	mark := 0
	if len(d.several.marked) > 0 {
		mark = 2
	}
	for _, s := range d.rows {
		if s != nil {
			c.name = max(c.name, theme.Width(shownName(s))+mark)
			c.kind = max(c.kind, theme.Width(d.kind(s)))
			c.version = max(c.version, theme.Width(uicontext.SanitizeLine(s.Version)))
		}
	}
	c.name, c.kind, c.version = min(c.name, max(w*2/5, 12)), min(c.kind, 14), min(c.version, 8)
	if w < 60 {
		c.version = 0
	}
	if w < 40 {
		c.kind = 0
	}
	c.about = w
	for _, used := range []int{c.name, c.kind, c.version} {
		if used > 0 {
			c.about -= used + 2
		}
	}
	return c
}

// shownName returns a registry's full name, or the name in a client's config.
func shownName(s *candidate.Server) string {
	if len(s.Choices) > 0 || s.Entry == nil && !s.Present {
		return uicontext.SanitizeLine(s.Origin)
	}
	return uicontext.SanitizeLine(s.Name)
}

// kind returns the ways to run a registry's server, or the client that has it.
func (d *search) kind(s *candidate.Server) string {
	if s.Entry != nil || s.Present {
		return uicontext.SanitizeLine(s.Origin)
	}
	var all []string
	for _, c := range s.Choices {
		if c.Problem == "" && !slices.Contains(all, c.Kind) {
			all = append(all, c.Kind)
		}
	}
	if len(all) == 0 {
		return "not usable"
	}
	return strings.Join(all, ", ")
}

func (d *search) row(at int, c columns) string {
	lk, s := d.app.Theme, d.rows[at]
	about := "enter a command or a URL"
	if s == nil {
		if d.isCommand() {
			about = uicontext.SanitizeLine(d.query())
		}
		return lk.Fit(byHand, c.name) + "  " + lk.Dim.On(lk.Cut(about, max(c.about, 0)+c.kind+c.version))
	}
	name := shownName(s)
	if d.several.marked[s] {
		name = lk.Tick + " " + name
	}
	parts := []string{lk.Fit(name, c.name)}
	if c.kind > 0 {
		parts = append(parts, lk.Fit(d.kind(s), c.kind))
	}
	if c.version > 0 {
		parts = append(parts, lk.Dim.On(lk.Fit(uicontext.SanitizeLine(s.Version), c.version)))
	}
	about = uicontext.SanitizeLine(s.Description)
	switch {
	case s.Present:
		about = "already in the config"
	case s.Deprecated:
		about = "deprecated: " + about
	}
	line := strings.Join(parts, "  ")
	if c.about > 3 {
		line += "  " + lk.Dim.On(lk.Cut(about, c.about))
	}
	return line
}

// detail returns the lines about the server under the cursor.
func (d *search) detail(w int) []string {
	lk, s := d.app.Theme, d.selected()
	switch {
	case d.frozen != "":
		return uicontext.WrapText(d.frozen+". Fix this first, then open the dialog again.", w, 8)
	case s == nil && d.failure != "":
		return uicontext.WrapText(d.failure+". Check the network, or \"registry\" in the config. A command or a URL can be added by hand.", w, 8)
	case s == nil:
		return uicontext.WrapText("Opens an empty form for a command with arguments, or a URL. Servers of your MCP clients are listed above; servers of the registry appear while you type.", w, 8)
	}
	head := lk.Bold.On(lk.Cut(uicontext.SanitizeLine(strings.TrimSpace(cmp.Or(s.Title, shownName(s))+" "+s.Version)), w))
	if s.Deprecated {
		head += "  " + lk.Warn.On("! deprecated")
	}
	out := append([]string{head}, uicontext.WrapText(s.Description, w, 3)...)
	if problem := d.several.problems[s]; problem != "" {
		out = append(out, lk.Bad.On(lk.Cut("! not added: "+uicontext.SanitizeLine(problem), w)))
	}
	for _, note := range s.Notes {
		out = append(out, lk.Dim.On(lk.Cut(uicontext.SanitizeLine(note), w)))
	}
	if len(s.Choices) == 0 && s.Entry == nil && !s.Present {
		out = append(out, lk.Warn.On(lk.Cut("! the registry lists no package or URL of it", w)))
	}
	chosen := d.choice(s)
	for i := range s.Choices {
		c := &s.Choices[i]
		line := uicontext.SanitizeLine(c.Kind + "  " + c.Summary)
		switch {
		case c.Problem != "":
			line += "  ! " + uicontext.SanitizeLine(c.Problem)
		case c.Missing != "":
			line += "  ! needs " + c.Missing + " (not found in PATH)"
		}
		mark, style := "  ", lk.Dim
		if c == chosen {
			mark, style = lk.Cursor+" ", ""
		}
		out = append(out, style.On(lk.Cut(mark+line, w)))
	}
	if chosen != nil {
		out = append(out, d.variables(chosen, w)...)
	}
	if s.Link != "" {
		out = append(out, lk.Dim.On(lk.Cut("source "+uicontext.SanitizeLine(s.Link), w)))
	}
	return out
}

// variables returns a line for each value that the user can set, the required ones first.
func (d *search) variables(c *candidate.Choice, w int) (out []string) {
	lk := d.app.Theme
	for _, required := range []bool{true, false} {
		for _, v := range c.Variables {
			if (v.Required && v.Default == "") != required {
				continue
			}
			line := uicontext.SanitizeLine(v.Key)
			if required {
				line += " *"
			}
			if v.Secret {
				line += " secret"
			}
			if v.Default != "" {
				line += " [" + uicontext.SanitizeLine(v.Default) + "]"
			}
			if v.Description != "" {
				line += "  " + uicontext.SanitizeLine(v.Description)
			}
			out = append(out, lk.Cut(line, w))
		}
	}
	return out
}

func (d *search) Hints() []keys.Hint {
	s := d.selected()
	t := d.Keys().WithKeys(d.app.Actions)
	t = slices.DeleteFunc(t, func(b keys.Binding) bool {
		return (b.ID == "add.mark" || b.ID == "add.mark-all") && (s == nil || s.Entry == nil || s.Present) || b.ID == "add.other" && (s == nil || len(s.Choices) < 2) || b.ID == "add.copy" && (s == nil || s.Link == "")
	})
	return append(t.Hints(), keys.Hint{Key: "a-z", Label: "search"})
}
