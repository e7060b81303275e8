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

	"goblin/registry/definition"
	"goblin/registry/rawjson"
	"goblin/tui/textfield"
	"goblin/tui/theme"
)

var errRequired = errors.New("required")

// Space toggles true, and changes anything else to true.
var boolOptions = []Option{{Value: json.RawMessage("true")}, {Value: json.RawMessage("false")}}

type field struct {
	Field
	look    *theme.Theme
	label   string
	kind    Kind // JSON while the value is of another kind
	text    textfield.Field
	pattern *regexp.Regexp
	// original is the value as it was set, sent unchanged until the first edit so that
	// display loses nothing.
	original json.RawMessage

	selected    []bool // by option
	cursor      int    // option under the cursor
	cursorMoved bool   // the user moved the cursor or filtered the options
	filter      textfield.Field
	matches     []int // options that match the filter

	parent      *field // or nil
	count       *fieldCount
	depth       int      // indentation level
	children    []*field // members, items, or the selected alternative
	alternative int      // selected alternative of a Choice
	open        bool     // an Object is sent
	extra       []member // members of an Object without a field

	schema      schemaText // shown beside JSON
	err         string
	stale       bool // cachedRows are out of date
	cachedRows  []row
	cachedWidth int
}

func newField(l *theme.Theme, def Field, up *field, counted *fieldCount) *field {
	f := &field{Field: def, look: l, kind: def.Kind, label: cmp.Or(def.Title, def.Name), stale: true, parent: up, count: counted}
	counted.live++
	if (f.kind == Enum || f.kind == MultiEnum) && len(f.Options) == 0 || f.kind > Choice || f.isNested() && counted.live > maxLive {
		f.kind, f.Kind = JSON, JSON
	}
	if f.kind == Bool {
		f.Options = boolOptions
	}
	if len(f.Options) > MaxOptions {
		f.Options = f.Options[:MaxOptions]
	}
	if def.Pattern != "" {
		// The server checks complex patterns and those of ECMA 262 that RE2 lacks.
		f.pattern, _ = definition.CompilePattern(def.Pattern)
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
	f.setValue(initial)
	if f.kind != f.Kind || f.original == nil && !f.isNested() {
		if _, err := f.parse(); err != nil || f.kind != f.Kind {
			f.setValue(nil) // ignore a default of the wrong type
		}
	}
	return f
}

func (f *field) isChoice() bool {
	return f.kind == Bool || f.kind == Enum || f.kind == MultiEnum || f.kind == Choice
}

// clear empties a field and restores its own kind.
func (f *field) clear() {
	f.kind = f.Kind
	f.original = nil
	f.err = ""
	f.cursor = 0
	f.cursorMoved = false
	f.stale = true
	f.resetChildren()
	switch f.kind {
	case Object, Array:
	case Bool, Enum, MultiEnum, Choice:
		f.selected = make([]bool, len(f.Options))
		f.filter = textfield.New(f.look)
		f.filterOptions()
	default:
		f.setText("", f.kind == List || f.kind == JSON || f.Format == "textarea" || f.Format == "multiline")
	}
}

func (f *field) setText(s string, multi bool) {
	f.text = textfield.New(f.look)
	if multi {
		f.text = textfield.NewArea(f.look)
	}
	if f.kind == Text || f.kind == List {
		f.text.Mask(f.Mask)
	}
	f.text.SetValue(s)
}

// An empty value clears the field.
func (f *field) setValue(raw json.RawMessage) {
	f.clear()
	raw = compact(raw)
	if len(raw) == 0 {
		return
	}
	if f.showValue(raw) || isNull(raw) {
		f.original = raw
		return
	}
	if s, ok := f.convert(raw); ok {
		f.setText(s, f.text.Multi())
		return
	}
	f.kind = JSON
	f.setText(indent(raw), true)
	f.original = raw
}

// showValue displays a value and reports whether it is of the field's kind.
func (f *field) showValue(raw json.RawMessage) bool {
	s, isString := rawjson.String(raw)
	switch f.kind {
	case Text:
		if isString {
			f.setText(s, f.text.Multi() || strings.Contains(s, "\n"))
		}
		return isString
	case Number, Integer:
		if _, err := parseNumber(string(raw)); err != nil {
			return false
		}
		f.setText(string(raw), false)
		return true
	case Bool, Enum:
		return f.selectOption(raw)
	case MultiEnum:
		if !rawjson.IsArray(raw) {
			return false
		}
		for v := range rawjson.Elements(raw) {
			if !f.selectOption(v) {
				clear(f.selected)
				return false
			}
		}
		return true
	case List:
		return f.showList(raw)
	case Object, Array, Choice:
		return f.showNested(raw)
	default:
		f.setText(indent(raw), true)
		return true
	}
}

func (f *field) selectOption(raw json.RawMessage) bool {
	for i, o := range f.Options {
		if sameJSON(o.Value, raw) {
			f.selected[i], f.cursor = true, i
			return true
		}
	}
	return false
}

// showList displays an array if each item fits on a line.
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
			_, err := parseNumber(s)
			fits = !isString && err == nil
		}
		if !fits || len(lines) == maxListItems {
			return false
		}
		lines = append(lines, s)
	}
	f.setText(strings.Join(lines, "\n"), true)
	return true
}

