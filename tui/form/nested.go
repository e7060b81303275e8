package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Limits of nested values.
const (
	maxLive         = 4096 // fields of a form; others become JSON
	maxItems        = 200  // items of an array as fields
	maxTries        = 2000 // alternatives tried against values
	maxInitialItems = 8    // initial items of an array with a minimum
)

type fieldCount struct {
	live, tries int
	variables   bool // see [Spec.Variables]
}

func (f *field) isNested() bool { return f.kind == Object || f.kind == Array || f.kind == Choice }

func (f *field) newChild(def Field) *field { return newField(f.look, def, f, f.count) }

func (f *field) uncount(kids []*field) {
	for _, kid := range kids {
		for range kid.all() {
			f.count.live--
		}
	}
}

// all iterates over a field and its descendants.
func (f *field) all() iter.Seq[*field] {
	return func(yield func(*field) bool) { f.walkAll(yield) }
}

func (f *field) walkAll(yield func(*field) bool) bool {
	if !yield(f) {
		return false
	}
	for _, kid := range f.children {
		if !kid.walkAll(yield) {
			return false
		}
	}
	return true
}

// resetChildren removes the value of a nested field.
func (f *field) resetChildren() {
	f.uncount(f.children)
	f.children, f.extra, f.open = nil, nil, false
	switch {
	case f.kind == Object && f.Required:
		f.openObject()
	case f.kind == Array && f.Required && f.MinLen != nil:
		for range min(*f.MinLen, maxInitialItems) {
			f.addItem(len(f.children))
		}
	}
}

// openObject includes an object in the value and shows its members.
func (f *field) openObject() {
	f.open = true
	if f.children != nil {
		return
	}
	seen := make(map[string]bool)
	for _, def := range f.Members() {
		if !seen[def.Name] || def.Inline {
			seen[def.Name] = true
			f.children = append(f.children, f.newChild(def))
		}
	}
}

func (f *field) addItem(at int) *field {
	def := *f.items
	def.Required, def.Title = true, ""
	kid := f.newChild(def)
	f.children = slices.Insert(f.children, at, kid)
	f.renumber()
	return kid
}

func (f *field) renumber() {
	for i, kid := range f.children {
		kid.label, kid.stale = strconv.Itoa(i+1), true
	}
}

// -1 selects none.
func (f *field) setAlternative(i int) {
	f.uncount(f.children)
	f.children = nil
	if all := f.Members(); i >= 0 && i < len(all) {
		def := all[i]
		def.Required, f.alternative = true, i
		f.children = []*field{f.newChild(def)}
	}
}

// showNested displays a value and reports whether it is of the field's kind.
func (f *field) showNested(raw json.RawMessage) bool {
	switch f.kind {
	case Object:
		if !rawjson.IsObject(raw) {
			return false
		}
		f.openObject()
		f.extra, _ = assignMembers(f.children, raw, (*field).setValue)
		return true
	case Array:
		if !rawjson.IsArray(raw) {
			return false
		}
		items := slices.Collect(rawjson.Elements(raw))
		if len(items) > maxItems {
			return false
		}
		f.uncount(f.children)
		f.children = nil
		for i, item := range items {
			f.addItem(i).setValue(item)
		}
		return true
	}
	return f.chooseAlternative(raw)
}

// chooseAlternative selects the best alternative for a value, or returns false.
func (f *field) chooseAlternative(raw json.RawMessage) bool {
	best, least := -1, 0
	for i := range f.Options {
		if f.count.tries++; f.count.tries > maxTries {
			return false
		}
		f.setAlternative(i)
		if len(f.children) == 0 {
			continue
		}
		kid := f.children[0]
		kid.setValue(raw)
		if kid.kind != kid.Kind || kid.original == nil || isNull(raw) && kid.kind != Enum {
			continue
		}
		_, wrong := kid.collect()
		if odd := len(wrong) + 16*len(kid.extra); best < 0 || odd < least {
			best, least = i, odd
		}
	}
	f.setAlternative(best)
	if best < 0 {
		return false
	}
	f.children[0].setValue(raw)
	f.selected[best], f.cursor = true, best
	return true
}

