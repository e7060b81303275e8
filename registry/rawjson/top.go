package rawjson

// topMembers records the positions of the outermost object's members while a text is checked in one
// part. They can then be read without another scan.
type topMembers struct {
	disabled bool // nothing is recorded: a part of the text was checked before
	count    int  // of those that were found
	members  [maxTopMembers]topMember
}

const (
	// maxTopMembers is how many members are noted, and maxTopText in texts of which size; in larger
	// ones, see [Checker.RecordShape].
	maxTopMembers = 6
	maxTopText    = 64 << 10
)

// topMember has places in the text: space may stand around the value.
type topMember struct{ name, nameEnd, value, end uint16 }

// addName records the position of a member's name.
func (t *topMembers) addName(depth, name, nameEnd int) {
	if depth != 1 || t.disabled {
		return
	}
	if t.count < maxTopMembers {
		t.members[t.count] = topMember{name: uint16(name), nameEnd: uint16(nameEnd)}
	}
	t.count++
}

// setValueStart records where the value of the last member begins.
func (t *topMembers) setValueStart(depth, at int) {
	if depth == 1 && !t.disabled && t.count <= maxTopMembers {
		t.members[t.count-1].value = uint16(at)
	}
}

// setValueEnd records where the value ends, unless the text is an array.
func (t *topMembers) setValueEnd(depth, at int) {
	if depth == 1 && !t.disabled && t.count > 0 && t.count <= maxTopMembers {
		t.members[t.count-1].end = uint16(at)
	}
}

// MemberCount is how many members the text has that End has accepted, an object; 0, too, when
// they were not noted, because they are many or the text is large or came in pieces.
func (c *Checker) MemberCount() int {
	if c.top.disabled || c.top.count > maxTopMembers {
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
