package configedit

import (
	"bytes"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Line returns the line of a server's entry in the config at path, from 1. It returns 0
// if there is none. The file may have mistakes.
func Line(path, server string) int {
	f, err := OpenBroken(path)
	if err != nil || server == "" {
		return 0
	}
	return f.line(server)
}

func (f *File) line(server string) int {
	if f.json {
		if b, err := f.jsonServers(); err == nil {
			if at := b.find(server); at >= 0 {
				return f.lineAt(b.items[at].at.from)
			}
		}
	} else if root, err := f.root(); err == nil {
		_, all := f.servers(root)
		if k, _ := find(all, server); k != nil {
			return k.Line
		}
		if k, _ := findMerged(all, server); k != nil {
			return k.Line
		}
		return 0
	}
	// The text cannot be parsed.
	entry, err := regexp.Compile(`(?m)(?:^|[\s{,])["']?` + regexp.QuoteMeta(server) + `["']?[ \t]*:`)
	if err != nil {
		return 0
	}
	if at := entry.FindIndex(f.text); at != nil {
		return f.lineAt(at[1])
	}
	return 0
}

func (f *File) lineAt(at int) int { return bytes.Count(f.text[:at], []byte("\n")) + 1 }

// findMerged also finds a key that "<<" merges into a mapping.
func findMerged(n *yaml.Node, key string) (k, v *yaml.Node) {
	if k, v = find(n, key); k != nil || n == nil || n.Kind != yaml.MappingNode {
		return k, v
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		merged := n.Content[i+1]
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		if merged.Kind != yaml.SequenceNode {
			merged = &yaml.Node{Content: []*yaml.Node{merged}}
		}
		for _, m := range merged.Content {
			if m.Kind == yaml.AliasNode {
				m = m.Alias
			}
			if k, v = find(m, key); k != nil {
				return k, v
			}
		}
	}
	return nil, nil
}
