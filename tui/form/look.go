package form

import "goblin/tui/theme"

// OnButton reports whether a button has the focus.
func (f *Form) OnButton() bool { return f.button() >= 0 }

// SetLook draws the form in another look; what is typed stays.
func (f *Form) SetLook(lk *theme.Look) {
	f.look = lk
	f.area.SetLook(lk)
	f.meta.SetLook(lk)
	for _, top := range f.top {
		for fd := range top.all() {
			fd.look, fd.stale = lk, true
			fd.text.SetLook(lk)
			fd.filter.SetLook(lk)
		}
	}
	f.introW = 0 // it is wrapped anew
}
