package rawjson

// DropMembers returns the edits of outer that take members out of obj, an object within it,
// and how many members are left.
func DropMembers(outer, obj []byte, drop func(Key) bool) (edits []Edit, kept int) {
	from := -1 // where a run of dropped members begins
	last := -1 // the end of the last member that stays
	end := 0
	for k, v := range Members(obj) {
		at := Offset(outer, k)
		end = Offset(outer, v) + len(v)
		switch {
		case drop(k):
			if from < 0 {
				from = at
			}
			continue
		case from >= 0:
			edits = append(edits, Edit{Start: from, End: at})
			from = -1
		}
		last = end
		kept++
	}
	if from >= 0 {
		if last >= 0 {
			from = last // with the comma before it
		}
		edits = append(edits, Edit{Start: from, End: end})
	}
	return edits, kept
}
