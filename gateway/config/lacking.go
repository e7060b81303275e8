package config

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Lacking returns why the server's process lacks variables that it asks for, and the fix.
// missing are the variables that it reports missing, mentioned those that it may mean. env
// is its environment, host looks up the user's. cause is "" if none of them explains it.
func (s *Server) Lacking(missing, mentioned, env []string, host func(string) (string, bool)) (cause, fix string) {
	var unpassed, outside, empty, unset []string
	for _, name := range missing {
		i := slices.IndexFunc(env, func(e string) bool { return isVariable(e, name) })
		value, known := host(name)
		switch {
		case i >= 0 && env[i] != name+"=" && s.isContainer() && !s.hasFlag(name):
			outside = append(outside, name)
		case i >= 0 && env[i] != name+"=":
		case i >= 0:
			empty = append(empty, name)
		case known && value != "":
			unpassed = append(unpassed, name)
		default:
			unset = append(unset, name)
		}
	}
	for _, name := range mentioned {
		value, _ := host(name)
		passed := slices.ContainsFunc(env, func(e string) bool { return isVariable(e, name) })
		if value != "" && !passed && !slices.Contains(unpassed, name) {
			unpassed = append(unpassed, name)
		}
	}
	var causes, fixes, add []string
	if len(unpassed) > 0 {
		causes = append(causes, fmt.Sprintf("%s set in your shell, but Goblin does not pass %s on", subject(unpassed), pronoun(unpassed)))
		add = append(add, unpassed...)
	}
	if len(outside) > 0 {
		causes = append(causes, fmt.Sprintf("%s passed to %s, but not into the container", subject(outside), filepath.Base(s.Command)))
		fixes = append(fixes, fmt.Sprintf("add to args of %q, before the image: %s", s.Name, s.flags(outside)))
	}
	if len(empty) > 0 {
		causes = append(causes, subject(empty)+" empty")
		fixes = append(fixes, fmt.Sprintf("give %s a value in env of %q", and(empty), s.Name))
	}
	if len(unset) > 0 {
		causes = append(causes, subject(unset)+" not set")
		fixes = append(fixes, "set "+and(unset))
		for _, name := range unset {
			if !s.InheritEnv.All && !slices.Contains(s.InheritEnv.Names, name) {
				add = append(add, name)
			}
		}
	}
	if len(add) > 0 {
		fixes = append(fixes, s.passing(add))
	}
	return strings.Join(causes, ", and "), strings.Join(fixes, ", then ")
}

// passing returns the change of the config that passes variables on to the server.
func (s *Server) passing(names []string) string {
	entries := make([]string, len(names))
	for i, name := range names {
		entries[i] = s.Entry(name, "${"+name+"}")
	}
	fix := fmt.Sprintf("add to %q: %s", s.Name, s.Mapping("env", entries...))
	if len(s.Env) > 0 {
		fix = fmt.Sprintf("add to env of %q: %s", s.Name, strings.Join(entries, ", "))
	}
	if flags := s.flags(names); flags != "" {
		fix += ", and to args, before the image: " + flags
	}
	return fix
}

// flags returns the arguments that pass variables into the server's container, "" if it
// needs none. Those of docker itself are not for the container.
func (s *Server) flags(names []string) string {
	var flags []string
	for _, name := range names {
		if s.isContainer() && !s.hasFlag(name) && !strings.HasPrefix(name, "DOCKER_") && !strings.HasPrefix(name, "CONTAINER_") {
			flags = append(flags, fmt.Sprintf("%q, %q", "-e", name))
		}
	}
	return strings.Join(flags, ", ")
}

// Entry returns a key with a text in the syntax of the server's file. In YAML, "{" would end
// a plain text between braces.
func (s *Server) Entry(name, text string) string {
	if !s.JSON && !strings.Contains(text, "{") {
		return s.entry(name, text)
	}
	return s.entry(name, fmt.Sprintf("%q", text))
}

// Mapping returns a key with a mapping of one or more entries.
func (s *Server) Mapping(name string, entries ...string) string {
	return s.entry(name, "{"+strings.Join(entries, ", ")+"}")
}

func (s *Server) entry(name, value string) string {
	if s.JSON {
		return fmt.Sprintf("%q: %s", name, value)
	}
	return name + ": " + value
}

// isContainer reports whether the server runs in a container, which gets no variables but
// those that its arguments name.
func (s *Server) isContainer() bool {
	command := strings.TrimSuffix(filepath.Base(s.Command), ".exe")
	return (command == "docker" || command == "podman" || command == "nerdctl") && slices.Contains(s.Args, "run")
}

// hasFlag reports whether the arguments of a container name a variable.
func (s *Server) hasFlag(name string) bool {
	return slices.ContainsFunc(s.Args, func(arg string) bool {
		of := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(arg, "-e"), "--env"), "=")
		return of == name || strings.HasPrefix(of, name+"=")
	})
}

// isVariable reports whether "NAME=value" is the variable called name.
func isVariable(entry, name string) bool {
	of, _, ok := strings.Cut(entry, "=")
	return ok && (of == name || runtime.GOOS == "windows" && strings.EqualFold(of, name))
}

func subject(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return and(names) + " are"
}

func pronoun(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "them"
}

// and joins names as a sentence does.
func and(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Authorized reports whether the config has a header Authorization for the server.
func (s *Server) Authorized() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}
