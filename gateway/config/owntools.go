package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// CallTool is the name of Goblin's own tool that calls others. Clients that list all
// tools don't need it, so it must be named or comes with [ExposeSearch].
const CallTool = "call_tool"

// searchTools are required for finding and calling tools.
var searchTools = []string{"search_tools", "describe_tool", CallTool}

var toolNames = []string{
	"catalog_servers", "catalog_tools", "describe_tool", "search_tools",
	"catalog_prompts", "describe_prompt", "search_prompts",
	"catalog_resources", "describe_resource", "search_resources",
	"catalog_resource_templates", "execute_lua", CallTool,
	"catalog_skills", "search_skills", // only while servers have skills
}

// OwnTools returns the names of all of Goblin's own tools.
func OwnTools() []string { return slices.Clone(toolNames) }

// MetaTools selects Goblin's own tools.
type MetaTools struct {
	Unset bool // another setting decides
	Auto  bool // all, for clients that see many entries
	All   bool
	Names []string
}

// Has reports whether Goblin's own tool with this name is offered. Auto counts as all.
func (m MetaTools) Has(name string) bool {
	return (m.All || m.Auto) && name != CallTool || slices.Contains(m.Names, name)
}

// Expose selects the server tools that a profile lists.
type Expose string

// ExposeSearch lists no server tools. Clients find them with Goblin's own tools and can
// still call them.
const (
	ExposeAll    Expose = "all"
	ExposeSearch Expose = "search"
)

// ProfileMetaTools returns the own tools for a profile, or for clients without one.
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
