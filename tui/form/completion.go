package form

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// requestCompletion returns a command that waits, then requests completions unless a key
// followed.
func (f *Form) requestCompletion(fd *field, wait time.Duration) tea.Cmd {
	f.closeCompletions()
	request := Completion{Form: f, Gen: int(f.gen.Load()), Field: fd.Name, Value: fd.plainText(), Others: f.texts(fd)}
	gen := f.gen
	return func() tea.Msg {
		<-time.After(wait)
		if gen.Load() != int64(request.Gen) {
			return nil
		}
		return request
	}
}

// Multi-line fields have no space for completions.
func (f *field) canComplete() bool { return f.Completes && !f.isChoice() && !f.text.Multi() }

// Start requests completions for the first focused field.
func (f *Form) Start() tea.Cmd { return f.completeOnEntry() }

// completeOnEntry requests completions if the focused field is empty.
func (f *Form) completeOnEntry() tea.Cmd {
	fd := f.currentField()
	if fd == nil || !fd.canComplete() || fd.plainText() != "" {
		return nil
	}
	return f.requestCompletion(fd, completionDelay)
}

// closeCompletions closes the list and ignores later answers.
func (f *Form) closeCompletions() {
	f.gen.Add(1)
	f.completions, f.chosen = nil, -1
	f.markStale(f.focus)
}

// ShowCompletions shows the answer to a [Completion], unless it is outdated. total is the
// number on the server, or 0; more means there are others.
func (f *Form) ShowCompletions(gen int, values []string, total int, more bool) {
	fd := f.currentField()
	if int64(gen) != f.gen.Load() || fd == nil || !fd.canComplete() {
		return
	}
	f.completions = append([]string(nil), values[:min(len(values), maxOffered)]...)
	f.unasked = fd.plainText() == ""
	f.total, f.more, f.chosen = total, more, -1
	f.markStale(f.focus)
}

func (f *Form) hasCompletions() bool { return len(f.completions) > 0 }

// takeCompletion fills in the chosen completion, or the first one. It returns false if
// that changes nothing, or if the field is empty and none is chosen.
func (f *Form) takeCompletion() bool {
	fd := f.currentField()
	if f.unasked && f.chosen < 0 {
		f.closeCompletions()
		return false
	}
	value := f.completions[max(f.chosen, 0)]
	f.closeCompletions()
	if fd == nil || fd.text.Value() == value {
		return false
	}
	fd.text.SetValue(value)
	fd.afterChange()
	f.afterEdit()
	return true
}

// completionKey reports whether it used the key.
func (f *Form) completionKey(do string) bool {
	switch {
	case do == doDown:
		f.chosen = min(f.chosen+1, len(f.completions)-1)
	case do == doUp && f.chosen >= 0:
		f.chosen--
	case do == doEnter && f.chosen >= 0:
		f.takeCompletion()
	default:
		return false
	}
	return true
}
