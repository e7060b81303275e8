package interpreter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// reserved are the words that no identifier may be, and the names of Lua's own
// that no server may take, those that the sandbox leaves out included.
var (
	keywords = strings.Fields(`and break do else elseif end false for function goto if in local nil not or repeat
		return then true until while`)
	reserved = strings.Fields(`_G _VERSION assert collectgarbage coroutine debug dofile error getfenv getmetatable io
		ipairs load loadfile loadstring math module newproxy next os package pairs pcall print rawequal rawget rawset
		require select setfenv setmetatable string table tonumber tostring type unpack xpcall
		all json null prompts resources result search servers tools`)
)

// identifier is what a script can write for a name: other characters than
// letters, digits and _ become _, and _ goes in front of what begins with a
// digit or is a keyword.
func identifier(name string) string {
	id := []byte(name)
	for i, c := range id {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			id[i] = '_'
		}
	}
	if len(id) == 0 || id[0] >= '0' && id[0] <= '9' || slices.Contains(keywords, string(id)) {
		return "_" + string(id)
	}
	return string(id)
}

// global is the identifier of a server.
func global(name string) string {
	id := identifier(name)
	if slices.Contains(reserved, id) {
		return "_" + id
	}
	return id
}

const maxCompared = 2000 // names that a wrong one is compared with

// nearestText names the (at most three) names that look most like a wrong one.
func nearestText(wrong string, names []string) string {
	type near struct {
		name string
		off  int
	}
	limit := min(6, max(1, len(wrong)/3))
	if len(wrong) > 128 {
		return ""
	}
	var found []near
	want := strings.ToLower(wrong)
	for _, name := range names[:min(len(names), maxCompared)] {
		if off := distance(want, strings.ToLower(name)); off <= limit {
			found = append(found, near{name, off})
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.off, b.off) })
	var texts []string
	for _, f := range found[:min(len(found), 3)] {
		texts = append(texts, fmt.Sprintf("%q", f.name))
	}
	return "; did you mean " + strings.Join(texts, ", ") + "?"
}

// distance is the number of insertions, deletions and replacements between two
// names of at most 256 bytes; those that are longer are far from all others.
func distance(a, b string) int {
	if len(a) > 256 || len(b) > 256 {
		return 256
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
