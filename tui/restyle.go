package tui

// restyle draws a dialog in the screen's new look, if it keeps anything that
// was made for the one before.
func restyle(d dialog) {
	if d, ok := d.(interface{ setLook() }); ok {
		d.setLook()
	}
}

func (d *formDialog) setLook() { d.form.SetLook(d.app.look) }

func (d *sampling) setLook() {
	d.view.SetLook(d.app.look)
	d.area.SetLook(d.app.look)
	d.drawn = nil
}
