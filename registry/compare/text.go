package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// TextOptions control the text of a report.
type TextOptions struct {
	Columns int  // width of the terminal, in cells; 0 keeps long values
	Colour  bool // marks differences with escape sequences
}

const (
	defaultColumns = 80
	maxTextLines   = 40   // of a changed text
	maxTextValue   = 4000 // bytes of a value without Columns
	textContext    = 1    // equal lines around changed ones
	// maxCompact is the largest value whose white space is removed, in bytes.
	maxCompact = 64 << 10
)

// Text returns the report for users, ending in a summary. It contains no control
// characters except its own colours.
func (r *Report) Text(o TextOptions) string {
	w := textWriter{o: o, columns: o.Columns}
	if w.columns == 0 {
		w.columns = defaultColumns
	}
	switch {
	case r.Recordings != nil:
		w.recordings(r.Recordings, len(r.Ignored))
	case r.Result != nil:
		if r.Kind == KindCall {
			w.line("", "A  "+describeCall(r.A.Call.Info))
			w.line("", "B  "+describeCall(r.B.Call.Info))
			if text := definitionText(r.A.Call.Definition, r.B.Call.Definition, r.A.Call.Name == r.B.Call.Name && r.A.Call.Server == r.B.Call.Server); text != "" {
				w.line("", text)
			}
			w.line("", "")
		}
		w.result("", r.Result)
		w.blankBefore()
		w.line("", r.Result.Summary(len(r.Ignored)))
	default:
		w.entries(r.Entries)
		w.blankBefore()
		w.line("", entriesSummary(r.Kind, r.Entries, r.Same, len(r.Ignored)))
	}
	return w.out.String()
}

// definitionText compares the definitions that two calls of a tool were made with. It
// returns "" if one is unknown.
func definitionText(a, b []byte, sameName bool) string {
	if !sameName || a == nil || b == nil {
		return ""
	}
	ha, hb := DefinitionHash(a), DefinitionHash(b)
	switch {
	case ha == "" || hb == "":
		return ""
	case sameJSON(a, b):
		return "same definition (hash " + hb + ")"
	}
	return fmt.Sprintf("the definition changed (hash %s → %s)", ha, hb)
}

func describeCall(c *CallInfo) string {
	parts := []string{}
	if c.Number > 0 {
		parts = append(parts, fmt.Sprintf("#%d", c.Number))
	}
	if !c.Time.IsZero() {
		parts = append(parts, c.Time.Local().Format("2006-01-02 15:04:05.000"))
	}
	for _, s := range []string{c.Client, c.Server, c.Method, c.Name} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(append(parts, termtext.Duration(c.Took), termtext.Size(c.Size)), "  ")
}

type textWriter struct {
	o       TextOptions
	columns int
	out     strings.Builder
}

// line writes a line in the colour of an Op, cut to the width of the terminal.
func (w *textWriter) line(op Op, text string) {
	text = termtext.Line(text)
	if w.o.Columns > 0 {
		text = termtext.Cut(text, w.columns)
	}
	text = strings.TrimRight(text, " ")
	colour := map[Op]string{Changed: "\x1b[33m", Removed: "\x1b[31m", Added: "\x1b[32m"}[op]
	if w.o.Colour && colour != "" {
		text = colour + text + "\x1b[m"
	}
	w.out.WriteString(text + "\n")
}

func (w *textWriter) blankBefore() {
	if s := w.out.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		w.out.WriteByte('\n')
	}
}

// result writes the differences of two values.
func (w *textWriter) result(indent string, r *Result) {
	least := 0
	for _, d := range r.Differences {
		if n := termtext.Width(termtext.Line(d.Path.String())); n <= 30 {
			least = max(least, n)
		}
	}
	for _, d := range r.Differences {
		w.difference(indent, &d, least)
	}
	if r.More > 0 {
		w.line("", fmt.Sprintf("%sand %s", indent, plural(r.More, "more difference")))
	}
}

func (w *textWriter) difference(indent string, d *Difference, pathWidth int) {
	path := d.Path.String()
	if d.PathB != nil {
		path += " (" + d.PathB.String() + " in B)"
	}
	head := indent + d.Op.Mark() + " " + termtext.Pad(termtext.Line(path), pathWidth)
	a, b := valueText(d.A), valueText(d.B)
	switch d.Op {
	case Changed:
		if w.texts(indent, head, d) {
			return
		}
		if one := head + "  " + a + " → " + b; termtext.Width(termtext.Line(one)) <= w.columns {
			w.line(Changed, one)
			return
		}
		w.line(Changed, head)
		w.line(Removed, indent+"    A "+a)
		w.line(Added, indent+"    B "+b)
	case Removed:
		w.line(Removed, head+"  "+a)
	case Added:
		w.line(Added, head+"  "+b)
	}
}

