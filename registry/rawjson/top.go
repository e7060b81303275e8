package rawjson

// top notes where the members of the outermost object stand in a text that is checked all
// at once, so that they can be read without going through it again.
type top struct {
	off     bool // nothing is noted: a part of the text was checked before
	count   int  // of those that were found
	members [maxTop]topMember
}

const (
	// maxTop is how many members are noted, and maxTopText in texts of which size; in larger
	// ones, see [Checker.RecordShape].
	maxTop     = 6
	maxTopText = 64 << 10
)

// topMember has places in the text: space may stand around the value.
type topMember struct{ name, nameEnd, value, end uint16 }

// named notes the name of a member at a depth.
func (t *top) named(depth, name, nameEnd int) {
	if depth != 1 || t.off {
		return
	}
	if t.count < maxTop {
		t.members[t.count] = topMember{name: uint16(name), nameEnd: uint16(nameEnd)}
	}
	t.count++
}

// begins notes where the value of the member begins that was named last.
func (t *top) begins(depth, at int) {
	if depth == 1 && !t.off && t.count <= maxTop {
		t.members[t.count-1].value = uint16(at)
	}
}

// ends notes where it ends, unless the text is an array.
func (t *top) ends(depth, at int) {
	if depth == 1 && !t.off && t.count > 0 && t.count <= maxTop {
		t.members[t.count-1].end = uint16(at)
	}
}

// MemberCount is how many members the text has that End has accepted, an object; 0, too, when
// they were not noted, because they are many or the text is large or came in pieces.
func (c *Checker) MemberCount() int {
	if c.top.off || c.top.count > maxTop {
		return 0
	}
	return c.top.count
}

// Member is one of those, as [Members] would yield it.
func (c *Checker) Member(src []byte, n int) (Key, []byte) {
	m := &c.top.members[n]
	from, to := AfterSpace(src, int(m.value)), int(m.end)
	for to > from && src[to-1] <= ' ' {
		to--
	}
	return Key(src[m.name:m.nameEnd]), src[from:to]
}
