package config

import (
	"errors"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/filewatch"
)

// Build is a command that builds a server from its source files. One of both is set.
type Build struct {
	Shell string   // a command line for the shell
	Words []string // a program with its arguments
}

// Command returns the program and its arguments, or nil without a build.
func (b Build) Command() []string {
	switch {
	case b.Shell == "":
		return slices.Clone(b.Words)
	case runtime.GOOS == "windows":
		return []string{"cmd", "/C", b.Shell}
	}
	return []string{"sh", "-c", b.Shell}
}

// Rebuilt reports whether the server is built or restarted when files change.
func (s *Server) Rebuilt() bool { return len(s.Watch) > 0 || s.Build.Command() != nil }

// Globs returns the globs of the watched files, relative to the server's folder.
func (s *Server) Globs() (*filewatch.Globs, error) { return filewatch.ParseGlobs(s.Watch...) }

func watchComplaint(glob string) string {
	if _, err := filewatch.ParseGlobs(glob); err != nil {
		return errors.Unwrap(err).Error()
	}
	return ""
}

// watch reads a glob or a list of globs.
func watch() kind[[]string] {
	one := text(watchComplaint)
	some := list(one)
	return kind[[]string]{
		schema: func([]string) object {
			return object{"anyOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}, "minItems": 1}}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *[]string) {
			switch n.Kind {
			case yaml.SequenceNode:
				if some.read(r, at, n, dst); len(n.Content) == 0 {
					r.fail(n, `%s is an empty list; write "auto" for source files, or remove the key`, at)
				}
			case yaml.MappingNode:
				r.fail(n, "%s must be a glob or a list of globs, not %s", at, describe(n))
			default:
				var glob string
				if one.read(r, at, n, &glob); glob != "" {
					*dst = []string{glob}
				}
			}
		},
	}
}

// build reads a command line for the shell, or a list of words.
func build() kind[Build] {
	line := text(func(s string) string {
		if s == "" {
			return "is empty"
		}
		return noNUL(s)
	})
	words := list(loose(noNUL))
	return kind[Build]{
		schema: func(Build) object {
			return object{"anyOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": []string{"string", "number", "boolean"}}, "minItems": 1}}}
		},
		read: func(r *reader, at keyPath, n *yaml.Node, dst *Build) {
			switch n.Kind {
			case yaml.SequenceNode:
				var all []string
				words.read(r, at, n, &all)
				if len(n.Content) == 0 || len(all) > 0 && all[0] == "" {
					r.fail(n, "%s needs a program as first item", at)
				}
				dst.Words = all
			case yaml.MappingNode:
				r.fail(n, "%s must be a command line or a list of words, not %s", at, describe(n))
			default:
				line.read(r, at, n, &dst.Shell)
			}
		},
	}
}

// checkWatch reports servers whose folder is unknown until a client connects.
func (r *reader) checkWatch(at keyPath, s *Server, seen map[string]*yaml.Node) {
	for _, name := range []string{"watch", "build"} {
		if n := seen[name]; n != nil && s.Isolation == PerProject {
			r.fail(n, "%s has no folder with isolation: project; set isolation: shared or remove the key", at.key(name))
		}
	}
}
