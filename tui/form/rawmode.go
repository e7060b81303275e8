package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/textfield"
)

func (f *Form) rawArguments() (json.RawMessage, []problem) {
	s := strings.TrimSpace(f.area.Value())
	if s == "" {
		return json.RawMessage("{}"), nil
	}
	if err := checkObject(s); err != nil {
		return nil, []problem{{text: err.Error()}}
	}
	if f.area.Value() == f.rawText { // placeholders of missing values are unchanged
		if _, wrong := f.arguments(); len(wrong) > 0 {
			return nil, wrong
		}
	}
	args := compact([]byte(s))
	if !f.spec.Strings {
		return args, nil
	}
	list, _ := readMembers(args, maxMembers)
	for _, m := range list {
		if !rawjson.IsString(m.value) {
			return nil, []problem{{name: m.name, text: "must be a string, in quotes"}}
		}
	}
	return args, nil
}

// enterRawMode refuses to draw secrets.
func (f *Form) enterRawMode() {
	f.closeCompletions()
	for _, fd := range f.top {
		if fd.text.Hides() {
			f.failure = "raw JSON would show the secret in " + termtext.Line(fd.Name)
			return
		}
	}
	f.rawValues = make(map[*field]json.RawMessage, len(f.top))
	var list []member
	var broken []string // pairs of placeholder and invalid text
	stand := func(text string) json.RawMessage {
		it := rawjson.Quote(fmt.Sprintf("\x00%d", len(broken)))
		broken = append(broken, string(it), termtext.JSON(text))
		return it
	}
	for _, fd := range f.top {
		if v := fd.rawValue(stand); len(v) > 0 {
			f.rawValues[fd] = v
			list = fd.appendTo(list, v)
		}
	}
	f.area = textfield.NewArea(f.look)
	f.area.SetValue(strings.NewReplacer(broken...).Replace(indent(writeObject(append(list, f.extra...)))))
	f.rawText = f.area.Value()
	f.raw = true
	f.rawFocus = 0
	f.offset = 0
	f.failure = ""
	f.areaErr = ""
	f.metaErr = ""
}

// leaveRawMode reads the JSON back. Fields with unchanged values keep their state, even
// partial input.
func (f *Form) leaveRawMode() {
	s := cmp.Or(strings.TrimSpace(f.area.Value()), "{}")
	f.areaErr, f.metaErr = "", ""
	unchanged := f.area.Value() == f.rawText // maybe invalid, but the fields have it
	if err := checkObject(s); err != nil && !unchanged {
		f.areaErr, f.rawFocus = err.Error(), 0
		return
	}
	if m := strings.TrimSpace(f.meta.Value()); m != "" && f.spec.Meta {
		if err := checkObject(m); err != nil {
			f.metaErr, f.rawFocus = err.Error(), 1
			return
		}
	}
	if !unchanged {
		f.setValues(compact([]byte(s)), func(fd *field, now json.RawMessage) {
			fd.err, fd.stale = "", true
			if was := f.rawValues[fd]; (now == nil) != (was == nil) || !sameJSON(now, was) {
				fd.setValue(now)
			}
		})
	}
	f.raw = false
	f.offset = 0
	f.failure = ""
	f.area = textfield.Field{}
	f.rawValues = nil
	f.updatePreview()
}

func (f *Form) fillLast() {
	if !rawjson.IsObject(f.spec.Last) {
		return
	}
	f.closeCompletions()
	f.dirty = true
	if f.spec.Meta && rawjson.IsObject(f.spec.LastMeta) {
		f.meta.SetValue(string(f.spec.LastMeta))
		f.metaErr = ""
	}
	if f.raw {
		f.area.SetValue(indent(f.spec.Last))
		f.areaErr = ""
		return
	}
	f.setValues(f.spec.Last, (*field).setValue)
	f.failure = ""
	f.updatePreview()
}

func (f *Form) hiddenMembers() string {
	if len(f.extra) == 0 {
		return ""
	}
	names := make([]string, 0, 8)
	for _, m := range f.extra[:min(len(f.extra), 8)] {
		names = append(names, termtext.Line(m.name))
	}
	text := strings.Join(names, ", ")
	if n := len(f.extra) - len(names); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return "also sent: " + text + " (" + f.keyOf(doRaw) + " shows it)"
}
