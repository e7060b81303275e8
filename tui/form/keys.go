package form

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/rawjson"
	"goblin/tui/edit"
	"goblin/tui/keys"
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
	f.soil(f.focus)
	defer func() { f.soil(f.focus) }()
	if k.Alt && (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) {
		// Escape and a key typed quickly after it arrive as one.
		if f.escape() == Cancelled {
			return Cancelled, nil
		}
		k.Alt = false
	}
	switch k.Type {
	case tea.KeyCtrlS:
		return f.submit(), nil
	case tea.KeyCtrlE:
		if f.raw {
			f.toFields()
		} else {
			f.toRaw()
		}
		return None, nil
	case tea.KeyCtrlR:
		f.last()
		return None, nil
	case tea.KeyEsc:
		return f.escape(), nil
	case tea.KeyTab:
		if f.offering() && f.take() {
			return None, nil
		}
		f.move(1)
		return None, nil
	case tea.KeyShiftTab:
		f.move(-1)
		return None, nil
	}
	if b := f.button(); b >= 0 {
		return f.buttonKey(k, b), nil
	}
	if f.raw {
		f.rawKey(k)
		return None, nil
	}
	return f.fieldKey(k)
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

// buttons are what the buttons say and do.
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
	f.to((f.at() + d + n) % n)
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

func (f *Form) buttonKey(k tea.KeyMsg, b int) Action {
	labels, _ := f.buttons()
	switch {
	case k.Type == tea.KeyEnter, isSpace(k):
		return f.press(b)
	case k.Type == tea.KeyUp, k.Type == tea.KeyLeft && b > 0:
		f.move(-1)
	case k.Type == tea.KeyDown, k.Type == tea.KeyRight && b < len(labels)-1:
		f.move(1)
	}
	return None
}

func isSpace(k tea.KeyMsg) bool {
	return !k.Paste && (k.Type == tea.KeySpace || k.Type == tea.KeyRunes && string(k.Runes) == " ")
}

func (f *Form) rawKey(k tea.KeyMsg) {
	if f.rawFocus > 0 {
		switch k.Type {
		case tea.KeyEnter, tea.KeyDown:
			f.move(1)
		case tea.KeyUp:
			f.move(-1)
		default:
			if f.meta.Update(k) {
				f.dirty, f.metaErr = true, ""
			}
		}
		return
	}
	if !f.leave(&f.area, k) && f.area.Update(k) {
		f.dirty, f.areaErr = true, ""
	}
}

// leave walks out of an area when the cursor is at its edge already.
func (f *Form) leave(e *edit.Text, k tea.KeyMsg) bool {
	row, _ := e.Cursor()
	switch {
	case k.Type == tea.KeyUp && row == 0:
		f.move(-1)
	case k.Type == tea.KeyDown && row == len(e.Rows())-1:
		f.move(1)
	default:
		return false
	}
	return true
}

func (f *Form) fieldKey(k tea.KeyMsg) (Action, tea.Cmd) {
	fd := f.current()
	if f.offering() && f.offerKey(k) {
		return None, nil
	}
	if fd.isChoice() {
		return f.optionKey(fd, k), nil
	}
	switch {
	case fd.text.Multi():
		if f.leave(&fd.text, k) {
			return None, nil
		}
	case k.Type == tea.KeyEnter:
		return f.next(), nil
	case k.Type == tea.KeyUp:
		f.move(-1)
		return None, nil
	case k.Type == tea.KeyDown:
		f.move(1)
		return None, nil
	case k.Type == tea.KeyCtrlJ && fd.kind == Text && !f.spec.Strings:
		f.widen(fd)
		k = tea.KeyMsg{Type: tea.KeyEnter}
	case k.Type == tea.KeyCtrlAt && fd.Completes:
		return None, f.ask(fd, 0)
	}
	if !fd.typeKey(k) {
		return None, nil
	}
	f.edited()
	if fd.Completes {
		return None, f.ask(fd, pause)
	}
	return None, nil
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
func (f *Form) optionKey(fd *field, k tea.KeyMsg) Action {
	line := fd.kind == Bool || fd.inLine(f.room())
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 && !k.Paste && line {
		// Keys typed quickly arrive as one; only spaces mean anything here.
		for range strings.Count(string(k.Runes), " ") {
			f.toggle(fd)
		}
		return None
	}
	if k.Type == tea.KeyEnter {
		if !line && fd.kind == Enum && fd.moved && len(fd.passed) > 0 {
			fd.choose(fd.hot, false)
			f.edited()
		}
		return f.next()
	}
	f.chooseKey(fd, k, line)
	return None
}

// chooseKey is for the keys that walk and choose options, which are in a line
// or a list.
func (f *Form) chooseKey(fd *field, k tea.KeyMsg, line bool) {
	up := k.Type == tea.KeyUp
	switch {
	case up || k.Type == tea.KeyDown:
		step := 1
		if up {
			step = -1
		}
		if line || !fd.walk(step) {
			f.move(step)
		}
	case isSpace(k):
		f.toggle(fd)
	case line && (k.Type == tea.KeyLeft || k.Type == tea.KeyRight):
		f.sideways(fd, k.Type == tea.KeyRight)
	case (k.Type == tea.KeyBackspace || k.Type == tea.KeyDelete) && fd.filter.Value() == "" && fd.kind != Several:
		fd.empty()
		f.edited()
	case !line && fd.filter.Update(k):
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
	if fd.kind == Enum && !slices.Contains(fd.picked, true) {
		f.toggle(fd)
		return
	}
	if fd.walk(d) && fd.kind == Enum {
		fd.choose(fd.hot, false)
		f.edited()
	}
}

// Hints are what can be pressed now.
func (f *Form) Hints() []keys.Hint {
	var out []keys.Hint
	fd := f.current()
	switch {
	case f.offering():
		out = append(out, keys.Hint{Key: "Tab", Does: "take"}, keys.Hint{Key: "Down", Does: "choose"}, keys.Hint{Key: "Esc", Does: "close"})
	case fd != nil && fd.kind == Bool:
		out = append(out, keys.Hint{Key: "Space", Does: "toggle"})
	case fd != nil && (fd.kind == Enum || fd.kind == Several):
		out = append(out, keys.Hint{Key: "Space", Does: "choose"})
	}
	if !f.offering() {
		out = append(out, keys.Hint{Key: "Tab", Does: "next"})
	}
	out = append(out, keys.Hint{Key: "C-s", Does: f.spec.Submit})
	if f.raw {
		out = append(out, keys.Hint{Key: "C-e", Does: "form"})
	} else {
		out = append(out, keys.Hint{Key: "C-e", Does: "raw JSON"})
	}
	if rawjson.IsObject(f.spec.Last) {
		out = append(out, keys.Hint{Key: "C-r", Does: "last values"})
	}
	if !f.offering() {
		out = append(out, keys.Hint{Key: "Esc", Does: "cancel"})
	}
	if fd != nil && fd.Completes && !f.offering() {
		out = append(out, keys.Hint{Key: "C-Space", Does: "complete"})
	}
	if fd != nil && fd.kind == Text && !fd.text.Multi() && !f.spec.Strings {
		out = append(out, keys.Hint{Key: "C-j", Does: "new line"})
	}
	return out
}
