package config

import "slices"

// Differs names the settings in which two configs differ, but for servers, profiles and
// those that count at once: "gateway.listen", "lua.timeout".
func (c *Config) Differs(o *Config) []string {
	found := differing("gateway.", gatewayKeys(), &c.Gateway, &o.Gateway)
	found = append(found, differing("search.", searchKeys(), &c.Search, &o.Search)...)
	found = append(found, differing("lua.", luaKeys(), &c.Lua, &o.Lua)...)
	found = append(found, differing("log.", logKeys(), &c.Log, &o.Log)...)
	return append(found, differing("tui.", tuiKeys(), &c.TUI, &o.TUI)...)
}

// atOnce are settings that count as soon as they are edited.
var atOnce = []string{"gateway.roots", "gateway.meta_tools", "gateway.meta_tools_above"}

func differing[T any](section string, table []field[T], a, b *T) (found []string) {
	for _, f := range table {
		if name := section + f.name; !slices.Contains(atOnce, name) && !f.same(a, b) {
			found = append(found, name)
		}
	}
	return found
}
