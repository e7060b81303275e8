package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/rawjson"
	"goblin/tui/textfield"
	"goblin/tui/theme"
)

var errRequired = errors.New("required")

// field is a field being filled in.
type field struct {
	Field
	look    *theme.Look
	label   string
	kind    Kind // of Field, or JSON while it has a value that is not of its kind
	text    textfield.Text
	pattern *regexp.Regexp
	// held is the value as it came, sent as it is until somebody edits it, so
	// that nothing is lost by being shown.
	held json.RawMessage

	truth  *bool  // of a Bool
	picked []bool // of Enum and Several, by option
	hot    int    // the option with the cursor
	moved  bool   // the cursor was moved or the options filtered
	filter textfield.Text
	passed []int // the options that pass the filter

	up    *field // what it is in
	tally *tally
	depth int      // how far it is indented
	kids  []*field // members of an Object, items of an Array, what a Choice is
	is    int      // which of its alternatives a Choice is
	open  bool     // an Object is sent
	extra []member // of an Object that no field shows

	schema schemaText // shown beside JSON
	err    string
	stale  bool // block must be drawn again
	block  []row
	blockW int
}

func newField(l *theme.Look, def Field, up *field, counted *tally) *field {
	f := &field{Field: def, look: l, kind: def.Kind, label: cmp.Or(def.Title, def.Name), stale: true, up: up, tally: counted}
	counted.live++
	if (f.kind == Enum || f.kind == Several) && len(f.Options) == 0 || f.kind > Choice || f.nests() && counted.live > maxLive {
		f.kind, f.Kind = JSON, JSON
	}
	if len(f.Options) > MaxOptions {
		f.Options = f.Options[:MaxOptions]
	}
	if def.Pattern != "" {
		// ECMA 262 has patterns that RE2 lacks; those are left to the server.
		f.pattern, _ = regexp.Compile(def.Pattern)
	}
	initial := def.Default
	if len(initial) == 0 && f.Required {
		switch {
		case f.kind == Bool:
			initial = json.RawMessage("false")
		case f.kind == Enum && len(f.Options) == 1:
			initial = f.Options[0].Value
		}
	}
	f.set(initial)
	if f.kind != f.Kind || f.held == nil && !f.nests() {
		if _, err := f.typed(); err != nil || f.kind != f.Kind {
			f.set(nil) // a default of another type is a mistake of the server's
		}
	}
	return f
}

// isChoice reports whether a field is filled in by choosing, not by typing.
func (f *field) isChoice() bool {
	return f.kind == Bool || f.kind == Enum || f.kind == Several || f.kind == Choice
}

// clear makes a field empty and of its own kind.
func (f *field) clear() {
	f.kind = f.Kind
	f.held = nil
	f.err = ""
	f.truth = nil
	f.hot = 0
	f.moved = false
	f.stale = true
	f.empties()
	switch f.kind {
	case Object, Array:
	case Enum, Several, Choice:
		f.picked = make([]bool, len(f.Options))
		f.filter = textfield.New(f.look)
		f.narrow()
	case Bool:
	default:
		f.edit("", f.kind == List || f.kind == JSON || f.Format == "textarea" || f.Format == "multiline")
	}
}

// edit makes the text of a field s.
func (f *field) edit(s string, multi bool) {
	f.text = textfield.New(f.look)
	if multi {
		f.text = textfield.NewArea(f.look)
	}
	f.text.Set(s)
}

// set gives a field a value; none clears it.
func (f *field) set(raw json.RawMessage) {
	f.clear()
	raw = compact(raw)
	if len(raw) == 0 {
		return
	}
	if f.show(raw) || isNull(raw) {
		f.held = raw
		return
	}
	if s, ok := f.converted(raw); ok {
		f.edit(s, f.text.Multi())
		return
	}
	f.kind = JSON
	f.edit(indented(raw), true)
	f.held = raw
}

// show fills the field with a value of its kind and reports whether it is one.
func (f *field) show(raw json.RawMessage) bool {
	s, isString := rawjson.String(raw)
	switch f.kind {
	case Text:
		if isString {
			f.edit(s, f.text.Multi() || strings.Contains(s, "\n"))
		}
		return isString
	case Number, Integer:
		if _, err := numeral(string(raw)); err != nil {
			return false
		}
		f.edit(string(raw), false)
		return true
	case Bool:
		v := string(raw) == "true"
		if !v && string(raw) != "false" {
			return false
		}
		f.truth = &v
		return true
	case Enum:
		return f.pick(raw)
	case Several:
		if !rawjson.IsArray(raw) {
			return false
		}
		for v := range rawjson.Elements(raw) {
			if !f.pick(v) {
				clear(f.picked)
				return false
			}
		}
		return true
	case List:
		return f.showList(raw)
	case Object, Array, Choice:
		return f.showNested(raw)
	default:
		f.edit(indented(raw), true)
		return true
	}
}

