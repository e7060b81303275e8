package clientconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"goblin/gateway/config"
)

// Merge combines the servers of all files. Equal servers become one. Different servers
// with the same name get the client's name as a suffix. has returns the entry with a name
// in Goblin's config, or nil. present lists the servers that the config already contains.
func Merge(found []FileServers, has func(name string) map[string]any) (servers, present []Server) {
	taken := func(name string) bool {
		return has(name) != nil || slices.ContainsFunc(servers, func(s Server) bool { return s.Name == name })
	}
	for i := range found {
		for _, s := range found[i].Servers {
			if at := slices.IndexFunc(servers, func(o Server) bool { return isSameServer(&o, &s) }); at >= 0 {
				join(&servers[at], s)
				continue
			}
			if known := has(s.Name); known != nil && Equal(known, s.Keys) {
				present = append(present, s)
				continue
			}
			if taken(s.Name) {
				was := s.Name
				label := "other"
				if found[i].Client != nil {
					label = found[i].Client.Name
				}
				if renamed := config.MakeName(was+"-"+label, func(string) bool { return false }); Equal(has(renamed), s.Keys) {
					s.Name = renamed
					present = append(present, s)
					continue
				}
				s.Name = config.MakeName(was+"-"+label, taken)
				s.Notes = append(slices.Clone(s.Notes), "was renamed to \""+s.Name+"\" because another server is named \""+was+"\"")
			}
			servers = append(servers, s)
		}
	}
	return servers, present
}

// isSameServer treats two names in the same client as two servers.
func isSameServer(a, b *Server) bool {
	elsewhere := len(b.Clients) > 0 && !slices.Contains(a.Clients, b.Clients[0])
	return (a.OriginalName == b.OriginalName || elsewhere) && Equal(a.Keys, b.Keys)
}

// join enables the server if any duplicate is enabled.
func join(s *Server, other Server) {
	for _, from := range other.Clients {
		if !slices.Contains(s.Clients, from) {
			s.Clients = append(s.Clients, from)
		}
	}
	s.Files = append(s.Files, other.Files...)
	if other.Keys["disabled"] != true && s.Keys["disabled"] == true {
		s.Keys = maps.Clone(s.Keys)
		delete(s.Keys, "disabled")
	}
	for name, what := range other.Needs {
		if s.Needs == nil {
			s.Needs = map[string]string{}
		}
		s.Needs[name] = what
	}
}

// policyKeys lists keys that don't identify a server.
var policyKeys = []string{"disabled", "timeout", "call_timeout", "startup_timeout"}

// Equal reports whether two entries run the same server in the same way.
func Equal(a, b map[string]any) bool {
	if a == nil || b == nil {
		return false
	}
	return reflect.DeepEqual(comparableEntry(a), comparableEntry(b))
}

func comparableEntry(entry map[string]any) (out map[string]any) {
	out, _ = generic(entry).(map[string]any)
	for _, key := range policyKeys {
		delete(out, key)
	}
	if out["type"] == "http" || out["type"] == "stdio" { // the default
		delete(out, "type")
	}
	return out
}

// Titles returns the display names of the clients that have the server.
func (s *Server) Titles() string {
	var titles []string
	for _, name := range s.Clients {
		if c := Find(name); c != nil {
			titles = append(titles, c.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// Comment returns a comment about the server's origin, or "".
func (s *Server) Comment() string {
	comment := "from " + s.Titles()
	if len(s.Clients) == 0 {
		return ""
	}
	if s.OriginalName != s.Name {
		comment += fmt.Sprintf(", named %q there", short(s.OriginalName))
	}
	return comment
}
