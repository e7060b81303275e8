package form

import (
	"encoding/json"
	"strings"

	"goblin/registry/rawjson"
)

// maxSkeleton is the maximum number of values, because schemas may contain themselves.
const maxSkeleton = 400

// skeleton returns a value to edit, with all members or only the required ones. room
// counts the values left.
func (f *Field) skeleton(all bool, room *int) json.RawMessage {
	if *room--; *room < 0 {
		return json.RawMessage("null")
	}
	if len(f.Default) > 0 {
		return compact(f.Default)
	}
	switch f.Kind {
	case Text:
		if all {
			return rawjson.Quote(formats[f.Format].example)
		}
		return json.RawMessage(`""`)
	case Number, Integer:
		if f.Min != nil && *f.Min > 0 {
			return json.RawMessage(formatNumber(*f.Min))
		}
		return json.RawMessage("0")
	case Bool:
		return json.RawMessage("false")
	case Enum:
		switch {
		case !all: // an unchosen option must not be sent
			return json.RawMessage(`""`)
		case len(f.Options) > 0:
			return f.Options[0].Value
		}
	case MultiEnum, List:
		return json.RawMessage("[]")
	case Object:
		return skeletonOf(f.Members(), all, room)
	case Array:
		if !all && (f.MinLen == nil || *f.MinLen == 0) {
			return json.RawMessage("[]")
		}
		return rawjson.Array(f.items.skeleton(all, room))
	case Choice:
		if m := f.Members(); len(m) > 0 {
			return m[0].skeleton(all, room)
		}
	}
	return emptyValue(f.Schema)
}

// Skeleton returns an object with the required members of an object schema, or nil if it
// is no such schema.
func Skeleton(schema json.RawMessage) json.RawMessage {
	fields, err := FromSchema(schema)
	if err != nil {
		return nil
	}
	room := maxSkeleton
	return skeletonOf(fields, false, &room)
}

func skeletonOf(members []Field, all bool, room *int) json.RawMessage {
	var list []member
	for i := range members {
		m := &members[i]
		if *room <= 0 || !all && !m.Required {
			continue
		}
		value := m.skeleton(all, room)
		if m.Inline {
			own, _ := readMembers(value, maxMembers)
			list = append(list, own...)
			continue
		}
		list = append(list, member{m.Name, value})
	}
	return writeObject(list)
}

func emptyValue(schema json.RawMessage) json.RawMessage {
	types, _ := typesOf(nodeOf(schema)["type"])
	switch {
	case len(types) == 1 && types[0] == "object":
		return json.RawMessage("{}")
	case len(types) == 1 && types[0] == "array":
		return json.RawMessage("[]")
	}
	return json.RawMessage("null")
}

// allFields adds the schema's missing members to the raw JSON, or fills an empty JSON
// field.
func (f *Form) allFields() {
	room := maxSkeleton
	if fd := f.currentField(); fd != nil && fd.kind == JSON {
		if strings.TrimSpace(fd.text.Value()) == "" {
			fd.text.SetValue(indent(fd.skeleton(true, &room)))
			fd.afterChange()
			f.afterEdit()
		}
		return
	}
	if !f.raw || f.rawFocus > 0 {
		return
	}
	text := strings.TrimSpace(f.area.Value())
	if text == "" {
		text = "{}"
	}
	if err := checkObject(text); err != nil {
		f.areaErr = err.Error()
		return
	}
	list, _ := readMembers(json.RawMessage(text), maxMembers)
	have := make(map[string]bool, len(list))
	for _, m := range list {
		have[m.name] = true
	}
	var defs []Field
	for _, fd := range f.top {
		if !have[fd.Name] {
			defs = append(defs, fd.Field)
		}
	}
	more, _ := readMembers(skeletonOf(defs, true, &room), maxMembers)
	for _, m := range more {
		if !have[m.name] {
			list = append(list, m)
		}
	}
	f.area.SetValue(indent(writeObject(list)))
	f.dirty, f.areaErr = true, ""
}
