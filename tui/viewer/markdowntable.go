package viewer

import (
	"bytes"
	"slices"
	"strings"

	"goblin/tui/theme"
)

// Limits of tables; larger ones are shown as source.
const (
	tableColumns = 64
	tableRows    = 2000
	leastColumn  = 3 // cells
)

type table struct {
	source []string // lines as written
	align  []byte   // l, c or r per column
	rows   [][]string
}

// startTable starts a table if text is a delimiter row for the paragraph's last line.
func (m *markdown) startTable(text string) bool {
	align := dashes(text)
	heads := fieldsOf(string(m.para[m.lastLine:]))
	if align == nil || len(align) != len(heads) || len(align) > tableColumns || m.mark != "" && m.rows == 1 {
		return false
	}
	source := string(m.para[m.lastLine:])
	indent := m.indent
	if m.para = bytes.TrimRight(m.para[:m.lastLine], " "); len(m.para) == 0 {
		m.reset()
	} else {
		m.flush()
	}
	m.indent = indent
	m.table = &table{source: []string{source, text}, align: align, rows: [][]string{heads}}
	return true
}

func (m *markdown) row(s string) bool {
	t, text := m.table, strings.TrimSpace(s)
	if text == "" || !strings.Contains(text, "|") || len(t.rows) >= tableRows {
		return false
	}
	cells := fieldsOf(text)
	cells = append(cells, make([]string, max(0, len(t.align)-len(cells)))...)
	t.rows, t.source = append(t.rows, cells[:len(t.align)]), append(t.source, text)
	return true
}

// dashes returns the alignments in a delimiter row, or nil for other lines.
func dashes(text string) (align []byte) {
	if !strings.Contains(text, "|") || strings.Trim(text, "|:- \t") != "" {
		return nil
	}
	for _, f := range fieldsOf(text) {
		bare := strings.Trim(f, ":")
		if bare == "" || strings.Trim(bare, "-") != "" {
			return nil
		}
		switch left, right := strings.HasPrefix(f, ":"), strings.HasSuffix(f, ":"); {
		case left && right:
			align = append(align, 'c')
		case right:
			align = append(align, 'r')
		default:
			align = append(align, 'l')
		}
	}
	return align
}

// fieldsOf splits a row at its unescaped bars.
func fieldsOf(text string) (fields []string) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "|")
	from := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '|':
			fields = append(fields, strings.TrimSpace(strings.ReplaceAll(text[from:i], `\|`, "|")))
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" || len(fields) == 0 {
		fields = append(fields, strings.ReplaceAll(rest, `\|`, "|"))
	}
	return fields
}

func (m *markdown) endTable() {
	t := m.table
	if t == nil {
		return
	}
	m.table = nil
	indent := uint16(min(m.indent, m.b.lineWidth/2))
	m.indent = 0
	base := line{ink: inkPlain, indent: indent, flags: quotes(m.depth)}
	cells := make([][][]byte, len(t.rows))
	widths := make([]int, len(t.align))
	for r, row := range t.rows {
		for c, text := range row {
			ink := inkPlain
			if r == 0 {
				ink = inkBold
			}
			cells[r] = append(cells[r], m.b.inlineText(text, ink))
			widths[c] = max(widths[c], cellsOf(cells[r][c]))
		}
	}
	if !shrink(widths, m.b.lineWidth-base.prefix()-3*(len(widths)-1)) {
		for _, text := range t.source {
			from := m.b.pos()
			m.b.put(text)
			m.b.addUnwrapped(from, base)
		}
		return
	}
	for r, row := range cells {
		m.tableRow(row, widths, t.align, base)
		if r == 0 {
			m.tableRule(widths, base)
		}
	}
}

// shrink narrows the widest columns until all fit, or returns false.
func shrink(widths []int, room int) bool {
	sum := 0
	for i := range widths {
		widths[i] = max(widths[i], 1)
		sum += widths[i]
	}
	for sum > room {
		widest := slices.Max(widths)
		if widest <= leastColumn {
			return false
		}
		widths[slices.Index(widths, widest)]--
		sum--
	}
	return true
}

func (m *markdown) tableRow(row [][]byte, widths []int, align []byte, base line) {
	b := m.b
	parts, most := make([][][]byte, len(row)), 1
	for c, cell := range row {
		parts[c] = wrapCell(cell, widths[c])
		most = max(most, len(parts[c]))
	}
	for k := range most {
		from, due := b.pos(), 0 // pending spaces, written only before text
		for c, w := range widths {
			var text []byte
			if k < len(parts[c]) {
				text = parts[c][k]
			}
			before, n := 0, cellsOf(text)
			switch align[c] {
			case 'r':
				before = w - n
			case 'c':
				before = (w - n) / 2
			}
			if len(text) > 0 {
				b.put(theme.Spaces(due + before))
				b.d.arena = append(b.d.arena, text...)
				due = w - n - before
			} else {
				due += w
			}
			if c < len(widths)-1 {
				b.put(theme.Spaces(due + 1))
				b.setInk(inkDim)
				b.put(b.lk.Vertical + " ")
				b.setInk(inkPlain)
				due = 0
			}
		}
		b.addUnwrapped(from, base)
	}
}

func (m *markdown) tableRule(widths []int, base line) {
	from, bar := m.b.pos(), m.b.lk.Horizontal
	for c, w := range widths {
		if c > 0 {
			m.b.put(bar + m.b.lk.Cross + bar)
		}
		m.b.put(strings.Repeat(bar, w))
	}
	base.ink = inkDim
	m.b.addUnwrapped(from, base)
}

// inlineText formats a paragraph without adding it to the document.
func (b *builder) inlineText(text string, base ink) []byte {
	from := b.pos()
	b.setInk(base)
	b.inline(text, base)
	out := bytes.Clone(b.d.arena[from:])
	b.d.arena = b.d.arena[:from]
	return out
}

func cellsOf(s []byte) int { return cellWidth(s, 1<<30) }

// wrapCell splits text with inks into lines of at most w cells, preferably after spaces.
// Each line starts with its ink.
func wrapCell(s []byte, w int) (out [][]byte) {
	start := inkPlain
	var open []byte
	col, gap := 0, -1 // after the last space of the open line
	end := func(n int) {
		out = append(out, append([]byte{byte(start)}, bytes.TrimRight(open[:n], " ")...))
		rest := bytes.TrimLeft(open[n:], " ")
		for _, c := range open[:n] {
			if isInk(c) {
				start = ink(c)
			}
		}
		open = append([]byte(nil), rest...)
		col, gap = cellsOf(open), -1
	}
	for i := 0; i < len(s); {
		if isInk(s[i]) {
			open = append(open, s[i])
			i++
			continue
		}
		n, cw := 1, 1
		switch {
		case s[i] == '\t':
			s[i] = ' '
		case s[i] >= 0x80:
			n, cw, _ = cluster(s[i:])
		}
		if col > 0 && col+cw > w {
			switch {
			case s[i] == ' ':
				end(len(open))
				i++
				continue
			case gap > 0:
				end(gap)
			default:
				end(len(open))
			}
		}
		open = append(open, s[i:i+n]...)
		col += cw
		if s[i] == ' ' {
			gap = len(open)
		}
		i += n
	}
	if col > 0 || len(out) == 0 {
		end(len(open))
	}
	return out
}
