package compare

import (
	"cmp"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// match compares two values, of which one may be nil.
func match(a, b *value, depth int) node {
	n := node{a: a, b: b, ia: -1, ib: -1}
	switch {
	case a != nil && a.ignored || b != nil && b.ignored:
		n.op = Ignored
	case b == nil:
		n.op = Removed
	case a == nil:
		n.op = Added
	case a.kind != b.kind || a.kind != '{' && a.kind != '[':
		n.op = Changed
		if a.hash == b.hash || a.kind == b.kind && a.kind == '"' && haveSameStart(a, b) {
			n.op = Same
		}
	case a.hash == b.hash:
		n.op = Same
	default:
		n.op = Changed
		if depth < maxDepth {
			n.matchKids(depth)
		}
	}
	return n
}

// haveSameStart reports whether the known beginnings of two strings are equal.
func haveSameStart(a, b *value) bool {
	if !a.open && !b.open {
		return false
	}
	x, _ := rawjson.String(a.text)
	y, _ := rawjson.String(b.text)
	if a.open && b.open {
		n := min(len(x), len(y))
		return x[:n] == y[:n]
	}
	return a.open && strings.HasPrefix(y, x) || b.open && strings.HasPrefix(x, y)
}

func (n *node) matchKids(depth int) {
	if n.a.kind == '{' {
		n.matchMembers(depth)
	} else {
		n.matchElements(depth)
	}
	// Without a difference inside, only parts differ that one side lacks because it was
	// cut.
	if len(n.kids) == 0 || !slices.ContainsFunc(n.kids, func(k node) bool { return k.op != Same && k.op != Ignored && k.op != Unknown }) {
		if n.a.open || n.b.open {
			n.op = Same
		}
	}
}

type memberKey struct {
	name       string
	occurrence int
}

// matchMembers pairs members by name, in the order of A. Members of B only follow their
// predecessor in B.
func (n *node) matchMembers(depth int) {
	at := make(map[memberKey]int, len(n.b.kids))
	for i := range n.b.kids {
		at[memberKey{n.b.kids[i].name, n.b.kids[i].occurrence}] = i
	}
	paired := make([]bool, len(n.b.kids))
	partner := make([]int, len(n.a.kids))
	for i := range n.a.kids {
		j, ok := at[memberKey{n.a.kids[i].name, n.a.kids[i].occurrence}]
		if !ok {
			j = -1
		} else {
			paired[j] = true
		}
		partner[i] = j
	}
	addedFrom := func(j int) {
		for ; j < len(paired) && !paired[j]; j++ {
			n.add(nil, &n.b.kids[j], -1, j, depth)
		}
	}
	addedFrom(0)
	for i := range n.a.kids {
		if j := partner[i]; j >= 0 {
			n.add(&n.a.kids[i], &n.b.kids[j], i, j, depth)
			addedFrom(j + 1)
		} else {
			n.add(&n.a.kids[i], nil, i, -1, depth)
		}
	}
}

// add appends a pair. A value that the other side may have lost is unknown.
func (n *node) add(a, b *value, i, j, depth int) {
	k := match(a, b, depth+1)
	k.ia, k.ib = i, j
	if k.op == Removed && n.b.open || k.op == Added && n.a.open {
		if n.a.kind == '{' {
			k.op = Unknown
		}
	}
	n.kids = append(n.kids, k)
}

// matchElements aligns the elements of arrays.
func (n *node) matchElements(depth int) {
	a, b := n.a.kids, n.b.kids
	i, j := 0, 0
	for _, p := range alignValues(a, b) {
		for ; i < p[0]; i++ {
			n.add(&a[i], nil, i, -1, depth)
		}
		for ; j < p[1]; j++ {
			n.add(nil, &b[j], -1, j, depth)
		}
		n.add(&a[i], &b[j], i, j, depth)
		i, j = i+1, j+1
	}
	first := len(n.kids)
	for ; i < len(a); i++ {
		n.add(&a[i], nil, i, -1, depth)
	}
	for ; j < len(b); j++ {
		n.add(nil, &b[j], -1, j, depth)
	}
	for i := first; i < len(n.kids); i++ { // the end of a cut array is missing
		if k := &n.kids[i]; k.op == Removed && n.b.open || k.op == Added && n.a.open {
			k.op = Unknown
		}
	}
}

// alignValues returns pairs of indexes, ascending in both: equal elements, and between
// them the pairs that differ least.
func alignValues(a, b []value) (pairs [][2]int) {
	same := func(i, j int) bool { return a[i].hash == b[j].hash }
	i, j := 0, 0
	gap := func(ei, ej int) {
		for _, p := range similarPairs(a[i:ei], b[j:ej]) {
			pairs = append(pairs, [2]int{i + p[0], j + p[1]})
		}
	}
	for _, p := range align(len(a), len(b), same, func(i int) uint64 { return a[i].hash }, func(j int) uint64 { return b[j].hash }) {
		gap(p[0], p[1])
		pairs = append(pairs, p)
		i, j = p[0]+1, p[1]+1
	}
	gap(len(a), len(b))
	return pairs
}

// maxTable is the largest table of an exact alignment, in cells.
const maxTable = 1 << 20

// align returns a longest common subsequence of two sequences as pairs of indexes. For
// long ones it is approximate: it aligns elements that are unique in both first.
func align(m, n int, same func(i, j int) bool, hashA, hashB func(int) uint64) (pairs [][2]int) {
	start := 0
	for start < m && start < n && same(start, start) {
		pairs = append(pairs, [2]int{start, start})
		start++
	}
	tail := 0
	for tail < m-start && tail < n-start && same(m-1-tail, n-1-tail) {
		tail++
	}
	ea, eb := m-tail, n-tail
	if (ea-start)*(eb-start) <= maxTable {
		pairs = append(pairs, longest(start, ea, start, eb, same)...)
	} else {
		i, j := start, start
		within := func(ei, ej int) {
			if (ei-i)*(ej-j) <= maxTable {
				pairs = append(pairs, longest(i, ei, j, ej, same)...)
			}
		}
		for _, p := range uniquePairs(start, ea, start, eb, hashA, hashB) {
			within(p[0], p[1])
			pairs = append(pairs, p)
			i, j = p[0]+1, p[1]+1
		}
		within(ea, eb)
	}
	for k := tail; k > 0; k-- {
		pairs = append(pairs, [2]int{m - k, n - k})
	}
	return pairs
}

// longest returns a longest common subsequence of the ranges [i0, i1) and [j0, j1).
func longest(i0, i1, j0, j1 int, same func(i, j int) bool) (pairs [][2]int) {
	m, n := i1-i0, j1-j0
	if m == 0 || n == 0 {
		return nil
	}
	w := n + 1
	table := make([]int32, (m+1)*w) // length of the subsequence from (i, j) on
	for i := m - 1; i >= 0; i-- {
		for j := n - 1; j >= 0; j-- {
			if same(i0+i, j0+j) {
				table[i*w+j] = table[(i+1)*w+j+1] + 1
			} else {
				table[i*w+j] = max(table[(i+1)*w+j], table[i*w+j+1])
			}
		}
	}
	for i, j := 0, 0; i < m && j < n; {
		switch {
		case same(i0+i, j0+j):
			pairs = append(pairs, [2]int{i0 + i, j0 + j})
			i, j = i+1, j+1
		case table[(i+1)*w+j] >= table[i*w+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// uniquePairs returns the longest ascending sequence of pairs whose elements are unique in
// their ranges.
func uniquePairs(i0, i1, j0, j1 int, hashA, hashB func(int) uint64) [][2]int {
	const several = -2
	at := make(map[uint64][2]int, i1-i0)
	for i := i0; i < i1; i++ {
		if _, ok := at[hashA(i)]; ok {
			at[hashA(i)] = [2]int{several, several}
		} else {
			at[hashA(i)] = [2]int{i, -1}
		}
	}
	for j := j0; j < j1; j++ {
		if p, ok := at[hashB(j)]; ok && p[1] == -1 {
			at[hashB(j)] = [2]int{p[0], j}
		} else if ok {
			at[hashB(j)] = [2]int{several, several}
		}
	}
	var all [][2]int
	for _, p := range at {
		if p[0] >= 0 && p[1] >= 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y [2]int) int { return cmp.Compare(x[0], y[0]) })
	return ascending(all)
}

// ascending returns the longest subsequence of pairs whose second indexes ascend.
func ascending(all [][2]int) [][2]int {
	var ends []int // of subsequences by length, indexes of all
	before := make([]int, len(all))
	for i, p := range all {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, j int) int { return cmp.Compare(all[e][1], j) })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	out := make([][2]int, len(ends))
	if len(ends) == 0 {
		return out
	}
	for i, at := len(ends)-1, ends[len(ends)-1]; i >= 0; i, at = i-1, before[at] {
		out[i] = all[at]
	}
	return out
}

// maxGap is the largest table of pairs whose similarity is computed, in cells.
const maxGap = 1 << 14

// similarPairs pairs elements that differ. Unequal numbers of them are aligned so that
// the pairs have most in common.
func similarPairs(a, b []value) (pairs [][2]int) {
	m, n := len(a), len(b)
	switch {
	case m == 0 || n == 0:
		return nil
	case m == 1 && n == 1 && a[0].kind == b[0].kind:
		return [][2]int{{0, 0}}
	}
	if m*n > maxGap {
		for i := range min(m, n) {
			pairs = append(pairs, [2]int{i, i})
		}
		return pairs
	}
	w := n + 1
	score := make([]float64, m*n)
	table := make([]float64, (m+1)*w)
	for i := m - 1; i >= 0; i-- {
		for j := n - 1; j >= 0; j-- {
			s := similarity(&a[i], &b[j])
			score[i*n+j] = s
			table[i*w+j] = max(table[(i+1)*w+j], table[i*w+j+1], table[(i+1)*w+j+1]+s)
		}
	}
	for i, j := 0, 0; i < m && j < n; {
		s := score[i*n+j]
		switch {
		case s > 0 && table[i*w+j] == table[(i+1)*w+j+1]+s:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case table[i*w+j] == table[(i+1)*w+j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// idNames are names of members that identify an object.
var idNames = []string{"id", "name", "key", "uri", "uriTemplate"}

// similarity returns a number from 0 (never paired) to 1.
func similarity(a, b *value) float64 {
	const different = 0.1
	switch {
	case a.hash == b.hash:
		return 1
	case a.kind != b.kind:
		return different / 2
	case a.kind == '{':
		return objectSimilarity(a, b)
	case a.kind == '[':
		equal := 0
		for i := range min(len(a.kids), len(b.kids)) {
			if a.kids[i].hash == b.kids[i].hash {
				equal++
			}
		}
		return different + (1-different)*float64(equal)/float64(max(len(a.kids), len(b.kids), 1))
	}
	return different
}

// maxCompared is the number of members of an object whose similarity counts.
const maxCompared = 30

func objectSimilarity(a, b *value) float64 {
	const base = 0.05
	equal, shared := 0.0, 0
	left, right := a.kids[:min(len(a.kids), maxCompared)], b.kids[:min(len(b.kids), maxCompared)]
	for i := range right {
		k := &right[i]
		other := memberNamed(left, k.name, i)
		if other == nil || k.ignored {
			continue
		}
		isID := k.kind != '{' && k.kind != '[' && slices.Contains(idNames, k.name)
		if other.hash != k.hash && isID {
			return 0
		}
		shared++
		if other.hash == k.hash {
			equal++
			if isID {
				equal += 2
			}
		}
	}
	if shared == 0 && len(left) > 0 && len(right) > 0 {
		return 0
	}
	return min(1, base+equal/float64(max(len(left), len(right), 1)+2))
}

// memberNamed returns a member, which is probably at index i, or nil.
func memberNamed(members []value, name string, i int) *value {
	if i < len(members) && members[i].name == name {
		return &members[i]
	}
	for i := range members {
		if members[i].name == name {
			return &members[i]
		}
	}
	return nil
}
