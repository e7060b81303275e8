package worker

import (
	"slices"
	"strings"

	"goblin/registry/suggest"
)

var (
	keywords = strings.Fields(`and break do else elseif end false for function goto if in local nil not or repeat
		return then true until while`)
	// ReservedNames are the names of Lua's own, which no server may take, those that the
	// sandbox leaves out included.
	ReservedNames = strings.Fields(`_G _VERSION assert collectgarbage coroutine debug dofile error getfenv getmetatable io
		ipairs load loadfile loadstring math module newproxy next os package pairs pcall print rawequal rawget rawset
		require select setfenv setmetatable string table tonumber tostring type unpack xpcall
		all json null prompts resources result search servers tools`)
)

// ToIdentifier spells a name as scripts can write it: other characters than letters, digits
// and _ become _, and _ goes in front of one that begins with a digit or is a keyword.
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

// Global is the identifier of a server.
func Global(name string) string {
	id := ToIdentifier(name)
	if slices.Contains(ReservedNames, id) {
		return "_" + id
	}
	return id
}

const maxCompared = 2000 // names that a wrong one is compared with

// DidYouMean asks whether one of the names was meant by a wrong one. Those that are equally
// near come in the order of the alphabet, however the names are ordered: scripts keep them
// in tables.
func DidYouMean(wrong string, names []string) string {
	f := suggest.New(wrong)
	names = slices.Sorted(slices.Values(names))
	for _, name := range names[:min(len(names), maxCompared)] {
		f.Add(name, name)
	}
	return suggest.DidYouMean(f.Best()...)
}
