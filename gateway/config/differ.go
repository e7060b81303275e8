package config

// DifferingServers compares the servers of two configs. changed has the keys of each
// changed server; without keys, the value of a variable changed.
func (c *Config) DifferingServers(o *Config) (added, removed []string, changed map[string][]string) {
	changed = make(map[string][]string)
	for i := range o.Servers {
		s := &o.Servers[i]
		before, ok := c.Server(s.Name)
		switch {
		case !ok:
			added = append(added, s.Name)
		case !before.Equal(s) || before.Problem != s.Problem:
			changed[s.Name] = before.differingKeys(s)
		}
	}
	for i := range c.Servers {
		if _, ok := o.Server(c.Servers[i].Name); !ok {
			removed = append(removed, c.Servers[i].Name)
		}
	}
	return added, removed, changed
}

func (s *Server) differingKeys(o *Server) (found []string) {
	a, b := s.normal(), o.normal()
	for _, f := range serverKeys() {
		if !f.legacy && !f.same(&a, &b) {
			found = append(found, f.name)
		}
	}
	return found
}

// DifferingLiveSettings lists the differing settings that apply at once, except servers.
func (c *Config) DifferingLiveSettings(o *Config) (found []string) {
	for _, f := range topKeys() {
		switch f.name {
		case "servers", "mcpServers":
		case "gateway":
			found = append(found, differingKeys("gateway.", gatewayKeys(), &c.Gateway, &o.Gateway, true)...)
		case "tui":
			found = append(found, differingKeys("tui.", tuiKeys(), &c.TUI, &o.TUI, true)...)
		case "search", "lua", "log": // see DifferingSettings
		case "rules":
			if !c.RulesEqual(o) {
				found = append(found, f.name)
			}
		default:
			if !f.same(c, o) {
				found = append(found, f.name)
			}
		}
	}
	return found
}

// ServerKey returns the description of a server's key, and its values if they are few.
func ServerKey(name string) (help string, options []string) {
	def := defaultServer()
	for _, f := range serverKeys() {
		if f.name != name || f.legacy {
			continue
		}
		s := f.schema(&def)
		help, _ = s["description"].(string)
		if all, ok := s["anyOf"].([]any); ok {
			if first, ok := all[0].(object); ok {
				options, _ = first["enum"].([]string)
			}
		}
	}
	return help, options
}
