// Package form builds and validates input forms from JSON Schemas, prompts and URI
// templates.
//
// A [Form] does no I/O, never blocks and has no global state. Its methods must run on the
// goroutine of its UI's Update and View. Only the [tea.Cmd] that waits for a pause in
// typing runs elsewhere; it shares one atomic number with the form.
//
// Schemas, prompt definitions and completions come from servers and are untrusted. Their
// size is limited ([MaxFields], [MaxOptions]); the raw mode can still send the rest.
// References to other documents are never loaded, and all text is sanitized before it is
// drawn. The package must not import the catalog or send requests.
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

// Limits for definitions from servers.
const (
	MaxFields  = 512  // fields of a form
	MaxOptions = 4096 // options of a field
	maxOffered = 200  // shown; the protocol allows 100 per response
)

// Spec describes a form.
type Spec struct {
	Intro  string
	Fields []Field
	// Schema validates the arguments before they are submitted. If it doesn't compile,
	// the form says so and checks nothing.
	Schema json.RawMessage
	Values json.RawMessage // initial object
	Last   json.RawMessage // object that C-r fills in
	// LastMeta is the _meta for C-r if Meta is set.
	LastMeta json.RawMessage
	Meta     bool // the raw mode has a row for _meta
	// Strings sends every value as a string, for prompts and templates.
	Strings bool
	// Preview returns a text below the fields, such as the expanded URI. It runs after
	// each change and must be quick. The map has no empty values.
	Preview func(values map[string]string) string
	// Saves shows the key of the owner that saves the values as a call.
	Saves bool
	// Variables allows texts with ${NAME} as values of any type. The schema does not
	// apply to members that hold one.
	Variables bool
	Submit    string // button label: "call", "get", "read", "answer"
	Danger    string // optional warning
	// Decline adds a decline button. Enter in the last field then moves to the buttons
	// instead of submitting.
	Decline bool
	Actions keymap.Map // nil means the default keys
}

// Action is the result of input to a form.
type Action uint8

// Values of [Action].
const (
	None      Action = iota
	Submitted        // the values are valid
	Cancelled
	Declined
)

// Completion requests completions of a field; pass the answer to [Form.ShowCompletions]
// with Gen.
type Completion struct {
	Form         *Form
	Gen          int
	Field, Value string
	Others       map[string]string // with a value
}

// Form is a form in one UI.
type Form struct {
	look    *theme.Theme
	spec    Spec
	actions map[string]string // by key

	top    []*field // fields of the top level
	fields []*field // visible fields, in order
	count  fieldCount
	extra  []member // members of the value without a field
	focus  int      // index of a field or, beyond them, a button
	offset int      // first visible line of the scrolling part
	w      int      // of the last draw
	rows   []row    // of the last draw
	dirty  bool

	intro          []string // wrapped for introW cells and introH lines
	introW, introH int

	failure string // of the whole form
	note    string // why the schema is not checked
	check   *validator
	preview string

	raw       bool
	area      textfield.Field // the arguments in the raw mode
	areaErr   string
	meta      textfield.Field
	metaErr   string
	rawFocus  int                        // the arguments, _meta if enabled, the buttons
	rawValues map[*field]json.RawMessage // on entering the raw mode
	rawText   string                     // on entering the raw mode
	schema    schemaText                 // shown beside the arguments

	gen         *atomic.Int64 // of the last request; shared with waiting commands
	completions []string
	total       int
	more        bool // the server has more
	chosen      int  // index, or -1
	unasked     bool // the field is empty
}

// New returns a form that focuses the first required field without a value, or the first
// field.
func New(lk *theme.Theme, s Spec) *Form {
	f := &Form{look: lk, spec: s, w: 80, chosen: -1, gen: new(atomic.Int64)}
	f.count.variables = s.Variables
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
			f.note = "values are not checked against the schema: " + err.Error()
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

// setValues calls set for each field with its member of an object, or nil, and stores the
// other members.
func (f *Form) setValues(values json.RawMessage, set func(fd *field, value json.RawMessage)) {
	if extra, ok := assignMembers(f.top, values, set); ok {
		f.extra = extra
		f.updateFields()
	}
}

const maxMembers = 1 << 16

// IsEdited reports whether the user changed anything.
func (f *Form) IsEdited() bool { return f.dirty }

// FocusSubmit moves the focus to the button that submits.
func (f *Form) FocusSubmit() { f.focusOn(f.stopCount()) }

// Focus moves the focus to a field of the top level.
func (f *Form) Focus(name string) {
	for i, fd := range f.fields {
		if fd.parent == nil && fd.Name == name {
			f.focusOn(i)
		}
	}
}

// Text returns the input as JSON text, which may be invalid. It switches to the raw mode.
func (f *Form) Text() string {
	if !f.raw {
		f.enterRawMode()
	}
	return f.area.Value()
}

// ShowError shows an error and keeps the focus.
func (f *Form) ShowError(message string) { f.failure = message }

// Values returns the arguments in the order of the fields without empty ones, and _meta
// or nil. It fails for the first invalid value.
func (f *Form) Values() (args, meta json.RawMessage, err error) {
	args, meta, wrong := f.collect()
	if len(wrong) > 0 {
		return nil, nil, errors.New(wrong[0].String())
	}
	return args, meta, nil
}

const metaName = "_meta"

func (f *Form) collect() (args, meta json.RawMessage, wrong []problem) {
	if f.raw {
		args, wrong = f.rawArguments()
	} else {
		args, wrong = f.arguments()
	}
	if len(wrong) == 0 {
		wrong = f.check.check(args)
		if f.spec.Variables {
			wrong = slices.DeleteFunc(wrong, func(p problem) bool { return strings.Contains(string(rawjson.Get(args, p.name)), "${") })
		}
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
func (f *Form) sortProblems(wrong []problem) {
	at := make(map[string]int, len(f.top))
	for i, fd := range f.top {
		at[fd.Name] = i - len(f.top)
	}
	slices.SortStableFunc(wrong, func(a, b problem) int {
		return cmp.Or(cmp.Compare(at[a.name], at[b.name]), cmp.Compare(a.name, b.name))
	})
}

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

// submit checks everything and focuses the first problem.
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

// showProblem shows a problem at its field and returns that field's stop, or -1.
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

func (f *Form) afterEdit() {
	f.dirty = true
	if fd := f.currentField(); fd != nil && fd.isNested() {
		f.updateFields()
	}
	f.updatePreview()
}

// maxPasted are the maximum pastes into text and into a field of one line, in characters.
const (
	maxPasted     = 1 << 20
	maxPastedLine = 10_000
)

// maxListItems is the longest list that is edited as lines of text.
const maxListItems = 9000

// PasteLimit returns the maximum paste into the focused field, in characters.
func (f *Form) PasteLimit() int {
	if fd := f.currentField(); f.raw && f.rawFocus == 0 || fd != nil && fd.kind == Text && !fd.OneLine || fd != nil && fd.text.Multi() {
		return maxPasted
	}
	return maxPastedLine
}

func (f *Form) updatePreview() {
	if f.spec.Preview != nil {
		f.preview = f.spec.Preview(f.texts(nil))
	}
}

// texts returns the non-empty values as text, except that of the field but.
func (f *Form) texts(but *field) map[string]string {
	values := make(map[string]string, len(f.top))
	for _, fd := range f.top {
		if s := fd.plainText(); s != "" && fd != but {
			values[fd.Name] = s
		}
	}
	return values
}

// SetTheme changes the theme; input stays.
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
	f.introW = 0 // forces a new layout
}
