package pane

import (
	"strings"

	"goblin/registry"
	"goblin/tui/uicontext"
)

// isAbout returns a function that reports whether a record is about an item or server. An
// empty item matches all.
func isAbout(it uicontext.Item) func(*registry.TrafficRecord) bool {
	if it.Name == "" {
		return func(r *registry.TrafficRecord) bool { return it.Server == "" || r.Server == it.Server }
	}
	qualified := it.Server + "/" + it.Name
	var globs [][]string
	if it.Kind == registry.Template {
		globs = [][]string{templateLiterals(it.Listed), templateLiterals(it.Name)}
	}
	return func(r *registry.TrafficRecord) bool {
		if r.Server != it.Server || r.Name == "" {
			return false
		}
		if r.Name == it.Listed || r.Name == it.Name || r.Name == qualified {
			return true
		}
		for _, parts := range globs {
			if spaceBetween(parts, r.Name) {
				return true
			}
		}
		return false
	}
}

// spaceBetween reports whether s consists of the parts in order, with any text between
// them.
func spaceBetween(parts []string, s string) bool {
	last := len(parts) - 1
	if last <= 0 {
		return last == 0 && s == parts[0]
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[last])
}

func itemOfRecord(reg *registry.Registry, r *registry.TrafficRecord) uicontext.Item {
	if r.Name == "" {
		return uicontext.Item{}
	}
	var all []func(string) (registry.Target, error)
	switch {
	case r.Method == "tools/call":
		all = append(all, reg.ResolveTool)
	case r.Method == "prompts/get":
		all = append(all, reg.ResolvePrompt)
	case strings.Contains(r.Method, "resources/"), strings.Contains(r.Name, ":"):
		all = append(all, reg.ResolveResource)
	default: // progress and cancellation of any request
		all = append(all, reg.ResolveTool, reg.ResolvePrompt)
	}
	for _, resolve := range all {
		for _, name := range []string{r.Name, r.Server + "/" + r.Name, "mcp://" + r.Server + "/" + r.Name} {
			t, err := resolve(name)
			if err != nil || r.Server != "" && t.Server != r.Server {
				if r.Server == "" {
					break
				}
				continue
			}
			e := t.Entry
			if e == nil {
				e = t.Template
			}
			if e != nil {
				return uicontext.EntryItem(e)
			}
		}
	}
	return uicontext.Item{}
}

func templateLiterals(template string) []string {
	var parts []string
	for {
		before, rest, _ := strings.Cut(template, "{")
		_, after, closed := strings.Cut(rest, "}")
		if !closed {
			return append(parts, template)
		}
		parts, template = append(parts, before), after
	}
}

// unlessReadOnly returns a hint at a request, or another one in a recording.
func (a *Layout) unlessReadOnly(hint string) string {
	if a.ReadOnly == "" {
		return hint
	}
	return "This is a recording; " + a.KeyOf("inspect") + " shows its requests."
}
