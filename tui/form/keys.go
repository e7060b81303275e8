package form

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/textfield"
)

// pause is how long the typing rests before completions are asked for.
const pause = 150 * time.Millisecond

// Update handles a message; only keys concern a form. The command, if there is
// one, ends in a [Completion].
func (f *Form) Update(msg tea.Msg) (Action, tea.Cmd) {
	k, ok := msg.(tea.KeyMsg)
	if !ok {
		return None, nil
	}
	before := f.current()
	action, cmd := f.key(k)
	if cmd == nil && action == None && f.current() != before {
		cmd = f.entered()
	}
	return action, cmd
}

func (f *Form) key(k tea.KeyMsg) (Action, tea.Cmd) {
	f.soil(f.focus)
	defer func() { f.soil(f.focus) }()
	if k.Alt && (k.Type == tea.KeyUp || k.Type == tea.KeyDown) {
		k = tea.KeyMsg{Type: map[tea.KeyType]tea.KeyType{tea.KeyUp: tea.KeyShiftUp, tea.KeyDown: tea.KeyShiftDown}[k.Type]}
	}
	if k.Alt && (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) {
		// Escape and a key typed quickly after it arrive as one.
		if f.on["esc"] == doCancel && f.escape() == Cancelled {
			return Cancelled, nil
		}
		k.Alt = false
	}
	do := f.on[keys.Name(k)]
	if f.wholeKey(do) {
		return None, nil
	}
	switch do {
	case doSubmit:
		return f.submit(), nil
	case doCancel:
		return f.escape(), nil
	case doNext:
		if f.offering() && f.take() {
			return None, nil
		}
		f.move(1)
		return None, nil
	case doPrevious:
		f.move(-1)
		return None, nil
	}
	if b := f.button(); b >= 0 {
		return f.buttonKey(do, b), nil
	}
	if f.raw {
		f.rawKey(k, do)
		return None, nil
	}
	return f.fieldKey(k, do)
}

// What keys do, by the ids of goblin/registry/keymap after their dot.
const (
	doNext, doPrevious   = "next", "previous"
	doUp, doDown         = "up", "down"
	doLeft, doRight      = "left", "right"
	doEnter, doToggle    = "enter", "toggle"
	doEmpty              = "empty"
	doComplete, doLines  = "complete", "lines"
	doSubmit, doCancel   = "submit", "cancel"
	doRaw, doLast        = "raw", "last"
	doAdd, doRemove      = "add", "remove"
	doMoveUp, doMoveDown = "move-up", "move-down"
	doMembers            = "members"
	doSchemaUp           = "schema-up"
	doSchemaDown         = "schema-down"
)

// asText is a key for a text, which knows the keys that the actions have by themselves.
func asText(k tea.KeyMsg, do string) tea.KeyMsg {
	own := map[string]tea.KeyType{doUp: tea.KeyUp, doDown: tea.KeyDown, doLeft: tea.KeyLeft, doRight: tea.KeyRight}
	if t, ok := own[do]; ok {
		return tea.KeyMsg{Type: t}
	}
	return k
}

// wholeKey is for keys that concern the whole form.
func (f *Form) wholeKey(do string) bool {
	switch {
	case do == doRaw && f.raw:
		f.toFields()
	case do == doRaw:
		f.toRaw()
	case do == doLast:
		f.last()
	case do == doMembers:
		f.allFields()
	case do == doSchemaUp, do == doSchemaDown:
		f.page(do == doSchemaDown)
	default:
		return false
	}
	return true
}

// soil has a field drawn again.
func (f *Form) soil(i int) {
	if i < len(f.fields) {
		f.fields[i].stale = true
	}
}

// escape closes what is open, or the form.
func (f *Form) escape() Action {
	if f.offering() {
		f.close()
		return None
	}
	if fd := f.current(); fd != nil && fd.filter.Value() != "" {
		fd.filter.Set("")
		fd.narrow()
		return None
	}
	return Cancelled
}

// stops is how many stops there are before the buttons.
func (f *Form) stops() int {
	switch {
	case !f.raw:
		return len(f.fields)
	case f.spec.Meta:
		return 2
	default:
		return 1
	}
}

// at is the stop that has the focus.
func (f *Form) at() int {
	if f.raw {
		return f.rawFocus
	}
	return f.focus
}

// current is the field with the focus, if one has it.
func (f *Form) current() *field {
	if f.raw || f.focus >= len(f.fields) {
		return nil
	}
	return f.fields[f.focus]
}

