package command

import (
	"io"
	"strings"

	"goblin/registry/termtext"
)

// table is rows of cells under a header. Cells are foreign text.
type table struct {
	header []string
	rows   [][]string
	// right holds the columns that are aligned to the right.
	right map[int]bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// render aligns the columns. The last one is cut at the given width of the
// terminal (0: never), so that rows stay rows; a column that is empty
// throughout is left out, and a table without rows is nothing.
func (t *table) render(w io.Writer, columns int) error {
	if len(t.rows) == 0 {
		return nil
	}
	widths := make([]int, len(t.header))
	used := make([]bool, len(t.header))
	for _, row := range t.rows {
		for i := range row {
			if row[i] = termtext.Line(row[i]); i < len(row)-1 { // the last one is cut
				row[i] = termtext.Name(row[i])
			}
			widths[i] = max(widths[i], termtext.Width(row[i]))
			used[i] = used[i] || row[i] != ""
		}
	}
	last := 0
	for i, h := range t.header {
		widths[i] = max(widths[i], termtext.Width(h))
		if used[i] {
			last = i
		}
	}
	var out strings.Builder
	for n := -1; n < len(t.rows); n++ {
		row := t.header
		if n >= 0 {
			row = t.rows[n]
		}
		at := 0
		var line strings.Builder
		for i, cell := range row {
			if !used[i] {
				continue
			}
			switch {
			case i == last && columns > 0 && !t.right[i]:
				cell = termtext.Cut(cell, max(columns-at, 12))
			case i == last && !t.right[i]:
			case t.right[i]:
				cell = strings.Repeat(" ", max(0, widths[i]-termtext.Width(cell))) + cell
			default:
				cell = termtext.Pad(cell, widths[i])
			}
			line.WriteString(cell)
			if i != last {
				line.WriteString("  ")
			}
			at += widths[i] + 2
		}
		out.WriteString(strings.TrimRight(line.String(), " "))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}