// assignMembers calls set for each field with its member or nil. An inline field gets the
// remaining members. It returns the members without a field.
func assignMembers(fields []*field, values json.RawMessage, set func(fd *field, value json.RawMessage)) (extra []member, ok bool) {
	list, ok := readMembers(values, maxMembers)
	if !ok {
		return nil, false
	}
	given := make(map[string]json.RawMessage, len(list))
	for _, m := range list {
		given[m.name] = compact(m.value)
	}
	var within *field
	for _, fd := range fields {
		if fd.Inline {
			within = fd
			continue
		}
		set(fd, given[fd.Name])
		delete(given, fd.Name)
	}
	for _, m := range list {
		if value, left := given[m.name]; left {
			extra = append(extra, member{m.name, value})
		}
	}
	if within == nil {
		return extra, true
	}
	if len(extra) == 0 {
		set(within, nil)
		return nil, true
	}
	set(within, writeObject(extra))
	if within.kind != Choice { // no alternative has such members
		within.setValue(nil)
		return extra, true
	}
	return nil, true
}

func collectAll(fields []*field) (list []member, wrong []problem) {
	for _, fd := range fields {
		raw, bad := fd.collect()
		wrong = append(wrong, bad...)
		list = fd.appendTo(list, raw)
	}
	return list, wrong
}

func (f *field) appendTo(list []member, raw json.RawMessage) []member {
	if !f.Inline {
		return append(list, member{f.Name, raw})
	}
	own, _ := readMembers(raw, maxMembers)
	return append(list, own...)
}

func (f *field) collect() (json.RawMessage, []problem) {
	bad := func(err error) []problem { return []problem{{name: f.root().Name, text: err.Error(), at: f}} }
	if !f.isNested() || isNull(f.original) {
		raw, err := f.value()
		if err != nil {
			return nil, bad(err)
		}
		return raw, nil
	}
	switch f.kind {
	case Object:
		if !f.open {
			return nil, nil
		}
		list, wrong := collectAll(f.children)
		return writeObject(append(list, f.extra...)), wrong
	case Array:
		if len(f.children) == 0 && f.original == nil && !f.Required {
			return nil, nil
		}
		var values [][]byte
		var wrong []problem
		for _, kid := range f.children {
			raw, bad := kid.collect()
			values, wrong = append(values, raw), append(wrong, bad...)
		}
		if err := f.checkLength(len(f.children), "item"); err != nil {
			wrong = append(wrong, bad(err)...)
		}
		return rawjson.Array(values...), wrong
	}
	switch {
	case len(f.children) > 0:
		return f.children[0].collect()
	case f.Required:
		return nil, bad(errRequired)
	}
	return nil, nil
}

func (f *field) nestedValue() (json.RawMessage, error) {
	raw, wrong := f.collect()
	if len(wrong) > 0 {
		return nil, errors.New(wrong[0].text)
	}
	return raw, nil
}