// button is which button has the focus; -1 is none.
func (f *Form) button() int {
	return max(f.at()-f.stops(), -1)
}

// OnButton reports whether a button has the focus.
func (f *Form) OnButton() bool { return f.button() >= 0 }

// buttons returns the buttons' texts and actions.
func (f *Form) buttons() ([]string, []Action) {
	if f.spec.Decline {
		return []string{f.spec.Submit, "decline", "cancel"}, []Action{Submitted, Declined, Cancelled}
	}
	return []string{f.spec.Submit, "cancel"}, []Action{Submitted, Cancelled}
}

// move walks the stops in a circle.
func (f *Form) move(d int) {
	labels, _ := f.buttons()
	n := f.stops() + len(labels)
	i := (f.at() + d + n) % n
	for !f.raw && i < len(f.fields) && !f.fields[i].stop() {
		i = (i + d + n) % n
	}
	f.to(i)
}

// to gives a stop the focus. The field that is left says what is wrong with it.
func (f *Form) to(i int) {
	if f.raw {
		f.rawFocus = i
		return
	}
	if i == f.focus {
		return
	}
	f.close()
	if fd := f.current(); fd != nil {
		if fd.err == "" {
			_ = fd.verify(false) // shown under the field
		}
		if fd.filter.Value() != "" {
			fd.filter.Set("")
			fd.narrow()
		}
	}
	f.soil(f.focus)
	f.focus = i
	f.soil(i)
	if fd := f.current(); fd != nil {
		fd.moved = false
	}
}

func (f *Form) press(b int) Action {
	_, actions := f.buttons()
	if actions[b] == Submitted {
		return f.submit()
	}
	return actions[b]
}

func (f *Form) buttonKey(do string, b int) Action {
	labels, _ := f.buttons()
	switch {
	case do == doEnter, do == doToggle:
		return f.press(b)
	case do == doUp, do == doLeft && b > 0:
		f.move(-1)
	case do == doDown, do == doRight && b < len(labels)-1:
		f.move(1)
	}
	return None
}

func (f *Form) rawKey(k tea.KeyMsg, do string) {
	if f.rawFocus > 0 {
		switch do {
		case doEnter, doDown:
			f.move(1)
		case doUp:
			f.move(-1)
		default:
			if f.meta.Update(asText(k, do)) {
				f.dirty, f.metaErr = true, ""
			}
		}
		return
	}
	if !f.leave(&f.area, k, do) && f.area.Update(asText(k, do)) {
		f.dirty, f.areaErr = true, ""
	}
}

// leave walks out of an area when the cursor is at its edge already, or by a key that
// ends no line in it.
func (f *Form) leave(e *textfield.Text, k tea.KeyMsg, do string) bool {
	row, _ := e.Cursor()
	switch {
	case do == doUp && row == 0:
		f.move(-1)
	case do == doDown && row == len(e.Rows())-1, do == doEnter && k.Type != tea.KeyEnter:
		f.move(1)
	default:
		return false
	}
	return true
}

func (f *Form) fieldKey(k tea.KeyMsg, do string) (Action, tea.Cmd) {
	fd := f.current()
	if f.offering() && f.offerKey(do) || f.itemKey(fd, do) {
		return None, nil
	}
	if fd.kind == Object || fd.kind == Array {
		return f.nestedKey(fd, do), nil
	}
	if fd.isChoice() {
		return f.optionKey(fd, k, do), nil
	}
	f.widenFor(fd, k)
	switch {
	case fd.text.Multi():
		if f.leave(&fd.text, k, do) {
			return None, nil
		}
	case do == doEnter:
		return f.next(), nil
	case do == doUp:
		f.move(-1)
		return None, nil
	case do == doDown:
		f.move(1)
		return None, nil
	case do == doLines && fd.mayHaveLines() && !f.spec.Strings:
		f.widen(fd)
		k = tea.KeyMsg{Type: tea.KeyEnter}
	case do == doComplete && fd.completes():
		return None, f.ask(fd, 0)
	}
	if !fd.typeKey(asText(k, do)) {
		return None, nil
	}
	f.edited()
	if fd.completes() {
		return None, f.ask(fd, pause)
	}
	return None, nil
}

// mayHaveLines reports whether a field's text may have more lines than one.
func (f *field) mayHaveLines() bool { return f.kind == Text && !f.OneLine }

// widenFor makes an area of a field for lines that are pasted.
func (f *Form) widenFor(fd *field, k tea.KeyMsg) {
	if textfield.Breaks(k) && fd.mayHaveLines() && !fd.text.Multi() {
		f.close()
		f.widen(fd)
	}
}

