package form

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/textfield"
)

// completionDelay is the pause in typing before completions are requested.
const completionDelay = 150 * time.Millisecond

// Update handles keys and ignores other messages. The command, if any, returns a
// [Completion].
func (f *Form) Update(msg tea.Msg) (Action, tea.Cmd) {
	k, ok := msg.(tea.KeyMsg)
	if !ok {
		return None, nil
	}
	before := f.currentField()
	action, cmd := f.handleKey(k)
	if cmd == nil && action == None && f.currentField() != before {
		cmd = f.completeOnEntry()
	}
	return action, cmd
}

func (f *Form) handleKey(k tea.KeyMsg) (Action, tea.Cmd) {
	f.markStale(f.focus)
	defer func() { f.markStale(f.focus) }()
	if k.Alt && (k.Type == tea.KeyUp || k.Type == tea.KeyDown) {
		k = tea.KeyMsg{Type: map[tea.KeyType]tea.KeyType{tea.KeyUp: tea.KeyShiftUp, tea.KeyDown: tea.KeyShiftDown}[k.Type]}
	}
	if k.Alt && (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) {
		// Escape and a key typed quickly after it arrive as one.
		if f.actions["esc"] == doCancel && f.escape() == Cancelled {
			return Cancelled, nil
		}
		k.Alt = false
	}
	do := f.actions[keys.KeyName(k)]
	if f.formKey(do) {
		return None, nil
	}
	switch do {
	case doSubmit:
		return f.submit(), nil
	case doCancel:
		return f.escape(), nil
	case doNext:
		if f.hasCompletions() && f.takeCompletion() {
			return None, nil
		}
		f.moveFocus(1)
		return None, nil
	case doPrevious:
		f.moveFocus(-1)
		return None, nil
	}
	if b := f.focusedButton(); b >= 0 {
		return f.buttonKey(do, b), nil
	}
	if f.raw {
		f.rawKey(k, do)
		return None, nil
	}
	return f.fieldKey(k, do)
}

// Actions of keys: ids of goblin/registry/keymap after the dot.
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
	doSaveCall           = "save-call" // of the owner
)

// asText translates a rebound action to the key that a text field expects.
func asText(k tea.KeyMsg, do string) tea.KeyMsg {
	own := map[string]tea.KeyType{doUp: tea.KeyUp, doDown: tea.KeyDown, doLeft: tea.KeyLeft, doRight: tea.KeyRight}
	if t, ok := own[do]; ok {
		return tea.KeyMsg{Type: t}
	}
	return k
}

// formKey reports whether it used the key.
func (f *Form) formKey(do string) bool {
	switch {
	case do == doRaw && f.raw:
		f.leaveRawMode()
	case do == doRaw:
		f.enterRawMode()
	case do == doLast:
		f.fillLast()
	case do == doMembers:
		f.allFields()
	case do == doSchemaUp, do == doSchemaDown:
		f.pageSchema(do == doSchemaDown)
	default:
		return false
	}
	return true
}

func (f *Form) markStale(i int) {
	if i < len(f.fields) {
		f.fields[i].stale = true
	}
}

// escape closes completions or the filter, or cancels the form.
func (f *Form) escape() Action {
	if f.hasCompletions() {
		f.closeCompletions()
		return None
	}
	if fd := f.currentField(); fd != nil && fd.filter.Value() != "" {
		fd.filter.SetValue("")
		fd.filterOptions()
		return None
	}
	return Cancelled
}

// stopCount returns the number of focus stops before the buttons.
func (f *Form) stopCount() int {
	switch {
	case !f.raw:
		return len(f.fields)
	case f.spec.Meta:
		return 2
	default:
		return 1
	}
}

func (f *Form) focused() int {
	if f.raw {
		return f.rawFocus
	}
	return f.focus
}

func (f *Form) currentField() *field {
	if f.raw || f.focus >= len(f.fields) {
		return nil
	}
	return f.fields[f.focus]
}

func (f *Form) focusedButton() int {
	return max(f.focused()-f.stopCount(), -1)
}

// ButtonFocused reports whether a button has the focus.
func (f *Form) ButtonFocused() bool { return f.focusedButton() >= 0 }

