package compare

import (
	"bytes"
	"strings"

	"goblin/registry/rawjson"
)

// Line is a line of both sides, for drawing. Its texts are untrusted JSON.
type Line struct {
	Op Op
	// HasA and HasB report whether the sides have the line.
	HasA, HasB bool
	A, B       string
	// Path is the place of the value: that of A, or of an added value that of B. It is nil
	// for closing brackets.
	Path Path
	// First marks the first line of a difference.
	First bool
}

// MaxLines is the maximum number of lines of one result.
const MaxLines = 200_000

const (
	ignoredText = "(ignored)"
	unknownText = "(not recorded)"
	indent      = "  "
	maxText     = 20_000 // bytes of one line
)

// Lines returns both values in pretty print, aligned. cut reports whether lines are
// missing because there are more than [MaxLines].
func (r *Result) Lines() (lines []Line, cut bool) {
	w := lineWriter{}
	w.node(r.root, place{}, place{}, nil, nil)
	return w.lines, w.full()
}

// place is the surrounding of a value in the text of one side.
type place struct {
	prefix string // indent and name
	indent string
	comma  string
}

type lineWriter struct {
	lines []Line
	used  int  // lines of other writers
	fresh bool // the next line is the first of a difference
}

func (w *lineWriter) full() bool { return w.used+len(w.lines) >= MaxLines }

func (w *lineWriter) add(l Line) {
	if w.full() {
		return
	}
	if l.Op == Changed || l.Op == Removed || l.Op == Added {
		l.First, w.fresh = w.fresh, false
	}
	l.A, l.B = cutText(l.A), cutText(l.B)
	w.lines = append(w.lines, l)
}

func cutText(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// both adds a line that both sides have.
func (w *lineWriter) both(a, b string, path Path) {
	w.add(Line{Op: Same, HasA: true, HasB: true, A: a, B: b, Path: path})
}

func (w *lineWriter) node(n *node, pa, pb place, at, bt Path) {
	if w.full() {
		return
	}
	w.fresh = true
	path := at
	if n.a == nil {
		path = bt
	}
	switch {
	case n.op == Ignored || n.op == Unknown:
		text := ignoredText
		if n.op == Unknown {
			text = unknownText
		}
		l := Line{Op: n.op, Path: path.clone(), HasA: n.a != nil, HasB: n.b != nil, A: pa.prefix + text + pa.comma, B: pb.prefix + text + pb.comma}
		if n.op == Unknown {
			l.HasA, l.HasB = true, true
			if n.a == nil {
				l.A, l.B = pb.indent+text, pb.prefix+brief(n.b)+pb.comma
			} else {
				l.A, l.B = pa.prefix+brief(n.a)+pa.comma, pa.indent+text
			}
		}
		w.add(l)
	case len(n.kids) > 0:
		w.container(n, pa, pb, at, bt)
	case n.op == Same:
		w.same(n.a, n.b, pa, pb, at)
	case n.op == Removed:
		w.side(n.a, pa, at, Removed)
	case n.op == Added:
		w.side(n.b, pb, bt, Added)
	default:
		w.changed(n, pa, pb, at)
	}
}

func brief(v *value) string {
	switch v.kind {
	case '{':
		return "{…}"
	case '[':
		return "[…]"
	}
	return oneLine(v.text)
}

// oneLine returns a scalar, or a container without line breaks.
func oneLine(text []byte) string {
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return string(rawjson.OneLine(bytes.Clone(text)))
	}
	return string(text)
}

func (w *lineWriter) container(n *node, pa, pb place, at, bt Path) {
	opening, closing := string(n.a.kind), string(n.a.kind+2)
	w.both(pa.prefix+opening, pb.prefix+opening, at.clone())
	lastA, lastB := lastOf(n.kids, func(k *node) bool { return k.a != nil }), lastOf(n.kids, func(k *node) bool { return k.b != nil })
	for i := range n.kids {
		k := &n.kids[i]
		ka, kb := place{indent: pa.indent + indent}, place{indent: pb.indent + indent}
		ka.prefix, kb.prefix = ka.indent, kb.indent
		if k.a != nil && !n.isArray() {
			ka.prefix += quote(k.a.name) + ": "
		}
		if k.b != nil && !n.isArray() {
			kb.prefix += quote(k.b.name) + ": "
		}
		if i != lastA {
			ka.comma = ","
		}
		if i != lastB {
			kb.comma = ","
		}
		w.node(k, ka, kb, k.step(at, k.a, k.ia, n.isArray()), k.step(bt, k.b, k.ib, n.isArray()))
	}
	w.both(pa.indent+closing+pa.comma, pb.indent+closing+pb.comma, nil)
}

func lastOf(kids []node, has func(*node) bool) int {
	for i := len(kids) - 1; i >= 0; i-- {
		if has(&kids[i]) {
			return i
		}
	}
	return -1
}

func quote(name string) string { return string(rawjson.Quote(name)) }

// same writes an equal value, as each side spells it.
func (w *lineWriter) same(a, b *value, pa, pb place, at Path) {
	if len(a.kids) == 0 || len(a.kids) != len(b.kids) {
		w.both(pa.prefix+scalar(a)+pa.comma, pb.prefix+scalar(b)+pb.comma, at.clone())
		return
	}
	n := node{a: a, b: b}
	n.matchSame()
	w.container(&n, pa, pb, at, at)
}

// matchSame pairs the kids of equal containers.
func (n *node) matchSame() {
	if n.a.kind == '{' {
		n.matchMembers(0)
		return
	}
	for i := range n.a.kids {
		n.add(&n.a.kids[i], &n.b.kids[i], i, i, 0)
	}
}