func (f *field) pick(raw json.RawMessage) bool {
	for i, o := range f.Options {
		if same(o.Value, raw) {
			f.picked[i], f.hot = true, i
			return true
		}
	}
	return false
}

// showList shows an array whose items each fit on a line.
func (f *field) showList(raw json.RawMessage) bool {
	if !rawjson.IsArray(raw) {
		return false
	}
	var lines []string
	for v := range rawjson.Elements(raw) {
		s, isString := rawjson.String(v)
		if !isString {
			s = string(compact(v))
		}
		fits := isString && s == strings.TrimSpace(s) && s != "" && !strings.Contains(s, "\n")
		if f.Item != Text {
			_, err := numeral(s)
			fits = !isString && err == nil
		}
		if !fits || len(lines) == textfield.MaxLines {
			return false
		}
		lines = append(lines, s)
	}
	f.edit(strings.Join(lines, "\n"), true)
	return true
}

// converted is the text of a scalar of another type, for a field that is typed.
func (f *field) converted(raw json.RawMessage) (string, bool) {
	switch f.kind {
	case Text:
		if rawjson.IsObject(raw) || rawjson.IsArray(raw) {
			return "", false
		}
		return string(raw), true
	case Number, Integer:
		s, ok := rawjson.String(raw)
		return s, ok && !strings.Contains(s, "\n")
	}
	return "", false
}

// changed is called after each edit.
func (f *field) changed() {
	f.held, f.stale = nil, true
	for up := f.up; up != nil; up = up.up {
		up.held, up.err, up.stale = nil, "", true
	}
	if f.err != "" && f.nests() {
		f.err = ""
	} else if f.err != "" {
		_ = f.verify(true) // it keeps what is wrong
	}
}

// verify checks the field and keeps what is wrong; a missing value is only
// wrong if all are wanted.
func (f *field) verify(all bool) error {
	if f.nests() {
		return nil // what it holds says it
	}
	_, err := f.value()
	if errors.Is(err, errRequired) && !all {
		err = nil
	}
	f.err, f.stale = "", true
	if err != nil {
		f.err = err.Error()
	}
	return err
}

// value gives the JSON to send; nothing for an optional field without a value.
func (f *field) value() (json.RawMessage, error) {
	if isNull(f.held) {
		return f.held, nil
	}
	raw, err := f.typed()
	switch {
	case err != nil:
		return nil, err
	case f.nests():
		return raw, nil
	case raw == nil && f.Required:
		return nil, errRequired
	case raw != nil && f.held != nil:
		return f.held, nil
	}
	return raw, nil
}

// typed is the value of what is seen, checked as far as the field alone can.
func (f *field) typed() (json.RawMessage, error) {
	switch f.kind {
	case Object, Array, Choice:
		return f.nestedValue()
	case Text:
		if f.text.Value() == "" && f.held == nil {
			return nil, nil
		}
		return rawjson.Quote(f.text.Value()), f.characters(f.text.Value(), f.pattern)
	case Number, Integer:
		s := strings.TrimSpace(f.text.Value())
		if s == "" {
			return nil, nil
		}
		return json.RawMessage(s), f.number(s, f.kind == Integer)
	case Bool:
		if f.truth == nil {
			return nil, nil
		}
		return json.Marshal(*f.truth)
	case Enum, Several:
		return f.chosen()
	case List:
		return f.list()
	}
	s := strings.TrimSpace(f.text.Value())
	if s == "" {
		return nil, nil
	}
	if err := checkSyntax(s); err != nil {
		if !strings.ContainsAny(s, "{[\"") {
			return nil, fmt.Errorf("%w (text is written in quotes)", err)
		}
		return nil, err
	}
	return compact([]byte(s)), nil
}

func (f *field) chosen() (json.RawMessage, error) {
	var values [][]byte
	for i, on := range f.picked {
		if on {
			values = append(values, f.Options[i].Value)
		}
	}
	switch {
	case f.kind == Enum && len(values) > 0:
		return values[0], nil
	case f.kind == Enum:
		return nil, nil
	case len(values) == 0 && f.held == nil && !f.Required:
		return nil, nil
	}
	return rawjson.Array(values), f.length(len(values), "value")
}

