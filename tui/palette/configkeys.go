package palette

import (
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/report"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// configMatch is a key of the config that matches. It is set if line is not 0.
type configMatch struct {
	key         *report.ConfigKey
	path        string
	line        int
	fits, score int
}

// exactScore raises the score of a key whose name begins with the text.
const exactScore = 10_000

// findKeys finds keys by their names and descriptions. A key that is set has a match for
// each line.
func findKeys(all []report.ConfigKey, p *pattern) (found []configMatch) {
	for i := range all {
		k := &all[i]
		fits, score := p.match(k.Path, k.Path[strings.LastIndexByte(k.Path, '.')+1:])
		switch {
		case fits < fitsPart: // entries of similar names come first
			fits, score = fitsPart, score+exactScore
		case fits == fitsLetters: // too many keys have a few letters
			fits = fitsNot
		}
		if fits == fitsNot && p.describes(k.Path+" "+k.Text) {
			fits = fitsWords
		}
		for _, s := range k.Set {
			if now, better := p.match(s.Path); fits < fitsNot || now < fitsLetters {
				found = append(found, configMatch{k, s.Path, s.Line, max(min(fits, now), fitsPart), max(score, better)})
			}
		}
		if fits < fitsNot && (len(k.Set) == 0 || strings.Contains(k.Path, "NAME")) {
			found = append(found, configMatch{k, k.Path, 0, fits, score})
		}
		if len(found) >= maxFound {
			return found[:maxFound]
		}
	}
	return found
}

func (d *Dialog) keyChoice(m configMatch) choice {
	c := choice{
		kind: "config", name: uicontext.SanitizeLine(m.path), about: plain(m.key.Text), from: fromConfig, complete: uicontext.SanitizeLine(m.path),
		used: used{line: m.path}, recency: d.o.History.recency(m.path),
		run: func() tea.Cmd { return d.app.Push(newKeyHelp(d.app.Context, m.key, d.o.EditConfig)) },
	}
	if m.line > 0 && d.o.EditConfig != nil {
		c.about = "line " + strconv.Itoa(m.line) + ": " + plain(m.key.Text)
		c.run = func() tea.Cmd { return d.o.EditConfig(m.line) }
	}
	return c
}

// plain removes the marks of code.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

// keyHelp explains a key that is not set.
type keyHelp struct {
	uicontext.BaseDialog
	app  *uicontext.Context
	key  *report.ConfigKey
	edit func(line int) tea.Cmd
	view *viewer.View
	w    int
}

func newKeyHelp(app *uicontext.Context, key *report.ConfigKey, edit func(int) tea.Cmd) *keyHelp {
	return &keyHelp{app: app, key: key, edit: edit, view: viewer.NewView(app.Theme)}
}

func (d *keyHelp) Heading() string { return d.key.Path }

func (d *keyHelp) Size(w, h int) (int, int) {
	return min(w, 80), min(h, 12+strings.Count(d.key.Example, "\n")+len(d.key.Text)/60)
}

func (d *keyHelp) SetTheme() { d.w = 0 }

func (d *keyHelp) Lines(w, h int) []string {
	if d.w != w {
		d.w = w
		fields := []viewer.Field{{Label: "values", Value: plain(d.key.Values)}, {Label: "default", Value: d.key.Default}}
		if d.key.Default == "" {
			fields = fields[:1]
		}
		d.view.SetTheme(d.app.Theme)
		note := "Mistakes in the config are alerts."
		if strings.Contains(d.key.Path, "NAME") {
			note = "NAME stands for a name that you choose. " + note
		}
		// A page of fixed text may be built here.
		if doc, err := viewer.Build(d.app.Ctx, d.app.Theme, []viewer.Section{
			{Kind: viewer.Text, Text: plain(d.key.Text)},
			{Kind: viewer.Fields, Fields: fields},
			{Title: "Example", Kind: viewer.Text, Text: strings.TrimSuffix(d.key.Example, "\n")},
			{Kind: viewer.Note, Text: note},
		}, viewer.Options{Width: w, Depth: -1}); err == nil {
			d.view.Show(doc, false)
		}
	}
	return d.view.Lines(w, h)
}

func (d *keyHelp) Keys() keys.Table {
	return append(keys.Scrolling("scroll", func() keys.Scroller { return d.view }),
		keys.Binding{ID: "mistakes.copy", Hint: "copy example", Long: "Copy the example", Run: func() tea.Cmd { return d.app.Copy(d.key.Example, "the example") }},
		keys.Binding{ID: "mistakes.edit", Hint: "edit config", Long: "Open the config in the editor", Run: d.open},
		keys.Binding{ID: "mistakes.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }})
}

func (d *keyHelp) open() tea.Cmd {
	if d.edit == nil {
		return d.app.Complain("there is no config file; :setup shows how to create one")
	}
	d.app.Drop(d)
	return d.edit(1)
}

func (d *keyHelp) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.view.Scroll, msg)
	return nil
}

// KeyHelpKeys returns the keys of the help about a key of the config.
func KeyHelpKeys() keys.Table { return (*keyHelp)(nil).Keys() }
