package dialog

import "goblin/tui/uicontext"

// PasteLimit returns the maximum paste into the focused field, in characters.
func (d *FormDialog) PasteLimit() int { return d.Form.PasteLimit() }

// PasteLimit returns the room for a longer answer, in characters.
func (d *SamplingQuestion) PasteLimit() int { return max(maxAnswer-len(d.Area.Value()), 0) }

// PasteLimit returns that of the dialog inside.
func (d *QuestionDialog) PasteLimit() int {
	if inner, ok := d.Inner.(interface{ PasteLimit() int }); ok {
		return inner.PasteLimit()
	}
	return uicontext.MaxPastedLine
}
