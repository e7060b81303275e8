package form

import (
	"goblin/registry/keymap"
	"goblin/registry/rawjson"
	"goblin/tui/keys"
)

// hint returns nothing if the action has no key.
func (f *Form) hint(do, does string) []keys.Hint {
	return keys.Table{{ID: "form." + do, Hint: does}}.WithKeys(f.spec.Actions).Hints()
}

// Hints returns the keys that work now, the most important first.
func (f *Form) Hints() []keys.Hint {
	fd := f.currentField()
	var out []keys.Hint
	add := func(do, does string) { out = append(out, f.hint(do, does)...) }
	if f.hasCompletions() {
		add(doNext, f.tabDoes())
		add(doDown, "choose")
		add(doCancel, "close")
		return append(out, f.formHints()...)
	}
	if fd != nil {
		if does := fd.spaceDoes(); does != "" {
			add(doToggle, does)
		}
		out = append(out, f.itemHints(fd)...)
	}
	add(doNext, "next")
	out = append(out, f.formHints()...)
	add(doCancel, "cancel")
	if f.raw && f.rawFocus == 0 && len(f.top) > 0 || fd != nil && fd.kind == JSON && fd.text.Value() == "" {
		add(doMembers, "all members")
	}
	if s, _ := f.visibleSchema(); s != nil && s.maxOff > 0 {
		add(doSchemaDown, "schema")
	}
	if fd != nil && fd.canComplete() {
		add(doComplete, "complete")
	}
	if fd != nil && fd.canHaveLines() && !fd.text.Multi() && !f.spec.Strings {
		add(doLines, "new line")
	}
	return out
}

func (f *Form) formHints() []keys.Hint {
	other := "raw JSON"
	if f.raw {
		other = "form"
	}
	out := append(f.hint(doSubmit, f.spec.Submit), f.hint(doRaw, other)...)
	if f.spec.Saves {
		out = append(out, f.hint(doSaveCall, "save call")...)
	}
	if rawjson.IsObject(f.spec.Last) {
		out = append(out, f.hint(doLast, "last values")...)
	}
	return out
}

func (f *Form) keyOf(do string) string {
	for _, h := range f.hint(do, do) {
		return keymap.FormatKey(h.Key)
	}
	return "no key"
}

// spaceDoes returns the label of Space, or "" if the field is typed.
func (f *field) spaceDoes() string {
	switch {
	case f.kind == Bool:
		return "toggle"
	case f.isChoice():
		return "choose"
	case f.kind == Array:
		return "add item"
	case f.kind == Object && f.open:
		return "don't send"
	case f.kind == Object:
		return "fill in"
	}
	return ""
}

func (f *Form) itemHints(fd *field) []keys.Hint {
	list, _ := fd.enclosingArray()
	if list == nil {
		return nil
	}
	out := append(f.hint(doAdd, "add"), f.hint(doRemove, "remove")...)
	if len(list.children) > 1 {
		out = append(out, f.hint(doMoveUp, "move up")...)
		out = append(out, f.hint(doMoveDown, "move down")...)
	}
	return out
}

func (f *Form) tabDoes() string {
	if f.unasked && f.chosen < 0 {
		return "next"
	}
	return "take"
}