func (f *field) list() (json.RawMessage, error) {
	var values [][]byte
	for i, line := range f.text.Rows() {
		s := strings.TrimSpace(line)
		if s == "" {
			continue
		}
		var err error
		if f.Item == Text {
			err = f.characters(s, f.pattern)
			values = append(values, rawjson.Quote(s))
		} else {
			err = f.number(s, f.Item == Integer)
			values = append(values, []byte(s))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(values) == 0 && f.held == nil && !f.Required {
		return nil, nil
	}
	return rawjson.Array(values), f.length(len(values), "value")
}

// plain is the value as text, for previews and completions; "" is none.
func (f *field) plain() string {
	switch f.kind {
	case Text, Number, Integer, JSON, List:
		return f.text.Value()
	}
	raw, err := f.typed()
	if err != nil || raw == nil {
		return ""
	}
	return label(raw)
}

// lenient is the value for the raw mode: what is not valid is sent there as text, so
// that it is not lost, and what must be there is, if only as an empty value. stand gives
// what stands for a text that is no JSON.
func (f *field) lenient(stand func(text string) json.RawMessage) json.RawMessage {
	raw := f.written(stand)
	if room := mostSkeleton; len(raw) == 0 && f.Required && !f.Inline {
		return f.skeleton(false, &room)
	}
	return raw
}

func (f *field) written(stand func(text string) json.RawMessage) json.RawMessage {
	if text := f.broken(); text != "" {
		return stand(text)
	}
	if f.nests() && !isNull(f.held) {
		return f.nestedWritten(stand)
	}
	raw, err := f.value()
	if err == nil || errors.Is(err, errRequired) {
		return raw
	}
	if raw, _ = f.typed(); raw != nil && json.Valid(raw) {
		return raw
	}
	return rawjson.Quote(f.text.Value())
}

func (f *field) nestedWritten(stand func(text string) json.RawMessage) json.RawMessage {
	switch {
	case f.kind == Object && f.open:
		var list []member
		for _, kid := range f.kids {
			list = kid.put(list, kid.lenient(stand))
		}
		return objectOf(append(list, f.extra...))
	case f.kind == Array && (len(f.kids) > 0 || f.held != nil):
		var values [][]byte
		for _, kid := range f.kids {
			values = append(values, kid.lenient(stand))
		}
		return rawjson.Array(values)
	case f.kind == Choice && len(f.kids) > 0:
		return f.kids[0].lenient(stand)
	}
	return nil
}

// broken is the text of a field for JSON that is none; "" for any other.
func (f *field) broken() string {
	if f.kind != JSON || f.held != nil {
		return ""
	}
	if text := f.text.Value(); strings.TrimSpace(text) != "" && !json.Valid([]byte(text)) {
		return text
	}
	return ""
}

// narrow finds the options that pass the filter.
func (f *field) narrow() {
	f.passed = f.passed[:0]
	words := strings.Fields(strings.ToLower(f.filter.Value()))
	for i, o := range f.Options {
		text := strings.ToLower(o.Label)
		lacks := func(word string) bool { return !strings.Contains(text, word) }
		if !slices.ContainsFunc(words, lacks) {
			f.passed = append(f.passed, i)
		}
	}
}

// optionRoom is how many options a line may have.
const optionRoom = 5

// inLine reports whether the options stand on one line of w cells.
func (f *field) inLine(w int) bool {
	if len(f.Options) > optionRoom {
		return false
	}
	n := 0
	for _, o := range f.Options {
		n += theme.Width(shown(o.Label)) + 6
	}
	return n <= w
}

// walk moves the cursor by d among the options that pass the filter; false at the
// end.
func (f *field) walk(d int) bool {
	at := slices.Index(f.passed, f.hot) + d
	if at < 0 || at >= len(f.passed) {
		return false
	}
	f.hot, f.moved, f.stale = f.passed[at], true, true
	return true
}

// choose turns an option on or off; in an Enum it takes the place of the other
// and, if the field is optional, can be taken back.
func (f *field) choose(i int, back bool) {
	on := !f.picked[i]
	if f.kind != Several {
		on = on || !back || f.Required
		clear(f.picked)
	}
	f.picked[i], f.hot = on, i
	switch {
	case f.kind == Choice && !on:
		f.become(-1)
	case f.kind == Choice && (f.is != i || len(f.kids) == 0):
		f.become(i)
	}
	f.changed()
}

// flip walks a Bool through its states.
func (f *field) flip() {
	v := f.truth == nil || !*f.truth
	f.truth = &v
	f.changed()
}

// empty takes the value of a Bool or Enum back if it is optional.
func (f *field) empty() {
	if f.Required {
		return
	}
	f.truth = nil
	clear(f.picked)
	if f.kind == Choice {
		f.become(-1)
	}
	f.changed()
}

// typeKey is for keys that are typed into the field; it reports a change.
func (f *field) typeKey(msg tea.KeyMsg) bool {
	if f.held != nil && msg.Type == tea.KeyRunes && (f.kind == Number || f.kind == Integer) {
		f.text.Set("") // a number that is typed is not meant as the end of the default
	}
	if !f.text.Update(msg) {
		return false
	}
	f.changed()
	return true
}