func scalar(v *value) string {
	switch {
	case v.kind == '{' && len(v.kids) == 0:
		return "{}"
	case v.kind == '[' && len(v.kids) == 0:
		return "[]"
	}
	return oneLine(v.text)
}

// side writes a value that only one side has.
func (w *lineWriter) side(v *value, p place, path Path, op Op) {
	line := func(text string, path Path) {
		l := Line{Op: op, Path: path, HasA: op == Removed, HasB: op == Added, A: text, B: text}
		if op == Removed {
			l.B = ""
		} else {
			l.A = ""
		}
		w.add(l)
	}
	if v.ignored {
		line(p.prefix+ignoredText+p.comma, path.clone())
		return
	}
	if len(v.kids) == 0 {
		line(p.prefix+scalar(v)+p.comma, path.clone())
		return
	}
	line(p.prefix+string(v.kind), path.clone())
	for i := range v.kids {
		if w.full() {
			return
		}
		k := &v.kids[i]
		kp := place{indent: p.indent + indent, prefix: p.indent + indent}
		step := Step{Index: i, IsIndex: true}
		if v.kind == '{' {
			kp.prefix += quote(k.name) + ": "
			step = Step{Name: k.name, Occurrence: k.occurrence}
		}
		if i < len(v.kids)-1 {
			kp.comma = ","
		}
		w.side(k, kp, append(path[:len(path):len(path)], step), op)
	}
	line(p.indent+string(v.kind+2)+p.comma, nil)
}

// changed writes a changed value: the lines of long texts aligned, others side by side.
func (w *lineWriter) changed(n *node, pa, pb place, at Path) {
	if n.a.kind == '"' && n.b.kind == '"' {
		a, _ := rawjson.String(n.a.text)
		b, _ := rawjson.String(n.b.text)
		if strings.Contains(a, "\n") || strings.Contains(b, "\n") {
			w.text(a, b, pa, pb, at)
			return
		}
	}
	var left, right lineWriter
	left.side(n.a, pa, at, Removed)
	right.side(n.b, pb, at, Added)
	for i := range max(len(left.lines), len(right.lines)) {
		l := Line{Op: Changed, Path: at.clone()}
		if i < len(left.lines) {
			l.HasA, l.A = true, left.lines[i].A
		}
		if i < len(right.lines) {
			l.HasB, l.B = true, right.lines[i].B
		}
		switch {
		case !l.HasB:
			l.Op = Removed
		case !l.HasA:
			l.Op = Added
		}
		w.add(l)
	}
}

// text aligns the lines of two strings.
func (w *lineWriter) text(a, b string, pa, pb place, at Path) {
	w.both(pa.prefix+"(text)", pb.prefix+"(text)", at.clone())
	for _, l := range textLines(a, b) {
		if l.HasA {
			l.A = pa.indent + "| " + l.A
		}
		if l.HasB {
			l.B = pb.indent + "| " + l.B
		}
		l.Path = at.clone()
		w.add(l)
	}
}

// textLines aligns the lines of two texts. Only the first line is marked as First.
func textLines(a, b string) (lines []Line) {
	la, lb := splitText(a), splitText(b)
	hash := func(all []string) func(int) uint64 {
		return func(i int) uint64 { return hashOf('|', all[i]) }
	}
	i, j := 0, 0
	gap := func(ei, ej int) {
		for ; i < ei && j < ej; i, j = i+1, j+1 {
			lines = append(lines, Line{Op: Changed, HasA: true, HasB: true, A: la[i], B: lb[j]})
		}
		for ; i < ei; i++ {
			lines = append(lines, Line{Op: Removed, HasA: true, A: la[i]})
		}
		for ; j < ej; j++ {
			lines = append(lines, Line{Op: Added, HasB: true, B: lb[j]})
		}
	}
	for _, p := range align(len(la), len(lb), func(i, j int) bool { return la[i] == lb[j] }, hash(la), hash(lb)) {
		gap(p[0], p[1])
		lines = append(lines, Line{Op: Same, HasA: true, HasB: true, A: la[i], B: lb[j]})
		i, j = i+1, j+1
	}
	gap(len(la), len(lb))
	return lines
}

func splitText(s string) []string { return strings.Split(s, "\n") }

// Section is a member of the outermost objects, with lines that do not repeat its name.
type Section struct {
	Title      string
	HasA, HasB bool
	Lines      []Line
}

// Sections returns both values as [Result.Lines] does, but the members of the outermost
// objects apart. Values that are no objects are one section without title.
func (r *Result) Sections() (all []Section, cut bool) {
	if r.root.a == nil || r.root.b == nil || r.root.a.kind != '{' || r.root.b.kind != '{' {
		lines, cut := r.Lines()
		return []Section{{HasA: true, HasB: true, Lines: lines}}, cut
	}
	root := node{op: r.root.op, a: r.root.a, b: r.root.b, kids: r.root.kids}
	if len(root.kids) == 0 {
		root.matchSame()
	}
	room := MaxLines
	for i := range root.kids {
		k := &root.kids[i]
		s := Section{HasA: k.a != nil, HasB: k.b != nil}
		if s.HasA {
			s.Title = k.a.name
		} else {
			s.Title = k.b.name
		}
		w := lineWriter{used: MaxLines - room}
		w.node(k, place{}, place{}, k.step(nil, k.a, k.ia, false), k.step(nil, k.b, k.ib, false))
		room -= len(w.lines)
		cut = cut || w.full()
		s.Lines = w.lines
		all = append(all, s)
	}
	return all, cut
}
