package viewer

import (
	"strings"

	"goblin/registry/termtext"
)

// markdown formats common Markdown; other text stays as written.
//
// It is not a CommonMark parser, because its time must be linear for untrusted text.
// goldmark takes 14 s for 100 KB of ">" or "[](".
func (b *builder) markdown(text string) {
	if text == "" {
		b.empty()
		return
	}
	shown, _ := truncate(text, b.o.MaxBytes)
	m := &markdown{b: b}
	for s := range strings.Lines(termtext.Text(shown)) {
		m.line(strings.TrimSuffix(s, "\n"))
		if b.err != nil {
			return
		}
	}
	m.endTable()
	m.flush()
	b.noteTruncation(len(shown), len(text))
}

// markdown is the state between lines: an open paragraph, list or fence.
type markdown struct {
	b           *builder
	para        []byte // the open paragraph
	open        bool
	rows        int    // source lines of the paragraph
	mark        string // bullet before the paragraph
	indent      int    // of the paragraph
	depth       int    // quote depth
	list        int    // text column of the open list item, or 0
	fence       string // closing mark of the open code block
	fenceIndent int    // source columns that indent the code block
	blank       bool   // the last line was blank
	lastLine    int    // offset of the paragraph's last line
	table       *table // the open table
}

func (m *markdown) line(s string) {
	if m.fence != "" {
		m.code(s)
		return
	}
	depth, s := trimQuotes(s)
	if m.table != nil && depth == m.depth && m.row(s) {
		return
	}
	m.endTable()
	if depth != m.depth && (depth > 0 || !m.open) {
		m.flush()
		m.depth = depth
		m.list = 0
	}
	text := strings.TrimLeft(s, " \t")
	indent := indentWidth(s[:len(s)-len(text)])
	text = strings.TrimRight(text, "\t")
	if strings.TrimSpace(text) == "" {
		m.blankLine(depth)
		return
	}
	blank := m.blank
	m.blank = false
	if indent == 0 && blank {
		if _, _, item := cutBullet(text); !item {
			m.list = 0
		}
	}
	switch fence := fenceOf(text); {
	case fence != "":
		m.flush()
		m.fence, m.fenceIndent = fence, indent
	case indent >= 4+m.list && !m.open:
		m.put(inkCode, s, m.list+2)
	case m.open && m.startTable(text):
	case m.block(text, indent):
	case m.open:
		m.para = append(m.para, ' ')
		m.appendText(text)
	default:
		at := 0
		if indent > 0 {
			at = m.list
		}
		m.start("", at, text)
	}
}

func (m *markdown) blankLine(depth int) {
	m.flush()
	m.depth = depth
	if !m.blank {
		m.add(line{ink: inkPlain})
	}
	m.blank = true
}

// block handles headings, rules and list items. It returns false for other lines.
func (m *markdown) block(text string, indent int) bool {
	level := len(text) - len(strings.TrimLeft(text, "#"))
	switch {
	case level > 0 && level <= 6 && (len(text) == level || text[level] == ' '):
		m.flush()
		m.list = 0
		m.heading(strings.TrimRight(strings.TrimRight(text, " "), "#"), level)
	case m.open && m.rows == 1 && m.mark == "" && setextLevel(text) != 0:
		level, text = setextLevel(text), string(m.para)
		m.reset()
		m.heading(text, level)
	case isRule(text):
		m.flush()
		m.list = 0
		m.add(line{ink: inkDim, flags: ruled})
	default:
		mark, rest, item := cutBullet(text)
		if !item {
			return false
		}
		m.flush()
		if indent > m.b.lineWidth/2 {
			indent = m.b.lineWidth / 2
		}
		m.list = indent + len(text) - len(rest)
		m.start(m.bulletMark(mark, &rest), indent, rest)
	}
	return true
}

func (m *markdown) bulletMark(mark string, rest *string) string {
	if strings.ContainsAny(mark, "0123456789") {
		return mark + " "
	}
	switch {
	case strings.HasPrefix(*rest, "[ ] "):
		*rest = (*rest)[4:]
		return m.b.lk.Box + " "
	case strings.HasPrefix(*rest, "[x] "), strings.HasPrefix(*rest, "[X] "):
		*rest = (*rest)[4:]
		return m.b.lk.Check + " "
	case m.b.lk.ASCII:
		return "- "
	}
	return "• "
}

