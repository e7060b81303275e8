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

// Bounds of what a value opens.
const (
	maxLive  = 4096 // fields of a form at a time; what is beyond is one of JSON
	maxItems = 200  // items of an array that are fields each
	maxTries = 2000 // alternatives that are held against values
	atFirst  = 8    // items that an array begins with at most, if it must have some
)

// tally counts what a form has made of its schema.
type tally struct{ live, tries int }

// nests reports whether a field holds others.
func (f *field) nests() bool { return f.kind == Object || f.kind == Array || f.kind == Choice }

// kid makes a field within f; its required members exist at once.
func (f *field) kid(def Field) *field { return newField(f.look, def, f, f.tally) }

// drop takes fields out of the count.
func (f *field) drop(kids []*field) {
	for _, kid := range kids {
		for range kid.all() {
			f.tally.live--
		}
	}
}

// all are a field and those in it.
func (f *field) all() iter.Seq[*field] {
	return func(yield func(*field) bool) { f.walkAll(yield) }
}

func (f *field) walkAll(yield func(*field) bool) bool {
	if !yield(f) {
		return false
	}
	for _, kid := range f.kids {
		if !kid.walkAll(yield) {
			return false
		}
	}
	return true
}

// empties makes a field that holds others as it is without a value.
func (f *field) empties() {
	f.drop(f.kids)
	f.kids, f.extra, f.open = nil, nil, false
	switch {
	case f.kind == Object && f.Required:
		f.unfold()
	case f.kind == Array && f.Required && f.MinLen != nil:
		for range min(*f.MinLen, atFirst) {
			f.add(len(f.kids))
		}
	}
}

// unfold shows the members of an object, which is sent from now on.
func (f *field) unfold() {
	f.open = true
	if f.kids != nil {
		return
	}
	seen := make(map[string]bool)
	for _, def := range f.Members() {
		if !seen[def.Name] || def.Inline {
			seen[def.Name] = true
			f.kids = append(f.kids, f.kid(def))
		}
	}
}

// add puts an item into an array.
func (f *field) add(at int) *field {
	def := *f.items
	def.Required, def.Title = true, ""
	kid := f.kid(def)
	f.kids = slices.Insert(f.kids, at, kid)
	f.renumber()
	return kid
}

// renumber names the items of an array by their places.
func (f *field) renumber() {
	for i, kid := range f.kids {
		kid.label, kid.stale = strconv.Itoa(i+1), true
	}
}

// become makes a Choice one of its alternatives; -1 is none.
func (f *field) become(i int) {
	f.drop(f.kids)
	f.kids = nil
	if all := f.Members(); i >= 0 && i < len(all) {
		def := all[i]
		def.Required, f.is = true, i
		f.kids = []*field{f.kid(def)}
	}
}

// showNested fills a field that holds others with a value, and reports whether that is
// of its kind.
func (f *field) showNested(raw json.RawMessage) bool {
	switch f.kind {
	case Object:
		if !rawjson.IsObject(raw) {
			return false
		}
		f.unfold()
		f.extra, _ = spread(f.kids, raw, (*field).set)
		return true
	case Array:
		if !rawjson.IsArray(raw) {
			return false
		}
		items := slices.Collect(rawjson.Elements(raw))
		if len(items) > maxItems {
			return false
		}
		f.drop(f.kids)
		f.kids = nil
		for i, item := range items {
			f.add(i).set(item)
		}
		return true
	}
	return f.fit(raw)
}

// fit makes a Choice the alternative that a value fits best.
func (f *field) fit(raw json.RawMessage) bool {
	best, least := -1, 0
	for i := range f.Options {
		if f.tally.tries++; f.tally.tries > maxTries {
			return false
		}
		f.become(i)
		if len(f.kids) == 0 {
			continue
		}
		kid := f.kids[0]
		kid.set(raw)
		if kid.kind != kid.Kind || kid.held == nil || isNull(raw) && kid.kind != Enum {
			continue
		}
		_, wrong := kid.gather()
		if odd := len(wrong) + 16*len(kid.extra); best < 0 || odd < least {
			best, least = i, odd
		}
	}
	f.become(best)
	if best < 0 {
		return false
	}
	f.kids[0].set(raw)
	f.picked[best], f.hot = true, best
	return true
}

