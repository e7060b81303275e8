package clientconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"goblin/gateway/config"
)

// Merge makes one set of the servers of all files: those that are the same become one, and
// those that share a name without being the same get the name of their client behind it.
// has gives the entry of a name that Goblin's config has already; nil for none. What is
// there already is present.
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
				s.Notes = append(slices.Clone(s.Notes), "is called \""+s.Name+"\", since another server is called \""+was+"\"")
			}
			servers = append(servers, s)
		}
	}
	return servers, present
}

// isSameServer reports whether two entries are one server. A client that calls it twice means two.
func isSameServer(a, b *Server) bool {
	elsewhere := len(b.Clients) > 0 && !slices.Contains(a.Clients, b.Clients[0])
	return (a.OriginalName == b.OriginalName || elsewhere) && Equal(a.Keys, b.Keys)
}

// join notes that a server was found once more. It is on if it is anywhere.
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

// policyKeys are keys that say how patiently a server is used, and not which it is.
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
	if out["type"] == "http" || out["type"] == "stdio" { // which need not be said
		delete(out, "type")
	}
	return out
}

// Titles are the clients in which a server was found.
func (s *Server) Titles() string {
	var titles []string
	for _, name := range s.Clients {
		if c := Find(name); c != nil {
			titles = append(titles, c.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// Comment says where a server was found.
func (s *Server) Comment() string {
	comment := "from " + s.Titles()
	if len(s.Clients) == 0 {
		return ""
	}
	if s.OriginalName != s.Name {
		comment += fmt.Sprintf(", where it is called %q", short(s.OriginalName))
	}
	return comment
}
