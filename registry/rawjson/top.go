package rawjson

// topMembers records the positions of the outermost object's members while a text is
// checked in one part. They can then be read without another scan.
type topMembers struct {
	disabled bool // a part of the text was checked before
	count    int  // including unrecorded ones
	members  [maxTopMembers]topMember
}

const (
	// Limits of recorded members, and of the text in bytes. For larger texts see
	// [Checker.RecordShape].
	maxTopMembers = 6
	maxTopText    = 64 << 10
)

// topMember has indices in the text. The value may include whitespace.
type topMember struct{ name, nameEnd, value, end uint16 }

func (t *topMembers) addName(depth, name, nameEnd int) {
	if depth != 1 || t.disabled {
		return
	}
	if t.count < maxTopMembers {
		t.members[t.count] = topMember{name: uint16(name), nameEnd: uint16(nameEnd)}
	}
	t.count++
}

func (t *topMembers) setValueStart(depth, at int) {
	if depth == 1 && !t.disabled && t.count <= maxTopMembers {
		t.members[t.count-1].value = uint16(at)
	}
}

func (t *topMembers) setValueEnd(depth, at int) {
	if depth == 1 && !t.disabled && t.count > 0 && t.count <= maxTopMembers {
		t.members[t.count-1].end = uint16(at)
	}
}

// MemberCount returns the number of members of an object that End accepted. It returns 0
// if they are too many to record, or the text is large or came in parts.
func (c *Checker) MemberCount() int {
	if c.top.disabled || c.top.count > maxTopMembers {
		return 0
	}
	return c.top.count
}

// Member returns member n as yielded by [Members].
func (c *Checker) Member(src []byte, n int) (Key, []byte) {
	m := &c.top.members[n]
	from, to := AfterSpace(src, int(m.value)), int(m.end)
	for to > from && src[to-1] <= ' ' {
		to--
	}
	return Key(src[m.name:m.nameEnd]), src[from:to]
}