// spread has set take the members of an object for the fields, nil for those that it
// has not, and gives the members that no field shows. A field in line gets those that
// are left.
func spread(fields []*field, values json.RawMessage, set func(fd *field, value json.RawMessage)) (extra []member, ok bool) {
	list, ok := membersOf(values, maxMembers)
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
	set(within, objectOf(extra))
	if within.kind != Choice { // no alternative has such members
		within.set(nil)
		return extra, true
	}
	return nil, true
}

// gatherAll are the members of an object with the values of fields, and all that is
// wrong.
func gatherAll(fields []*field) (list []member, wrong []problem) {
	for _, fd := range fields {
		raw, bad := fd.gather()
		wrong = append(wrong, bad...)
		list = fd.put(list, raw)
	}
	return list, wrong
}

// put adds the value of a field to the members of the object that it is in.
func (f *field) put(list []member, raw json.RawMessage) []member {
	if !f.Inline {
		return append(list, member{f.Name, raw})
	}
	own, _ := membersOf(raw, maxMembers)
	return append(list, own...)
}

// gather is the value of a field with all that is wrong in it.
func (f *field) gather() (json.RawMessage, []problem) {
	bad := func(err error) []problem { return []problem{{name: f.root().Name, text: err.Error(), at: f}} }
	if !f.nests() || isNull(f.held) {
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
		list, wrong := gatherAll(f.kids)
		return objectOf(append(list, f.extra...)), wrong
	case Array:
		if len(f.kids) == 0 && f.held == nil && !f.Required {
			return nil, nil
		}
		var values [][]byte
		var wrong []problem
		for _, kid := range f.kids {
			raw, bad := kid.gather()
			values, wrong = append(values, raw), append(wrong, bad...)
		}
		if err := f.length(len(f.kids), "item"); err != nil {
			wrong = append(wrong, bad(err)...)
		}
		return rawjson.Array(values), wrong
	}
	switch {
	case len(f.kids) > 0:
		return f.kids[0].gather()
	case f.Required:
		return nil, bad(errRequired)
	}
	return nil, nil
}

// nestedValue is gather with one error.
func (f *field) nestedValue() (json.RawMessage, error) {
	raw, wrong := f.gather()
	if len(wrong) > 0 {
		return nil, errors.New(wrong[0].text)
	}
	return raw, nil
}

// root is the field of the whole that f is in.
func (f *field) root() *field {
	for f.up != nil {
		f = f.up
	}
	return f
}

