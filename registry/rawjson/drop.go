package rawjson

// DropMembers returns the edits of outer that remove members from its object obj, and the
// number of remaining members.
func DropMembers(outer, obj []byte, drop func(Key) bool) (edits []Edit, kept int) {
	from := -1 // start of a run of dropped members
	last := -1 // end of the last kept member
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
