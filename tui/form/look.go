package form

import "goblin/tui/look"

// OnButton reports whether a button has the focus.
func (f *Form) OnButton() bool { return f.button() >= 0 }

// SetLook draws the form in another look; what is typed stays.
func (f *Form) SetLook(lk *look.Look) {
	f.look, f.area.look, f.meta.look = lk, lk, lk
	for _, fd := range f.fields {
		fd.look, fd.text.look, fd.filter.look, fd.stale = lk, lk, lk, true
	}
	f.introW = 0 // it is wrapped anew
}
