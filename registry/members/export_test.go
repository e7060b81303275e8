package members

import "goblin/registry/rawjson"

// Walk calls f for every member that decides, of every object in the text that
// Goblin looks into: there or not.
func (t *Tree) Walk(text []byte, f func(obj []byte, name string)) {
	if t == nil {
		return
	}
	if t.each != nil {
		for e := range rawjson.Elements(text) {
			t.each.Walk(e, f)
		}
	}
	if !rawjson.IsObject(text) {
		return
	}
	if t.values != nil {
		for _, v := range rawjson.Members(text) {
			t.values.Walk(v, f)
		}
	}
	for _, m := range t.members {
		f(text, m.name)
		m.tree.Walk(rawjson.Get(text, m.name), f)
	}
}
