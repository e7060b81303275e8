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

// rawArguments are the arguments as they stand in the raw mode.
func (f *Form) rawArguments() (json.RawMessage, []problem) {
	s := strings.TrimSpace(f.area.Value())
	if s == "" {
		return json.RawMessage("{}"), nil
	}
	if err := checkObject(s); err != nil {
		return nil, []problem{{text: err.Error()}}
	}
	if f.area.Value() == f.asWritten { // what stands there for what is missing was not changed
		if _, wrong := f.arguments(); len(wrong) > 0 {
			return nil, wrong
		}
	}
	args := compact([]byte(s))
	if !f.spec.Strings {
		return args, nil
	}
	list, _ := membersOf(args, maxMembers)
	for _, m := range list {
		if !rawjson.IsString(m.value) {
			return nil, []problem{{name: m.name, text: "must be a string, in quotes"}}
		}
	}
	return args, nil
}

// toRaw writes the fields down as JSON.
func (f *Form) toRaw() {
	f.close()
	f.written = make(map[*field]json.RawMessage, len(f.top))
	var list []member
	var broken []string // pairs of what stands for a text that is no JSON, and that
	stand := func(text string) json.RawMessage {
		it := rawjson.Quote(fmt.Sprintf("\x00%d", len(broken)))
		broken = append(broken, string(it), termtext.JSON(text))
		return it
	}
	for _, fd := range f.top {
		if v := fd.lenient(stand); len(v) > 0 {
			f.written[fd] = v
			list = fd.put(list, v)
		}
	}
	f.area = textfield.NewArea(f.look)
	f.area.Set(strings.NewReplacer(broken...).Replace(indented(objectOf(append(list, f.extra...)))))
	f.asWritten = f.area.Value()
	f.raw = true
	f.rawFocus = 0
	f.off = 0
	f.wrong = ""
	f.areaErr = ""
	f.metaErr = ""
}

// toFields reads the raw mode back. A field whose value is as it was written
// stays as it is, half-typed text included.
func (f *Form) toFields() {
	s := cmp.Or(strings.TrimSpace(f.area.Value()), "{}")
	f.areaErr, f.metaErr = "", ""
	unchanged := f.area.Value() == f.asWritten // no JSON, perhaps, but what the fields have
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
		f.fill(compact([]byte(s)), func(fd *field, now json.RawMessage) {
			fd.err, fd.stale = "", true
			if was := f.written[fd]; (now == nil) != (was == nil) || !same(now, was) {
				fd.set(now)
			}
		})
	}
	f.raw = false
	f.off = 0
	f.wrong = ""
	f.area = textfield.Text{}
	f.written = nil
	f.refresh()
}

// last fills in the last arguments.
func (f *Form) last() {
	if !rawjson.IsObject(f.spec.Last) {
		return
	}
	f.close()
	f.dirty = true
	if f.spec.Meta && rawjson.IsObject(f.spec.LastMeta) {
		f.meta.Set(string(f.spec.LastMeta))
		f.metaErr = ""
	}
	if f.raw {
		f.area.Set(indented(f.spec.Last))
		f.areaErr = ""
		return
	}
	f.fill(f.spec.Last, (*field).set)
	f.wrong = ""
	f.refresh()
}

// unseen names what is sent without being shown.
func (f *Form) unseen() string {
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
