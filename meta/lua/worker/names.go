package worker

import (
	"slices"
	"strings"

	"goblin/registry/suggest"
)

var (
	keywords = strings.Fields(`and break do else elseif end false for function goto if in local nil not or repeat
		return then true until while`)
	// reservedNames are Lua's own names, including those missing in the sandbox. Servers
	// cannot have them.
	reservedNames = strings.Fields(`_G _VERSION assert collectgarbage coroutine debug dofile error getfenv getmetatable io
		ipairs load loadfile loadstring math module newproxy next os package pairs pcall print rawequal rawget rawset
		require select setfenv setmetatable string table tonumber tostring type unpack xpcall
		all json null prompts resources result search servers tools`)
)

// ToIdentifier converts a name to a Lua identifier. It replaces invalid characters by _,
// and adds a leading _ to keywords and names that begin with a digit.
func ToIdentifier(name string) string {
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

// Global returns the identifier of a server.
func Global(name string) string {
	id := ToIdentifier(name)
	if slices.Contains(reservedNames, id) {
		return "_" + id
	}
	return id
}

const maxCompared = 2000 // names compared with a wrong one

// DidYouMean returns a suggestion for a wrong name, or "". Equally similar names are
// sorted, because scripts list them in random order.
func DidYouMean(wrong string, names []string) string {
	f := suggest.New(wrong)
	names = slices.Sorted(slices.Values(names))
	for _, name := range names[:min(len(names), maxCompared)] {
		f.Add(name, name)
	}
	return suggest.DidYouMean(f.Best()...)
}
