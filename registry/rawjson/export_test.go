package rawjson

// Walk calls f for every relevant member of every object that Goblin reads in the text,
// even for missing members.
func (t *KeyTree) Walk(text []byte, f func(obj []byte, name string)) {
	if t == nil {
		return
	}
	if t.element != nil {
		for e := range Elements(text) {
			t.element.Walk(e, f)
		}
	}
	if !IsObject(text) {
		return
	}
	if t.anyMember != nil {
		for _, v := range Members(text) {
			t.anyMember.Walk(v, f)
		}
	}
	for _, m := range t.members {
		f(text, m.name)
		m.tree.Walk(Get(text, m.name), f)
	}
}