func (f *Form) buttons() ([]string, []Action) {
	if f.spec.Decline {
		return []string{f.spec.Submit, "decline", "cancel"}, []Action{Submitted, Declined, Cancelled}
	}
	return []string{f.spec.Submit, "cancel"}, []Action{Submitted, Cancelled}
}

func (f *Form) moveFocus(d int) {
	labels, _ := f.buttons()
	n := f.stopCount() + len(labels)
	i := (f.focused() + d + n) % n
	for !f.raw && i < len(f.fields) && !f.fields[i].takesFocus() {
		i = (i + d + n) % n
	}
	f.focusOn(i)
}

// focusOn moves the focus to a stop and verifies the previous field.
func (f *Form) focusOn(i int) {
	if f.raw {
		f.rawFocus = i
		return
	}
	if i == f.focus {
		return
	}
	f.closeCompletions()
	if fd := f.currentField(); fd != nil {
		if fd.err == "" {
			_ = fd.verify(false) // shows the problem
		}
		if fd.filter.Value() != "" {
			fd.filter.SetValue("")
			fd.filterOptions()
		}
	}
	f.markStale(f.focus)
	f.focus = i
	f.markStale(i)
	if fd := f.currentField(); fd != nil {
		fd.cursorMoved = false
	}
}

func (f *Form) pressButton(b int) Action {
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
		return f.pressButton(b)
	case do == doUp, do == doLeft && b > 0:
		f.moveFocus(-1)
	case do == doDown, do == doRight && b < len(labels)-1:
		f.moveFocus(1)
	}
	return None
}

func (f *Form) rawKey(k tea.KeyMsg, do string) {
	if f.rawFocus > 0 {
		switch do {
		case doEnter, doDown:
			f.moveFocus(1)
		case doUp:
			f.moveFocus(-1)
		default:
			if f.meta.Update(asText(k, do)) {
				f.dirty, f.metaErr = true, ""
			}
		}
		return
	}
	if !f.leaveArea(&f.area, k, do) && f.area.Update(asText(k, do)) {
		f.dirty, f.areaErr = true, ""
	}
}

// leaveArea moves the focus out of a multi-line field at its edge, or on Enter without a
// line break. It reports whether it did.
func (f *Form) leaveArea(e *textfield.Field, k tea.KeyMsg, do string) bool {
	row, _ := e.Cursor()
	switch {
	case do == doUp && row == 0:
		f.moveFocus(-1)
	case do == doDown && row == len(e.Rows())-1, do == doEnter && k.Type != tea.KeyEnter:
		f.moveFocus(1)
	default:
		return false
	}
	return true
}

func (f *Form) fieldKey(k tea.KeyMsg, do string) (Action, tea.Cmd) {
	fd := f.currentField()
	if f.hasCompletions() && f.completionKey(do) || f.itemKey(fd, do) {
		return None, nil
	}
	if fd.kind == Object || fd.kind == Array {
		return f.nestedKey(fd, do), nil
	}
	if fd.isChoice() {
		return f.optionKey(fd, k, do), nil
	}
	f.widenForPaste(fd, k)
	switch {
	case fd.text.Multi():
		if f.leaveArea(&fd.text, k, do) {
			return None, nil
		}
	case do == doEnter:
		return f.nextField(), nil
	case do == doUp:
		f.moveFocus(-1)
		return None, nil
	case do == doDown:
		f.moveFocus(1)
		return None, nil
	case do == doLines && fd.canHaveLines() && !f.spec.Strings:
		f.widen(fd)
		k = tea.KeyMsg{Type: tea.KeyEnter}
	case do == doComplete && fd.canComplete():
		return None, f.requestCompletion(fd, 0)
	}
	if !fd.typeKey(asText(k, do)) {
		return None, nil
	}
	f.afterEdit()
	if fd.canComplete() {
		return None, f.requestCompletion(fd, completionDelay)
	}
	return None, nil
}

func (f *field) canHaveLines() bool { return f.kind == Text && !f.OneLine }

func (f *Form) widenForPaste(fd *field, k tea.KeyMsg) {
	if textfield.HasLineBreaks(k) && fd.canHaveLines() && !fd.text.Multi() {
		f.closeCompletions()
		f.widen(fd)
	}
}