// place is where a field is: names and numbers of items.
func (f *field) place() string {
	var parts []string
	for at := f; at != nil; at = at.up {
		switch {
		case at.up != nil && at.up.kind == Array:
			parts = append(parts, at.label)
		case at.up != nil && at.up.kind == Choice, at.Inline:
		default:
			parts = append(parts, at.Name)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// array is the list that f is an item of, or within one, and that item.
func (f *field) array() (list, item *field) {
	for at := f; at.up != nil; at = at.up {
		if at.up.kind == Array {
			return at.up, at
		}
	}
	return nil, nil
}

// silent reports a field without a line: an alternative that its Choice stands for, and
// what is settled by that.
func (f *field) silent() bool {
	up := f.up
	if up != nil && up.kind == Object && f.kind != Object {
		up = up.up
	}
	settled := f.kind == Enum && len(f.Options) == 1 && f.Required
	return up != nil && up.kind == Choice && (f.kind == Object || settled)
}

// stop reports whether a field takes the focus.
func (f *field) stop() bool { return f.kind != Object || !f.Required }

// seen adds the lines of a field and of those in it to a list.
func (f *field) seen(list []*field, depth int) []*field {
	f.stale, f.depth = true, depth
	if !f.silent() {
		list = append(list, f)
		depth++
	}
	if f.kind == Object && !f.open {
		return list
	}
	for _, kid := range f.kids {
		list = kid.seen(list, depth)
	}
	return list
}

// names are the members of an object in a few words.
func (f *field) names() string {
	var names []string
	for _, m := range f.Members() {
		if len(names) == 12 {
			names = append(names, f.look.Ellipsis)
			break
		}
		if name := shown(m.Name); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// arrange finds out which fields are seen after some were opened, put in or taken
// out. The focus stays where it was, or goes to what that was in.
func (f *Form) arrange() {
	button := f.focus - len(f.fields)
	at := f.current()
	f.fields = nil
	for _, fd := range f.top {
		f.fields = fd.seen(f.fields, 0)
	}
	if button >= 0 {
		f.focus = len(f.fields) + button
		return
	}
	for ; at != nil; at = at.up {
		if i := slices.Index(f.fields, at); i >= 0 {
			f.focus = i
			return
		}
	}
	f.focus = min(f.focus, max(len(f.fields)-1, 0))
}

// first is the field that has to be filled in first, or else the first one.
func (f *Form) first() int {
	for i, fd := range f.fields {
		if !fd.stop() || !fd.Required || fd.kind == Choice && len(fd.kids) > 0 {
			continue
		}
		if v, err := fd.value(); (err != nil || len(v) == 0) && len(fd.kids) == 0 {
			return i
		}
	}
	return max(slices.IndexFunc(f.fields, (*field).stop), 0)
}

// find is the field that a problem is at, as far as that is seen, and the path from
// there. Problems do not say which item of a list they are about.
func (f *Form) find(p problem) (at *field, rest []string) {
	if p.at != nil {
		return p.at, nil
	}
	in, rest := f.top, append([]string{p.name}, p.path...)
	for len(rest) > 0 {
		next := (*field)(nil)
		for _, fd := range in {
			if fd.Inline {
				for _, alternative := range fd.kids {
					in = append(in[:len(in):len(in)], alternative.kids...)
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
		for len(rest) > 0 && len(next.kids) == 1 && next.kind != Object {
			next = next.kids[0] // the only item, or the alternative
		}
		in = next.kids
		if next.kind != Object {
			break
		}
	}
	return at, rest
}

// act is the effect of Space on a field that holds others: an object is sent or not, a
// list gets an item.
func (f *Form) act(fd *field) {
	switch {
	case fd.kind == Array:
		f.insert(fd, len(fd.kids))
		return
	case fd.Required:
		return
	case fd.open:
		fd.open = false
	default:
		fd.unfold()
	}
	fd.changed()
	f.edited()
}

// insert puts an item into a list and goes to it.
func (f *Form) insert(list *field, at int) {
	if list.tally.live >= maxLive || len(list.kids) >= maxItems {
		f.wrong = "no more items here; " + f.keyOf(doRaw) + " has room for them"
		return
	}
	kid := list.add(at)
	list.changed()
	f.edited()
	f.arrange()
	f.toField(kid)
}

// toField goes to a field, or the first in it that takes the focus.
func (f *Form) toField(fd *field) {
	for at := range fd.all() {
		if i := slices.Index(f.fields, at); i >= 0 && at.stop() {
			f.to(i)
			return
		}
	}
}

// remove takes the item out that the focus is in.
func (f *Form) remove(list, item *field) {
	at := slices.Index(list.kids, item)
	list.drop(list.kids[at : at+1])
	list.kids = slices.Delete(list.kids, at, at+1)
	list.renumber()
	list.changed()
	f.edited()
	f.arrange()
	if len(list.kids) > 0 {
		f.toField(list.kids[min(at, len(list.kids)-1)])
	} else {
		f.toField(list)
	}
}

// shift moves the item with the focus among the others of its list.
func (f *Form) shift(list, item *field, by int) {
	at := slices.Index(list.kids, item)
	if to := at + by; to >= 0 && to < len(list.kids) {
		list.kids[at], list.kids[to] = list.kids[to], list.kids[at]
		list.renumber()
		list.changed()
		f.edited()
		f.arrange()
	}
}

// nestedRow is the line of an object or a list itself.
func (f *Form) nestedRow(fd *field) row {
	l := f.look
	if fd.kind == Array {
		text, button := "no items", "[ add ]"
		if n := len(fd.kids); n > 0 {
			text = termtext.Count(n, "item")
		}
		from := theme.Width(text) + 2
		return row{text: text + "  " + button, hits: []hit{{from, from + len(button), anOption, 0}}}
	}
	if fd.Required {
		return row{}
	}
	text, more := "[-] not sent", ""
	if fd.open {
		text = "[x] sent"
	} else {
		more = "  " + l.Dim.On("has "+fd.names())
	}
	return row{text: text + more, hits: []hit{{0, len(text), anOption, 0}}}
}

// aboutNested says in a few words what a field takes that holds others.
func (f *field) aboutNested() string {
	switch f.kind {
	case Object:
		return "object with " + f.names()
	case Array:
		return "list"
	}
	return fmt.Sprintf("one of %d kinds", len(f.Options))
}