// convert returns a scalar of another type as text for a typed field.
func (f *field) convert(raw json.RawMessage) (string, bool) {
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

// afterChange updates dependent state; call it after each edit.
func (f *field) afterChange() {
	f.original, f.stale = nil, true
	for up := f.parent; up != nil; up = up.parent {
		up.original, up.err, up.stale = nil, "", true
	}
	if f.err != "" && f.isNested() {
		f.err = ""
	} else if f.err != "" {
		_ = f.verify(true) // updates f.err
	}
}

// verify checks the field and stores the problem in f.err. Missing values count only if
// all is true.
func (f *field) verify(all bool) error {
	if f.isNested() {
		return nil // the children report problems
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

// value returns the JSON to send, or nil for an empty optional field.
func (f *field) value() (json.RawMessage, error) {
	if isNull(f.original) {
		return f.original, nil
	}
	raw, err := f.parse()
	switch {
	case err != nil:
		return nil, err
	case f.isNested():
		return raw, nil
	case raw == nil && f.Required:
		return nil, errRequired
	case raw != nil && f.original != nil:
		return f.original, nil
	}
	return raw, nil
}

// parse returns the displayed value after checking it.
func (f *field) parse() (json.RawMessage, error) {
	if f.hasVariable() {
		return rawjson.Quote(strings.TrimSpace(f.text.Value())), nil
	}
	switch f.kind {
	case Object, Array, Choice:
		return f.nestedValue()
	case Text:
		if f.text.Value() == "" && f.original == nil {
			return nil, nil
		}
		return rawjson.Quote(f.text.Value()), f.checkText(f.text.Value(), f.pattern)
	case Number, Integer:
		s := strings.TrimSpace(f.text.Value())
		if s == "" {
			return nil, nil
		}
		return json.RawMessage(s), f.checkNumber(s, f.kind == Integer)
	case Bool, Enum, MultiEnum:
		return f.selectedValue()
	case List:
		return f.listValue()
	}
	s := strings.TrimSpace(f.text.Value())
	if s == "" {
		return nil, nil
	}
	if err := checkSyntax(s); err != nil {
		if !strings.ContainsAny(s, "{[\"") {
			return nil, fmt.Errorf("%w (put text in quotes)", err)
		}
		return nil, err
	}
	return compact([]byte(s)), nil
}

// hasVariable reports whether the typed text is not checked because it holds a variable.
func (f *field) hasVariable() bool {
	return f.count.variables && (f.kind == Text || f.kind == Number || f.kind == Integer) && strings.Contains(f.text.Value(), "${")
}

func (f *field) selectedValue() (json.RawMessage, error) {
	var values [][]byte
	for i, on := range f.selected {
		if on {
			values = append(values, f.Options[i].Value)
		}
	}
	switch {
	case f.kind != MultiEnum && len(values) > 0:
		return values[0], nil
	case f.kind != MultiEnum:
		return nil, nil
	case len(values) == 0 && f.original == nil && !f.Required:
		return nil, nil
	}
	return rawjson.Array(values...), f.checkLength(len(values), "value")
}

func (f *field) listValue() (json.RawMessage, error) {
	var values [][]byte
	for i, line := range f.text.Rows() {
		s := strings.TrimSpace(line)
		if s == "" {
			continue
		}
		var err error
		if f.Item == Text {
			err = f.checkText(s, f.pattern)
			values = append(values, rawjson.Quote(s))
		} else {
			err = f.checkNumber(s, f.Item == Integer)
			values = append(values, []byte(s))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if len(values) == 0 && f.original == nil && !f.Required {
		return nil, nil
	}
	return rawjson.Array(values...), f.checkLength(len(values), "value")
}

func (f *field) plainText() string {
	switch f.kind {
	case Text, Number, Integer, JSON, List:
		return f.text.Value()
	}
	raw, err := f.parse()
	if err != nil || raw == nil {
		return ""
	}
	return valueText(raw)
}

// rawValue returns the value for the raw mode, preserving invalid text. A required field
// gets an empty value. stand returns a placeholder for text that is not JSON.
func (f *field) rawValue(stand func(text string) json.RawMessage) json.RawMessage {
	raw := f.rawOrNone(stand)
	if room := maxSkeleton; len(raw) == 0 && f.Required && !f.Inline {
		return f.skeleton(false, &room)
	}
	return raw
}

// rawOrNone returns the value for the raw mode, or nil. Invalid text becomes a string.
func (f *field) rawOrNone(stand func(text string) json.RawMessage) json.RawMessage {
	if text := f.invalidJSON(); text != "" {
		return stand(text)
	}
	if f.isNested() && !isNull(f.original) {
		return f.rawNested(stand)
	}
	raw, err := f.value()
	if err == nil || errors.Is(err, errRequired) {
		return raw
	}
	if raw, _ = f.parse(); raw != nil && json.Valid(raw) {
		return raw
	}
	return rawjson.Quote(f.text.Value())
}

func (f *field) rawNested(stand func(text string) json.RawMessage) json.RawMessage {
	switch {
	case f.kind == Object && f.open:
		var list []member
		for _, kid := range f.children {
			list = kid.appendTo(list, kid.rawValue(stand))
		}
		return writeObject(append(list, f.extra...))
	case f.kind == Array && (len(f.children) > 0 || f.original != nil):
		var values [][]byte
		for _, kid := range f.children {
			values = append(values, kid.rawValue(stand))
		}
		return rawjson.Array(values...)
	case f.kind == Choice && len(f.children) > 0:
		return f.children[0].rawValue(stand)
	}
	return nil
}

// invalidJSON returns the text of a JSON field if it is invalid.
func (f *field) invalidJSON() string {
	if f.kind != JSON || f.original != nil {
		return ""
	}
	if text := f.text.Value(); strings.TrimSpace(text) != "" && !json.Valid([]byte(text)) {
		return text
	}
	return ""
}

func (f *field) filterOptions() {
	f.matches = f.matches[:0]
	words := strings.Fields(strings.ToLower(f.filter.Value()))
	for i, o := range f.Options {
		text := strings.ToLower(o.Label)
		lacks := func(word string) bool { return !strings.Contains(text, word) }
		if !slices.ContainsFunc(words, lacks) {
			f.matches = append(f.matches, i)
		}
	}
}

const maxLineOptions = 5

func (f *field) fitsLine(w int) bool {
	if len(f.Options) > maxLineOptions {
		return false
	}
	n := 0
	for _, o := range f.Options {
		n += theme.Width(safeLabel(o.Label)) + 6
	}
	return n <= w
}

// moveCursor moves the cursor by d among the matching options, or returns false at the
// end.
func (f *field) moveCursor(d int) bool {
	at := slices.Index(f.matches, f.cursor) + d
	if at < 0 || at >= len(f.matches) {
		return false
	}
	f.cursor, f.cursorMoved, f.stale = f.matches[at], true, true
	return true
}

// choose toggles an option of a MultiEnum, and otherwise replaces the choice. With back,
// choosing it again clears an optional field.
func (f *field) choose(i int, back bool) {
	on := !f.selected[i]
	if f.kind != MultiEnum {
		on = on || !back || f.Required
		clear(f.selected)
	}
	f.selected[i], f.cursor = on, i
	switch {
	case f.kind == Choice && !on:
		f.setAlternative(-1)
	case f.kind == Choice && (f.alternative != i || len(f.children) == 0):
		f.setAlternative(i)
	}
	f.afterChange()
}

func (f *field) clearChoice() {
	if f.Required {
		return
	}
	clear(f.selected)
	if f.kind == Choice {
		f.setAlternative(-1)
	}
	f.afterChange()
}

// typeKey handles a key and reports whether the text changed.
func (f *field) typeKey(msg tea.KeyMsg) bool {
	if f.original != nil && msg.Type == tea.KeyRunes && (f.kind == Number || f.kind == Integer) {
		f.text.SetValue("") // typing replaces a default number
	}
	if !f.text.Update(msg) {
		return false
	}
	f.afterChange()
	return true
}
