package command

import (
	"io"
	"strings"

	"goblin/registry/termtext"
)

// minLastColumn is in cells.
const minLastColumn = 12

// table does not use lipgloss/table, which wraps the last column or shrinks the others,
// pads lines, and keeps empty columns.
type table struct {
	header []string
	rows   [][]string
	right  map[int]bool // right-aligned columns
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (a *App) printTable(t *table) error {
	_, err := io.WriteString(a.Out, t.render(a.Columns))
	return err
}

// render omits empty columns. The last column is cut so that lines have at most columns
// cells; 0 disables that. Without rows it returns "".
func (t *table) render(columns int) string {
	if len(t.rows) == 0 {
		return ""
	}
	widths, last := t.measure()
	var out strings.Builder
	for _, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		used := 0
		for i, cell := range row {
			switch {
			case widths[i] == 0:
				continue
			case t.right[i]:
				cell = strings.Repeat(" ", max(0, widths[i]-termtext.Width(cell))) + cell
			case i != last:
				cell = termtext.Pad(cell, widths[i])
			case columns > 0:
				cell = termtext.Cut(cell, max(columns-used, minLastColumn))
			}
			line.WriteString(cell)
			if i != last {
				line.WriteString("  ")
			}
			used += widths[i] + 2
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}

// measure escapes all cells for terminals. It returns the column widths (0 if empty) and
// the index of the last column that is not empty.
func (t *table) measure() (widths []int, last int) {
	widths = make([]int, len(t.header))
	for _, row := range t.rows {
		for i := range row {
			if row[i] = termtext.Line(row[i]); i < len(row)-1 { // the last cell is cut anyway
				row[i] = termtext.Name(row[i])
			}
			widths[i] = max(widths[i], termtext.Width(row[i]))
		}
	}
	for i, h := range t.header {
		if widths[i] > 0 {
			widths[i], last = max(widths[i], termtext.Width(h)), i
		}
	}
	return widths, last
}
