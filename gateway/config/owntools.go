package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// CallTool is that of Goblin's own tools which calls others. Who lists all of them has
// no use for it, so it has to be named, or comes with [ExposeSearch].
const CallTool = "call_tool"

// searchTools are Goblin's own tools without which nothing can be found and called.
var searchTools = []string{"search_tools", "describe_tool", CallTool}

// toolNames are the names of Goblin's own tools.
var toolNames = []string{
	"catalog_servers", "catalog_tools", "describe_tool", "search_tools",
	"catalog_prompts", "describe_prompt", "search_prompts",
	"catalog_resources", "describe_resource", "search_resources",
	"catalog_resource_templates", "execute_lua", CallTool,
	"catalog_skills", "search_skills", // while there are some
}

// OwnTools are the names of all of Goblin's own tools, chosen or not.
func OwnTools() []string { return slices.Clone(toolNames) }

// MetaTools chooses Goblin's own tools.
type MetaTools struct {
	Unset bool // as somebody else chooses
	Auto  bool // all, for those who see many entries
	All   bool
	Names []string
}

// Has reports whether Goblin's own tool of that name is offered, if it is not for those
// alone who see many entries.
func (m MetaTools) Has(name string) bool {
	return (m.All || m.Auto) && name != CallTool || slices.Contains(m.Names, name)
}

// Expose says which tools of servers a profile lists.
type Expose string

// ExposeSearch lists none: they are found by Goblin's own, and called all the same.
const (
	ExposeAll    Expose = "all"
	ExposeSearch Expose = "search"
)

// ProfileMetaTools are those of a profile, or of clients that have none.
func (c *Config) ProfileMetaTools(p *Profile) MetaTools {
	m := p.MetaTools
	if m.Unset {
		m = c.Gateway.MetaTools
	}
	if p.Expose != ExposeSearch {
		return m
	}
	return MetaTools{All: m.All || m.Auto, Names: slices.Concat(m.Names, searchTools)}
}

// metaTools is everything, nothing, some names, or everything for clients that need it.
func metaTools() kind[MetaTools] {
	const auto = "auto"
	some := selected(word(toolNames))
	return kind[MetaTools]{
		schema: func(def MetaTools) object {
			s := some.schema(selection{All: def.All})
			s["anyOf"] = append(s["anyOf"].([]any), object{"enum": []string{auto}})
			delete(s, "default")
			if def.Auto {
				s["default"] = auto
			}
			return s
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *MetaTools) {
			if n.Kind == yaml.ScalarNode && n.Value == auto {
				*dst = MetaTools{Auto: true}
				return
			}
			if _, ok := boolean(n); !ok && n.Kind != yaml.SequenceNode {
				r.fail(n, "%s must be auto, true, false or a list of names, not %s", at, describe(n))
				return
			}
			var chosen selection
			some.read(r, at, n, &chosen)
			*dst = MetaTools{All: chosen.All, Names: chosen.Names}
		},
	}
}
