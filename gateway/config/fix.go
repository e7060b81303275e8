package config

import (
	"fmt"
	"slices"
	"strings"
)

// Entry returns a key and a text in the syntax of the server's file.
func (s *Server) Entry(name, text string) string {
	if !s.JSON && !strings.Contains(text, "{") {
		return s.entry(name, text)
	}
	return s.entry(name, fmt.Sprintf("%q", text))
}

// Mapping returns a key and a mapping of one or more entries.
func (s *Server) Mapping(name string, entries ...string) string {
	return s.entry(name, "{"+strings.Join(entries, ", ")+"}")
}

func (s *Server) entry(name, value string) string {
	if s.JSON {
		return fmt.Sprintf("%q: %s", name, value)
	}
	return name + ": " + value
}

// IsContainer reports whether the server runs in a container, which gets only the
// variables in its arguments.
func (s *Server) IsContainer() bool {
	return slices.Contains([]string{"docker", "podman", "nerdctl"}, programName(s.Command)) && slices.Contains(s.Args, "run")
}

// Authorized reports whether the server has an Authorization header.
func (s *Server) Authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}
