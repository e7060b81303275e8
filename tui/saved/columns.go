package saved

import (
	"cmp"
	"strings"

	"goblin/registry/savedcall"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

func (p *Pane) columns() []list.Column[row] {
	return []list.Column[row]{
		{
			Name: "name", MinWidth: 12, PreferredWidth: 26, Text: func(r row) string { return r.key() },
			Show: func(r row, _ int) (string, theme.Style) { return p.nameCell(r) },
		},
		{Name: "tool", Priority: 2, MinWidth: 8, PreferredWidth: 18, Text: func(r row) string { return r.tool }},
		{
			Name: "result", NeededWidth: 9, AlignRight: true, Less: func(x, y row) int {
				return cmp.Or(cmp.Compare(x.state, y.state), cmp.Compare(x.took, y.took))
			},
			Show: func(r row, _ int) (string, theme.Style) { return p.resultCell(r) },
		},
	}
}

// nameCell indents the names of files below their folders. In another order, or with a
// filter, the folders would be far away.
func (p *Pane) nameCell(r row) (string, theme.Style) {
	lk, tree := p.app.Theme, p.table.FilterText == "" && p.table.Order == 0
	name, indent := r.name, ""
	if tree {
		indent = strings.Repeat("  ", strings.Count(strings.TrimSuffix(r.key(), "/"), "/"))
	} else {
		name = folderOf(r.key()) + r.name
	}
	if r.file == nil {
		mark := lk.Unfolded + " "
		if p.folded[r.folder] {
			mark = lk.Folded + " "
		}
		if !tree {
			name = strings.TrimSuffix(r.folder, "/")
		}
		return indent + mark + uicontext.SanitizeLine(name) + "/", lk.Bold
	}
	mark, style := " ", theme.Style("")
	switch state := p.stateOf(r.file); state {
	case stateNever:
		if r.gone != "" {
			mark, style = lk.Failed, lk.Warn
		}
	case stateRunning:
		mark = p.app.Spin.View()
	case stateInvalid:
		mark, style = lk.Failed, lk.Bad
	case string(savedcall.Passed):
		mark = passMark(lk)
	case string(savedcall.Failed), stateChanged:
		mark, style = failMark(lk), lk.Bad
	}
	return indent + mark + " " + uicontext.SanitizeLine(name), style
}

func (p *Pane) resultCell(r row) (string, theme.Style) {
	lk := p.app.Theme
	if r.file == nil {
		return "", ""
	}
	last := p.results.last(r.file.Name)
	switch state := p.stateOf(r.file); state {
	case stateRunning:
		return "running", lk.Accent
	case stateInvalid:
		return lineOf(r.file.Mistakes), lk.Bad
	case stateNever:
		return lk.Sep, lk.Dim
	case string(savedcall.Passed):
		return uicontext.FormatDuration(last.Answer.Time), lk.Good
	case string(savedcall.Skipped):
		return state, lk.Dim
	default:
		return state, lk.Bad
	}
}

// lineOf returns "line 3" for mistakes that begin with "path:3: ".
func lineOf(mistakes string) string {
	place, _, _ := strings.Cut(mistakes, ": ")
	return "line " + cmp.Or(place[strings.LastIndexByte(place, ':')+1:], "1")
}

func (p *Pane) style(r row) theme.Style {
	if r.file != nil && r.gone != "" {
		return p.app.Theme.Dim
	}
	return ""
}
