package report

import "strings"

// Reload is the outcome of reloading an edited config.
type Reload struct {
	// Added, Changed and Removed are servers.
	Added, Removed []string
	Changed        []ServerChange
	Applied        []string // other settings that apply now, such as "rules"
	Later          []string // settings that apply at the daemon's next start
	Invalid        bool     // nothing was applied; the registry has the mistakes
}

// ServerChange is a server with its changed keys. Without keys, the value of a variable
// changed.
type ServerChange struct {
	Server string
	Keys   []string
}

// Empty reports whether nothing changed.
func (r *Reload) Empty() bool {
	return len(r.Added)+len(r.Removed)+len(r.Changed)+len(r.Applied)+len(r.Later) == 0
}

// String describes the outcome in one line: "reloaded: + web, ~ odd (args), - old". Names
// are untrusted.
func (r *Reload) String() string {
	switch {
	case r.Invalid:
		return "config not reloaded"
	case r.Empty():
		return "no changes"
	}
	var all []string
	for _, name := range r.Added {
		all = append(all, "+ "+name)
	}
	for _, c := range r.Changed {
		text := "~ " + c.Server
		if len(c.Keys) > 0 {
			text += " (" + strings.Join(c.Keys, ", ") + ")"
		}
		all = append(all, text)
	}
	for _, name := range r.Removed {
		all = append(all, "- "+name)
	}
	all = append(all, r.Applied...)
	text := "reloaded: " + strings.Join(all, ", ")
	switch later := strings.Join(r.Later, ", "); {
	case later == "":
	case len(all) == 0:
		text = "applies after a restart of the daemon (goblin stop): " + later
	default:
		text += "; after a restart of the daemon (goblin stop): " + later
	}
	return text
}
