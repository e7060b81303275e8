// Package form builds and validates input forms from JSON Schemas, prompts and URI
// templates.
//
// A [Form] is a plain struct that one screen owns: it does no IO, starts no
// goroutine and keeps no global state, and all its methods belong to the
// goroutine of that screen's Update and View. Only the [tea.Cmd] that waits for
// a pause in the typing runs elsewhere; it shares one atomic number with the
// form. Nothing here blocks.
//
// Schemas, prompt definitions and offered completions come from servers and are
// not trusted: what is read of them is bounded ([MaxFields], [MaxOptions]), what
// lies beyond can still be sent in the raw mode, references to other documents
// are never loaded, and every text is made visible before it is drawn. The
// package knows no catalog, no server and no way of sending anything.
package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"goblin/registry/keymap"
	"goblin/registry/rawjson"
	"goblin/tui/textfield"
	"goblin/tui/theme"
)

// Bounds of what is made of a server's definition.
const (
	MaxFields  = 512  // fields of a form
	MaxOptions = 4096 // options of a field
	maxOffered = 200  // completions shown; the protocol sends at most 100
)

// Spec describes a form.
type Spec struct {
	Intro  string
	Fields []Field
	// Schema validates the whole before it is submitted. One that does not
	// compile is noted on the form and checks nothing.
	Schema json.RawMessage
	Values json.RawMessage // an object to begin with
	Last   json.RawMessage // an object that C-r fills in
	// LastMeta is the _meta that C-r fills in, if the form has a row for it.
	LastMeta json.RawMessage
	Meta     bool // the raw mode has a row for _meta
	// Strings sends every value as a string: prompts and templates.
	Strings bool
	// Preview is computed from the values after each change and shown below the
	// fields, such as the expanded URI. It must be quick. Empty values are not in the map.
	Preview func(values map[string]string) string
	Submit  string // what the button says: "call", "get", "read", "answer"
	Danger  string // shown when set
	// Decline has buttons to submit, decline and cancel. Only they and C-s submit:
	// Enter in the last field goes on to them.
	Decline bool
	Actions keymap.Map // on the keys that they are on; nil: on those of their own
}

// Action is the user's decision.
type Action uint8

// What [Form.Update] and [Form.Click] report.
const (
	None      Action = iota
	Submitted        // Values are valid
	Cancelled
	Declined
)

// Completion asks for what could complete a field. The answer goes to
// [Form.ShowCompletions] with its Gen.
type Completion struct {
	Form         *Form
	Gen          int
	Field, Value string
	Others       map[string]string // the other fields that have a value
}

// Form is one form on one screen.
type Form struct {
	look    *theme.Theme
	spec    Spec
	actions map[string]string // what keys do

	top    []*field // the fields of the value itself
	fields []*field // those and what is open in them, in the order in which they stand
	count  fieldCount
	extra  []member // members of the value that no field shows
	focus  int      // a field, or a button when beyond them
	offset int      // the first line shown of what scrolls
	w      int      // of the last draw
	rows   []row    // the lines of the last draw
	dirty  bool

	intro          []string // wrapped for introW cells and introH lines
	introW, introH int

	failure string // what went wrong with the whole
	note    string // what cannot be checked
	check   *validator
	preview string

	raw       bool
	area      textfield.Field // the arguments in the raw mode
	areaErr   string
	meta      textfield.Field
	metaErr   string
	rawFocus  int                        // the arguments, _meta if there is one, the buttons
	rawValues map[*field]json.RawMessage // what the raw mode began with
	rawText   string                     // the text that it began with
	schema    schemaText                 // shown beside the arguments

	gen         *atomic.Int64 // of the last request; commands that wait share it
	completions []string
	total       int
	more        bool // the server has more than these
	chosen      int  // the index of the chosen completion, or -1
	unasked     bool // the field is empty
}

// New returns a form with the field in focus that has to be filled in first, or
// else the first one.
func New(lk *theme.Theme, s Spec) *Form {
	f := &Form{look: lk, spec: s, w: 80, chosen: -1, gen: new(atomic.Int64)}
	f.spec.Submit = cmp.Or(s.Submit, "submit")
	if s.Actions == nil {
		f.spec.Actions = keymap.Rebind(nil)
	}
	f.actions = make(map[string]string)
	for key, id := range f.spec.Actions.In(keymap.InForm) {
		f.actions[key] = strings.TrimPrefix(id, "form.")
	}
	seen := make(map[string]bool)
	for _, def := range s.Fields[:min(len(s.Fields), MaxFields)] {
		if !seen[def.Name] {
			seen[def.Name] = true
			f.top = append(f.top, newField(lk, def, nil, &f.count))
		}
	}
	f.updateFields()
	if len(s.Schema) > 0 {
		v, err := newValidator(s.Schema)
		if err != nil {
			f.note = "the schema is not checked: " + err.Error()
		}
		f.check = v
	}
	f.meta = textfield.New(lk)
	f.setValues(s.Values, func(fd *field, value json.RawMessage) {
		if value != nil {
			fd.setValue(value)
		}
	})
	f.focus = f.firstField()
	f.updatePreview()
	return f
}