// itemKey handles keys that add, remove and move list items, from any field in them. It
// reports whether it used the key.
func (f *Form) itemKey(fd *field, do string) bool {
	list, item := fd.enclosingArray()
	if fd.kind == Array && do == doAdd {
		f.insertItem(fd, len(fd.children))
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
		f.moveLine(fd, by)
	case list == nil:
		return false
	case by != 0:
		f.moveItem(list, item, by)
	case do == doAdd:
		f.insertItem(list, slices.Index(list.children, item)+1)
	case do == doRemove:
		f.removeItem(list, item)
	default:
		return false
	}
	return true
}

func (f *Form) moveLine(fd *field, by int) {
	row, col := fd.text.Cursor()
	rows := slices.Clone(fd.text.Rows())
	to := row + by
	if to < 0 || to >= len(rows) {
		return
	}
	rows[row], rows[to] = rows[to], rows[row]
	fd.text.SetValue(strings.Join(rows, "\n"))
	fd.text.MoveTo(to, col)
	fd.afterChange()
	f.afterEdit()
}

func (f *Form) nestedKey(fd *field, do string) Action {
	switch {
	case do == doEnter:
		return f.nextField()
	case do == doUp:
		f.moveFocus(-1)
	case do == doDown:
		f.moveFocus(1)
	case do == doToggle, do == doRight && !fd.open && fd.kind == Object, (do == doLeft || do == doEmpty) && fd.open:
		f.toggleNested(fd)
	}
	return None
}

// widen makes a field multi-line and keeps the cursor.
func (f *Form) widen(fd *field) {
	_, col := fd.text.Cursor()
	fd.setText(fd.text.Value(), true)
	fd.text.MoveTo(0, col)
}

func (f *Form) nextField() Action {
	if f.focus == len(f.fields)-1 && !f.spec.Decline {
		return f.submit()
	}
	f.moveFocus(1)
	return None
}

func (f *Form) optionKey(fd *field, k tea.KeyMsg, do string) Action {
	line := fd.kind == Bool || fd.fitsLine(f.valueWidth())
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 && !k.Paste && line {
		// Fast typing arrives as one message; only spaces matter.
		if f.actions[" "] == doToggle {
			for range strings.Count(string(k.Runes), " ") {
				f.toggle(fd)
			}
		}
		return None
	}
	if do == doEnter {
		if !line && fd.kind != MultiEnum && fd.cursorMoved && len(fd.matches) > 0 {
			fd.choose(fd.cursor, false)
			f.afterEdit()
		}
		return f.nextField()
	}
	f.chooseKey(fd, k, do, line)
	return None
}

// line means that the options are on one line.
func (f *Form) chooseKey(fd *field, k tea.KeyMsg, do string, line bool) {
	switch {
	case do == doUp || do == doDown:
		step := 1
		if do == doUp {
			step = -1
		}
		if line || !fd.moveCursor(step) {
			f.moveFocus(step)
		}
	case do == doToggle:
		f.toggle(fd)
	case line && (do == doLeft || do == doRight):
		f.sideways(fd, do == doRight)
	case do == doEmpty && fd.filter.Value() == "" && fd.kind != MultiEnum:
		fd.clearChoice()
		f.afterEdit()
	case !line && fd.filter.Update(asText(k, do)):
		fd.filterOptions()
		if len(fd.matches) > 0 {
			fd.cursor, fd.cursorMoved = fd.matches[0], true
		}
	}
}

func (f *Form) toggle(fd *field) {
	switch {
	case fd.kind == Bool && fd.selected[0]:
		fd.choose(1, false)
	case fd.kind == Bool:
		fd.choose(0, false)
	case len(fd.matches) == 0:
		return
	default:
		fd.choose(fd.cursor, true)
	}
	f.afterEdit()
}

// sideways moves among the options of a line and, except in a MultiEnum, chooses.
func (f *Form) sideways(fd *field, right bool) {
	if fd.kind == Bool {
		f.toggle(fd)
		return
	}
	d := -1
	if right {
		d = 1
	}
	if fd.kind != MultiEnum && !slices.Contains(fd.selected, true) {
		f.toggle(fd)
		return
	}
	if fd.moveCursor(d) && fd.kind != MultiEnum {
		fd.choose(fd.cursor, false)
		f.afterEdit()
	}
}