func (f *field) root() *field {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// path returns the names and item numbers down to a field, separated by slashes.
func (f *field) path() string {
	var parts []string
	for at := f; at != nil; at = at.parent {
		switch {
		case at.parent != nil && at.parent.kind == Array:
			parts = append(parts, at.label)
		case at.parent != nil && at.parent.kind == Choice, at.Inline:
		default:
			parts = append(parts, at.Name)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// enclosingArray returns the innermost array around f and its item with f, or nil.
func (f *field) enclosingArray() (list, item *field) {
	for at := f; at.parent != nil; at = at.parent {
		if at.parent.kind == Array {
			return at.parent, at
		}
	}
	return nil, nil
}

// isHidden reports whether a field has no line of its own: a Choice's line covers its
// alternative and constant members.
func (f *field) isHidden() bool {
	up := f.parent
	if up != nil && up.kind == Object && f.kind != Object {
		up = up.parent
	}
	settled := f.kind == Enum && len(f.Options) == 1 && f.Required
	return up != nil && up.kind == Choice && (f.kind == Object || settled)
}

func (f *field) takesFocus() bool { return f.kind != Object || !f.Required }

// appendVisible appends f and its visible descendants to list, in display order.
func (f *field) appendVisible(list []*field, depth int) []*field {
	f.stale, f.depth = true, depth
	if !f.isHidden() {
		list = append(list, f)
		depth++
	}
	if f.kind == Object && !f.open {
		return list
	}
	for _, kid := range f.children {
		list = kid.appendVisible(list, depth)
	}
	return list
}

func (f *field) memberNames() string {
	var names []string
	for _, m := range f.Members() {
		if len(names) == 12 {
			names = append(names, f.look.Ellipsis)
			break
		}
		if name := safeLabel(m.Name); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// updateFields collects the visible fields again. The focus stays on its field or moves
// to the one around it.
func (f *Form) updateFields() {
	button := f.focus - len(f.fields)
	at := f.currentField()
	f.fields = nil
	for _, fd := range f.top {
		f.fields = fd.appendVisible(f.fields, 0)
	}
	if button >= 0 {
		f.focus = len(f.fields) + button
		return
	}
	for ; at != nil; at = at.parent {
		if i := slices.Index(f.fields, at); i >= 0 {
			f.focus = i
			return
		}
	}
	f.focus = min(f.focus, max(len(f.fields)-1, 0))
}

// firstField returns the index of the first required field without a value, or of the
// first field.
func (f *Form) firstField() int {
	for i, fd := range f.fields {
		if !fd.takesFocus() || !fd.Required || fd.kind == Choice && len(fd.children) > 0 {
			continue
		}
		if v, err := fd.value(); (err != nil || len(v) == 0) && len(fd.children) == 0 {
			return i
		}
	}
	return max(slices.IndexFunc(f.fields, (*field).takesFocus), 0)
}

// findField returns the visible field closest to a problem, and the remaining path.
// Problems don't name list items.
func (f *Form) findField(p problem) (at *field, rest []string) {
	if p.at != nil {
		return p.at, nil
	}
	in, rest := f.top, append([]string{p.name}, p.path...)
	for len(rest) > 0 {
		next := (*field)(nil)
		for _, fd := range in {
			if fd.Inline {
				for _, alternative := range fd.children {
					in = append(in[:len(in):len(in)], alternative.children...)
				}
			}
		}
		for _, fd := range in {
			if fd.Name == rest[0] && !fd.Inline {
				next = fd
				break
			}
		}
		if next == nil {
			break
		}
		at, rest = next, rest[1:]
		for len(rest) > 0 && len(next.children) == 1 && next.kind != Object {
			next = next.children[0] // the only item, or the alternative
		}
		in = next.children
		if next.kind != Object {
			break
		}
	}
	return at, rest
}

// toggleNested includes or excludes an object, or adds a list item.
func (f *Form) toggleNested(fd *field) {
	switch {
	case fd.kind == Array:
		f.insertItem(fd, len(fd.children))
		return
	case fd.Required:
		return
	case fd.open:
		fd.open = false
	default:
		fd.openObject()
	}
	fd.afterChange()
	f.afterEdit()
}

func (f *Form) insertItem(list *field, at int) {
	if list.count.live >= maxLive || len(list.children) >= maxItems {
		f.failure = "no more items here; add them as raw JSON with " + f.keyOf(doRaw)
		return
	}
	kid := list.addItem(at)
	list.afterChange()
	f.afterEdit()
	f.updateFields()
	f.focusField(kid)
}

func (f *Form) focusField(fd *field) {
	for at := range fd.all() {
		if i := slices.Index(f.fields, at); i >= 0 && at.takesFocus() {
			f.focusOn(i)
			return
		}
	}
}

func (f *Form) removeItem(list, item *field) {
	at := slices.Index(list.children, item)
	list.uncount(list.children[at : at+1])
	list.children = slices.Delete(list.children, at, at+1)
	list.renumber()
	list.afterChange()
	f.afterEdit()
	f.updateFields()
	if len(list.children) > 0 {
		f.focusField(list.children[min(at, len(list.children)-1)])
	} else {
		f.focusField(list)
	}
}

func (f *Form) moveItem(list, item *field, by int) {
	at := slices.Index(list.children, item)
	if to := at + by; to >= 0 && to < len(list.children) {
		list.children[at], list.children[to] = list.children[to], list.children[at]
		list.renumber()
		list.afterChange()
		f.afterEdit()
		f.updateFields()
	}
}

func (f *Form) nestedRow(fd *field) row {
	l := f.look
	if fd.kind == Array {
		text, button := "no items", "[ add ]"
		if n := len(fd.children); n > 0 {
			text = termtext.Count(n, "item")
		}
		from := theme.Width(text) + 2
		return row{text: text + "  " + button, hits: []hit{{from, from + len(button), optionTarget, 0}}}
	}
	if fd.Required {
		return row{}
	}
	text, more := "[-] not sent", ""
	if fd.open {
		text = "[x] sent"
	} else {
		more = "  " + l.Dim.On("members: "+fd.memberNames())
	}
	return row{text: text + more, hits: []hit{{0, len(text), optionTarget, 0}}}
}

func (f *field) describeNested() string {
	switch f.kind {
	case Object:
		return "object: " + f.memberNames()
	case Array:
		return "list"
	}
	return fmt.Sprintf("one of %d types", len(f.Options))
}