// texts writes a changed string with several lines as a difference of lines.
func (w *textWriter) texts(indent, head string, d *Difference) bool {
	if len(d.A) == 0 || len(d.B) == 0 || d.A[0] != '"' || d.B[0] != '"' {
		return false
	}
	a, _ := rawjson.String(d.A)
	b, _ := rawjson.String(d.B)
	if !strings.Contains(a, "\n") || !strings.Contains(b, "\n") {
		return false
	}
	w.line(Changed, head)
	lines := textLines(a, b)
	near := nearDifferences(lines)
	shown, skipped := 0, false
	for i, l := range lines {
		if !near[i] {
			skipped = true
			continue
		}
		if shown++; shown > maxTextLines {
			w.line("", indent+"    …")
			return true
		}
		if skipped {
			w.line("", indent+"    …")
			skipped = false
		}
		if l.HasA && l.Op != Same {
			w.line(Removed, indent+"    - "+l.A)
		}
		if l.HasB && l.Op != Same {
			w.line(Added, indent+"    + "+l.B)
		}
		if l.Op == Same {
			w.line("", indent+"      "+l.A)
		}
	}
	return true
}

func nearDifferences(lines []Line) []bool {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.Op != Same {
			for k := max(i-textContext, 0); k <= min(i+textContext, len(lines)-1); k++ {
				near[k] = true
			}
		}
	}
	return near
}

// valueText returns a value in one line.
func valueText(v []byte) string {
	var compact bytes.Buffer
	if len(v) > maxCompact || json.Compact(&compact, v) != nil {
		compact.Reset()
		compact.Write(v[:min(len(v), maxTextValue+1)])
	}
	text := compact.String()
	if len(text) > maxTextValue {
		text = strings.ToValidUTF8(text[:maxTextValue], "") + "…"
	}
	return text
}

// entries writes the changes of a catalog, grouped by server.
func (w *textWriter) entries(changes []EntryChange) {
	server := ""
	for i, c := range changes {
		if i == 0 || c.Server != server {
			server = c.Server
			w.line("", server)
		}
		w.line(c.Op, "  "+c.Op.Mark()+" "+strings.TrimRight(c.Kind+" "+c.Name, " "))
		for _, text := range c.What {
			w.line("", "      "+text)
		}
		if c.Result != nil && (c.Kind == "server" || len(c.What) == 0) {
			w.result("      ", c.Result)
		}
	}
}

func entriesSummary(kind string, changes []EntryChange, same, ignored int) string {
	count := map[Op]int{}
	for _, c := range changes {
		count[c.Op]++
	}
	var parts []string
	for _, one := range []struct {
		op   Op
		word string
	}{{Changed, "changed"}, {Added, "added"}, {Removed, "removed"}} {
		if n := count[one.op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, one.word))
		}
	}
	text := "no differences"
	if len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	text = fmt.Sprintf("%s: %s, %d equal", kind, text, same)
	if ignored > 0 {
		text += "; " + plural(ignored, "path") + " ignored"
	}
	return text
}

func (w *textWriter) recordings(r *Recordings, ignored int) {
	if len(r.Definitions) > 0 {
		w.entries(r.Definitions)
		w.blankBefore()
	}
	shown := map[Op]int{}
	for _, p := range r.Pairs {
		shown[p.Op]++
		w.pair(&p)
	}
	for _, one := range []struct {
		op   Op
		all  int
		text string
	}{{Changed, r.Different, "different call"}, {Removed, r.OnlyA, "call only in A"}, {Added, r.OnlyB, "call only in B"}} {
		if more := one.all - shown[one.op]; more > 0 {
			noun, rest, _ := strings.Cut(one.text, " call")
			w.line("", strings.TrimSpace(fmt.Sprintf("and %d more %s calls%s", more, noun, rest)))
		}
	}
	w.blankBefore()
	for _, p := range r.Problems {
		w.line("", "! "+p)
	}
	for _, side := range []struct {
		name string
		info *RecordingInfo
	}{{"A", &r.A}, {"B", &r.B}} {
		w.line("", fmt.Sprintf("%s  %s in %s, %s of answers", side.name, plural(side.info.Calls, "call"), termtext.Duration(side.info.Took), termtext.Size(side.info.Size)))
	}
	if n := r.SameDefinitions + len(r.Definitions); n > 0 {
		w.line("", entriesSummary("definitions", r.Definitions, r.SameDefinitions, 0))
	}
	text := fmt.Sprintf("calls: %d same, %d different, %d only in A, %d only in B", r.Same, r.Different, r.OnlyA, r.OnlyB)
	if ignored > 0 {
		text += "; " + plural(ignored, "path") + " ignored"
	}
	w.line("", text)
}

func (w *textWriter) pair(p *CallPair) {
	c := p.A
	if c == nil {
		c = p.B
	}
	var numbers []string
	for _, side := range []struct {
		name string
		info *CallInfo
	}{{"A", p.A}, {"B", p.B}} {
		if side.info != nil && side.info.Number > 0 {
			numbers = append(numbers, fmt.Sprintf("%s #%d", side.name, side.info.Number))
		}
	}
	took := termtext.Duration(c.Took)
	if p.A != nil && p.B != nil {
		took += " → " + termtext.Duration(p.B.Took)
	}
	head := fmt.Sprintf("%s %s %s  %s  %s", p.Op.Mark(), c.Method, c.Name, strings.Join(numbers, ", "), took)
	if one := head + "  " + c.Arguments; c.Arguments != "" && termtext.Width(termtext.Line(one)) <= w.columns {
		w.line(p.Op, one)
	} else {
		w.line(p.Op, head)
		if c.Arguments != "" {
			w.line("", "    "+c.Arguments)
		}
	}
	if p.Problem != "" {
		w.line("", "    "+p.Problem)
	}
	if p.Result != nil {
		w.result("    ", p.Result)
	}
}
