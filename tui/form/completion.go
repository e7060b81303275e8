package form

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// ask has completions asked for when no key follows within wait.
func (f *Form) ask(fd *field, wait time.Duration) tea.Cmd {
	f.close()
	request := Completion{Form: f, Gen: f.gen, Field: fd.Name, Value: fd.plain(), Others: f.plain(fd)}
	latest := f.latest
	return func() tea.Msg {
		<-time.After(wait)
		if latest.Load() != int64(request.Gen) {
			return nil
		}
		return request
	}
}

// completes reports whether what is typed is completed: not the areas of lines, which
// have no room for a list.
func (f *field) completes() bool { return f.Completes && !f.isChoice() && !f.text.Multi() }

// Began asks for what could stand in the field that has the focus at first.
func (f *Form) Began() tea.Cmd { return f.entered() }

// entered asks for what could stand in the field that has the focus, if it is empty.
func (f *Form) entered() tea.Cmd {
	fd := f.current()
	if fd == nil || !fd.completes() || fd.plain() != "" {
		return nil
	}
	return f.ask(fd, pause)
}

// close closes the list of completions; what was asked for is not wanted any
// more.
func (f *Form) close() {
	f.gen++
	f.latest.Store(int64(f.gen))
	f.offered, f.hot = nil, -1
	f.soil(f.focus)
}

// Offer shows completions under the field that asked for them. total is how
// many the server has, if it says so, and more that there are more than these.
// What does not answer the last [Completion] is dropped.
func (f *Form) Offer(gen int, values []string, total int, more bool) {
	fd := f.current()
	if gen != f.gen || fd == nil || !fd.completes() {
		return
	}
	f.offered = append([]string(nil), values[:min(len(values), maxOffered)]...)
	f.unasked = fd.plain() == ""
	f.total, f.more, f.hot = total, more, -1
	f.soil(f.focus)
}

func (f *Form) offering() bool { return len(f.offered) > 0 }

// take fills in the chosen completion, or the first. It does nothing if that
// is what the field says already, nor for a field without typed text, if none is
// chosen: Tab leads past it.
func (f *Form) take() bool {
	fd := f.current()
	if f.unasked && f.hot < 0 {
		f.close()
		return false
	}
	value := f.offered[max(f.hot, 0)]
	f.close()
	if fd == nil || fd.text.Value() == value {
		return false
	}
	fd.text.Set(value)
	fd.changed()
	f.edited()
	return true
}

// offerKey is for keys that belong to the open list.
func (f *Form) offerKey(do string) bool {
	switch {
	case do == doDown:
		f.hot = min(f.hot+1, len(f.offered)-1)
	case do == doUp && f.hot >= 0:
		f.hot--
	case do == doEnter && f.hot >= 0:
		f.take()
	default:
		return false
	}
	return true
}