// itemKey is for keys that put in, take out and move the items of lists, from anywhere
// in them.
func (f *Form) itemKey(fd *field, do string) bool {
	list, item := fd.array()
	if fd.kind == Array && do == doAdd {
		f.insert(fd, len(fd.kids))
		return true
	}
	by := 0
	switch do {
	case doMoveUp:
		by = -1
	case doMoveDown:
		by = 1
	}
	switch {
	case by != 0 && fd.kind == List:
		f.shiftLine(fd, by)
	case list == nil:
		return false
	case by != 0:
		f.shift(list, item, by)
	case do == doAdd:
		f.insert(list, slices.Index(list.kids, item)+1)
	case do == doRemove:
		f.remove(list, item)
	default:
		return false
	}
	return true
}

// shiftLine moves the line with the cursor among the others of a list.
func (f *Form) shiftLine(fd *field, by int) {
	row, col := fd.text.Cursor()
	rows := slices.Clone(fd.text.Rows())
	to := row + by
	if to < 0 || to >= len(rows) || len(rows) > textfield.MaxLines {
		return
	}
	rows[row], rows[to] = rows[to], rows[row]
	fd.text.Set(strings.Join(rows, "\n"))
	fd.text.To(to, col)
	fd.changed()
	f.edited()
}

// nestedKey is for the line of an object or a list.
func (f *Form) nestedKey(fd *field, do string) Action {
	switch {
	case do == doEnter:
		return f.next()
	case do == doUp:
		f.move(-1)
	case do == doDown:
		f.move(1)
	case do == doToggle, do == doRight && !fd.open && fd.kind == Object, (do == doLeft || do == doEmpty) && fd.open:
		f.act(fd)
	}
	return None
}

// widen turns a line into an area, with the cursor where it is.
func (f *Form) widen(fd *field) {
	_, col := fd.text.Cursor()
	fd.edit(fd.text.Value(), true)
	fd.text.To(0, col)
}

// next goes on after a field: to the next, or to submitting.
func (f *Form) next() Action {
	if f.focus == len(f.fields)-1 && !f.spec.Decline {
		return f.submit()
	}
	f.move(1)
	return None
}

// optionKey is for fields that are chosen.
func (f *Form) optionKey(fd *field, k tea.KeyMsg, do string) Action {
	line := fd.kind == Bool || fd.inLine(f.room())
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 && !k.Paste && line {
		// Keys typed quickly arrive as one; only spaces mean anything here.
		if f.on[" "] == doToggle {
			for range strings.Count(string(k.Runes), " ") {
				f.toggle(fd)
			}
		}
		return None
	}
	if do == doEnter {
		if !line && fd.kind != Several && fd.moved && len(fd.passed) > 0 {
			fd.choose(fd.hot, false)
			f.edited()
		}
		return f.next()
	}
	f.chooseKey(fd, k, do, line)
	return None
}

// chooseKey is for the keys that walk and choose options, which are in a line
// or a list.
func (f *Form) chooseKey(fd *field, k tea.KeyMsg, do string, line bool) {
	switch {
	case do == doUp || do == doDown:
		step := 1
		if do == doUp {
			step = -1
		}
		if line || !fd.walk(step) {
			f.move(step)
		}
	case do == doToggle:
		f.toggle(fd)
	case line && (do == doLeft || do == doRight):
		f.sideways(fd, do == doRight)
	case do == doEmpty && fd.filter.Value() == "" && fd.kind != Several:
		fd.empty()
		f.edited()
	case !line && fd.filter.Update(asText(k, do)):
		fd.narrow()
		if len(fd.passed) > 0 {
			fd.hot, fd.moved = fd.passed[0], true
		}
	}
}

// toggle handles Space.
func (f *Form) toggle(fd *field) {
	switch {
	case fd.kind == Bool:
		fd.flip()
	case len(fd.passed) == 0:
		return
	default:
		fd.choose(fd.hot, true)
	}
	f.edited()
}

// sideways walks the options of a line; in an Enum the choice goes along.
func (f *Form) sideways(fd *field, right bool) {
	if fd.kind == Bool {
		f.toggle(fd)
		return
	}
	d := -1
	if right {
		d = 1
	}
	if fd.kind != Several && !slices.Contains(fd.picked, true) {
		f.toggle(fd)
		return
	}
	if fd.walk(d) && fd.kind != Several {
		fd.choose(fd.hot, false)
		f.edited()
	}
}