// setValues calls set for each field with its member of an object, or nil. It keeps the
// members that no field shows.
func (f *Form) setValues(values json.RawMessage, set func(fd *field, value json.RawMessage)) {
	if extra, ok := assignMembers(f.top, values, set); ok {
		f.extra = extra
		f.updateFields()
	}
}

// maxMembers bounds the members of a value.
const maxMembers = 1 << 16

// IsEdited reports whether anything was edited.
func (f *Form) IsEdited() bool { return f.dirty }

// ShowError shows why the values were not taken, such as the server's words. The
// focus stays.
func (f *Form) ShowError(message string) { f.failure = message }

// Values are the arguments in the order of the fields, without optional ones
// that are empty, and _meta, which is nil if it is empty. The error is of the
// first value that is not valid.
func (f *Form) Values() (args, meta json.RawMessage, err error) {
	args, meta, wrong := f.collect()
	if len(wrong) > 0 {
		return nil, nil, errors.New(wrong[0].String())
	}
	return args, meta, nil
}

// metaName is the name of a problem of _meta.
const metaName = "_meta"

// collect returns the arguments, _meta and all problems in them.
func (f *Form) collect() (args, meta json.RawMessage, wrong []problem) {
	if f.raw {
		args, wrong = f.rawArguments()
	} else {
		args, wrong = f.arguments()
	}
	if len(wrong) == 0 {
		wrong = f.check.check(args)
		f.sortProblems(wrong)
	}
	if f.spec.Meta {
		if s := strings.TrimSpace(f.meta.Value()); s != "" {
			if err := checkObject(s); err != nil {
				wrong = append(wrong, problem{name: metaName, text: err.Error()})
			} else if meta = compact([]byte(s)); string(meta) == "{}" {
				meta = nil
			}
		}
	}
	return args, meta, wrong
}

// sortProblems sorts problems by the order of the fields, because validation walks a map.
// Problems of no field come last.
func (f *Form) sortProblems(wrong []problem) {
	at := make(map[string]int, len(f.top))
	for i, fd := range f.top {
		at[fd.Name] = i - len(f.top)
	}
	slices.SortStableFunc(wrong, func(a, b problem) int {
		return cmp.Or(cmp.Compare(at[a.name], at[b.name]), cmp.Compare(a.name, b.name))
	})
}

// arguments are the values of the fields and what they do not show.
func (f *Form) arguments() (json.RawMessage, []problem) {
	list, wrong := collectAll(f.top)
	if f.spec.Strings {
		list = slices.DeleteFunc(list, func(m member) bool { return isNull(m.value) })
		for i, m := range list {
			if !rawjson.IsString(m.value) && len(m.value) > 0 {
				list[i].value = rawjson.Quote(string(m.value))
			}
		}
	}
	return writeObject(append(list, f.extra...)), wrong
}

// submit checks everything. What is wrong stays under its field, and the first
// of those gets the focus.
func (f *Form) submit() Action {
	f.closeCompletions()
	_, _, wrong := f.collect()
	f.failure, f.areaErr, f.metaErr = "", "", ""
	for _, fd := range f.fields {
		fd.err, fd.stale = "", true
	}
	if len(wrong) == 0 {
		return Submitted
	}
	target := -1
	for _, p := range wrong {
		at := f.showProblem(p)
		if at >= 0 && (target < 0 || at < target) {
			target = at
		}
	}
	if target >= 0 {
		f.focusOn(target)
	}
	return None
}

// showProblem shows a problem at its field and returns the stop of that field, or -1.
func (f *Form) showProblem(p problem) int {
	if p.name == metaName && f.spec.Meta {
		f.metaErr = p.text
		if f.raw {
			return 1
		}
		f.failure = "_meta: " + p.text
		return -1
	}
	if f.raw {
		if f.areaErr == "" {
			f.areaErr = p.String()
		}
		return 0
	}
	at, rest := f.findField(p)
	if i := slices.Index(f.fields, at); i >= 0 {
		text := p.text
		if len(rest) > 0 {
			text = "at /" + strings.Join(rest, "/") + ": " + text
		}
		at.err = cmp.Or(at.err, text)
		return i
	}
	if f.failure == "" {
		f.failure = p.String()
	}
	return -1
}

// afterEdit marks the form as edited and updates what depends on the values.
func (f *Form) afterEdit() {
	f.dirty = true
	if fd := f.currentField(); fd != nil && fd.isNested() {
		f.updateFields()
	}
	f.updatePreview()
}

// updatePreview computes the preview.
func (f *Form) updatePreview() {
	if f.spec.Preview != nil {
		f.preview = f.spec.Preview(f.texts(nil))
	}
}

// texts returns the values as text, without empty ones and without the field but.
func (f *Form) texts(but *field) map[string]string {
	values := make(map[string]string, len(f.top))
	for _, fd := range f.top {
		if s := fd.plainText(); s != "" && fd != but {
			values[fd.Name] = s
		}
	}
	return values
}

// SetTheme draws the form in another look; what is typed stays.
func (f *Form) SetTheme(lk *theme.Theme) {
	f.look = lk
	f.area.SetTheme(lk)
	f.meta.SetTheme(lk)
	for _, top := range f.top {
		for fd := range top.all() {
			fd.look, fd.stale = lk, true
			fd.text.SetTheme(lk)
			fd.filter.SetTheme(lk)
		}
	}
	f.introW = 0 // it is wrapped anew
}
