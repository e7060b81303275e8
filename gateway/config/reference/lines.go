package reference

import (
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/report"
)

// Reader returns a function that returns all keys, with the lines where the config at a
// path sets them now. Without a readable config, no key is set.
func Reader(path string) func() []report.ConfigKey {
	return func() []report.ConfigKey {
		all := Keys()
		if text, err := os.ReadFile(path); err == nil {
			addLines(all, text)
		}
		return all
	}
}

// maxLines is the maximum number of lines that set one key.
const maxLines = 50

func addLines(all []report.ConfigKey, text []byte) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return
	}
	known := make(map[string]*report.ConfigKey, len(all))
	for i := range all {
		known[all[i].Path] = &all[i]
	}
	visit(doc.Content[0], "", "", known)
}

// visit reads a mapping. pattern is its path with NAME for chosen names.
func visit(n *yaml.Node, path, pattern string, known map[string]*report.ConfigKey) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			visit(item, path+"[]", pattern+"[]", known)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name, generic := join(path, key.Value), join(pattern, key.Value)
		if generic == "mcpServers" { // an alias
			generic = "servers"
		}
		k := known[generic]
		if k == nil && pattern != "" {
			generic = join(pattern, "NAME")
		}
		if k != nil && len(k.Set) < maxLines && !slices.ContainsFunc(k.Set, func(l report.ConfigLine) bool { return l.Path == name }) {
			k.Set = append(k.Set, report.ConfigLine{Path: name, Line: key.Line})
		}
		visit(n.Content[i+1], name, generic, known)
	}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