func (m *markdown) heading(text string, level int) {
	from := m.b.pos()
	m.b.put(strings.Repeat("#", level) + " ")
	m.b.inline(strings.TrimSpace(strings.TrimLeft(text, "#")), inkHeading)
	m.b.wrap(from, line{ink: inkHeading, flags: quotes(m.depth)}, level+1)
}

func (m *markdown) code(s string) {
	if m.depth > 0 {
		_, s = trimQuotes(s)
	}
	text := strings.TrimLeft(s, " ")
	if strings.HasPrefix(text, m.fence) && strings.Trim(text, m.fence[:1]+" \t") == "" {
		m.fence = ""
		return
	}
	s = s[min(m.fenceIndent, len(s)-len(text)):]
	m.put(inkCode, s, m.list+2)
}

func (m *markdown) put(i ink, s string, indent int) {
	from := m.b.pos()
	m.b.put(s)
	m.b.wrap(from, line{ink: i, indent: uint16(min(indent, m.b.lineWidth/2)), flags: quotes(m.depth)}, 0)
}

func (m *markdown) add(l line) {
	l.off = uint32(m.b.pos())
	l.flags |= quotes(m.depth)
	m.b.add(l)
}

func (m *markdown) start(mark string, indent int, text string) {
	m.flush()
	m.open = true
	m.mark = mark
	m.indent = indent
	m.rows = 0
	m.appendText(text)
}

// appendText adds a line to the open paragraph. A backslash or two spaces at its end
// force a line break.
func (m *markdown) appendText(text string) {
	m.rows++
	m.lastLine = len(m.para)
	hard := strings.HasSuffix(text, "  ") || strings.HasSuffix(text, `\`)
	text = strings.TrimRight(strings.TrimSuffix(text, `\`), " ")
	m.para = append(m.para, text...)
	if hard {
		indent := m.indent + len([]rune(m.mark))
		m.flush()
		m.open, m.indent = true, indent
	}
}

func (m *markdown) reset() {
	m.para = m.para[:0]
	m.open = false
	m.mark = ""
	m.indent = 0
	m.rows = 0
	m.lastLine = 0
}

func (m *markdown) flush() {
	if text := string(m.para); m.open && (text != "" || m.mark != "") {
		from := m.b.pos()
		m.b.put(m.mark)
		m.b.inline(strings.TrimLeft(text, " "), inkPlain)
		m.b.wrap(from, line{ink: inkPlain, indent: uint16(min(m.indent, m.b.lineWidth/2)), flags: quotes(m.depth)}, len([]rune(m.mark)))
	}
	m.reset()
}

func indentWidth(s string) int {
	n := 0
	for _, c := range []byte(s) {
		n++
		if c == '\t' {
			n += (4 - n%4) % 4
		}
	}
	return n
}

func trimQuotes(s string) (depth int, rest string) {
	for {
		text := strings.TrimLeft(s, " ")
		if len(s)-len(text) > 3 || !strings.HasPrefix(text, ">") {
			return min(depth, maxQuote), s
		}
		depth++
		s = strings.TrimPrefix(text[1:], " ")
	}
}

// fenceOf returns the run of three or more marks that begins a code block, or "".
func fenceOf(text string) string {
	for _, c := range []string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, c))
		if n >= 3 && (c == "~" || !strings.Contains(text[n:], c)) {
			return text[:n]
		}
	}
	return ""
}

// setextLevel returns the heading level that an underline assigns to the previous line,
// or 0.
func setextLevel(text string) int {
	text = strings.TrimRight(text, " ")
	switch {
	case strings.Trim(text, "=") == "":
		return 1
	case len(text) >= 2 && strings.Trim(text, "-") == "":
		return 2
	}
	return 0
}

func isRule(text string) bool {
	c := text[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	n := strings.Count(text, string(c))
	return n >= 3 && n+strings.Count(text, " ") == len(text)
}

func cutBullet(text string) (mark, rest string, ok bool) {
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(text) && (text[n] == '.' || text[n] == ')'):
	case n == 0 && (text[0] == '-' || text[0] == '*' || text[0] == '+'):
	default:
		return "", text, false
	}
	mark, rest = text[:n+1], text[n+1:]
	if rest != "" && rest[0] != ' ' {
		return "", text, false
	}
	return mark, strings.TrimLeft(rest, " "), true
}
