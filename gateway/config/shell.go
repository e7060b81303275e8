package config

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Unexpanded is a text of a server that only a shell would expand.
type Unexpanded struct {
	Key  string // command, cwd, args, env or headers
	Text string // the unexpanded part and its place
	Fix  string
}

var (
	tilde  = pattern(`(?:^|[=,:;])(~)(?:$|[/\\][^\s,:;]*)`)
	dollar = pattern(`(?:^|[\s=,:;])\$([A-Z_][A-Z0-9_]*)((?:[/\\][^\s,:;]*)?)(?:$|[\s,:;])`)
	// bareVariable matches a text meant as a variable.
	bareVariable = pattern(`^(?:\$[A-Z_][A-Z0-9_]*|%[A-Z_][A-Z0-9_]*%)$`)
	percent      = pattern(`(?:^|[\s=,:;])%([A-Za-z_][A-Za-z0-9_]{2,})%((?:[/\\][^\s,:;]*)?)`)
)

// unexpanded returns the part of a text that a shell would expand, and its replacement.
// It skips user@host:~/x, a path on another machine, and ${file:~/x}, which Goblin
// expands.
func unexpanded(text string) (what, instead string) {
	if m := tilde().FindStringSubmatchIndex(text); m != nil && !strings.Contains(text[:m[2]], "@") && !isReferring(text[:m[2]]) {
		home := "HOME"
		if runtime.GOOS == "windows" {
			home = "USERPROFILE"
		}
		return "~", "${" + home + "}" + text[m[3]:m[1]]
	}
	for _, form := range []func() *regexp.Regexp{dollar, percent} {
		if m := form().FindStringSubmatch(text); m != nil {
			what = "$" + m[1]
			if strings.Contains(m[0], "%"+m[1]+"%") {
				what = "%" + m[1] + "%"
			}
			return what, "${" + m[1] + "}" + m[2]
		}
	}
	return "", ""
}

func isReferring(text string) bool {
	return strings.LastIndex(text, "${") > strings.LastIndex(text, "}")
}

// expanders are non-shell programs that pass their arguments to a shell.
var expanders = []string{"cmd", "ssh", "wsl", "nix-shell"}

func isShell(command string) bool {
	program := programName(command)
	return slices.Contains(shells, program) || slices.Contains(expanders, program)
}

// Unexpanded returns the texts of the server that a shell would expand.
func (s *Server) Unexpanded() (found []Unexpanded) {
	add := func(key, place, text string) {
		if what, instead := unexpanded(text); what != "" {
			found = append(found, Unexpanded{key, fmt.Sprintf("%q is not expanded: %s", what, place), notExpanded(instead)})
		}
	}
	for key, path := range map[string]string{"command": s.Command, "cwd": s.Cwd} {
		for _, mark := range []string{"/$", "/%"} { // follows the config's directory
			if i := strings.Index(path, mark); i >= 0 {
				add(key, key, path[i+1:])
			}
		}
	}
	if !isShell(s.Command) {
		for i, arg := range s.Args {
			add("args", fmt.Sprintf("args[%d]", i), arg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		add("env", name+" of env", s.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		add("headers", name+" of headers", s.Headers[name])
	}
	return found
}

func notExpanded(instead string) string { return fmt.Sprintf("write %q", instead) }

func (r *reader) warnUnexpanded(at keyPath, n *yaml.Node, command string) {
	check := func(at keyPath, n *yaml.Node, expanded string) {
		if n = target(n); n.Kind != yaml.ScalarNode {
			return
		}
		if what, instead := unexpanded(n.Value); what != "" && what != expanded {
			r.warn(n, "%s: %q is not expanded; %s", at, what, notExpanded(instead))
		}
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, target(n.Content[i+1])
		switch {
		case key == "command" || key == "cwd":
			check(at.key(key), value, "~")
		case key == "args" && value.Kind == yaml.SequenceNode && !isShell(command):
			for i, arg := range value.Content {
				check(at.key(key).item(i), arg, "")
			}
		case (key == "env" || key == "headers") && value.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(value.Content); i += 2 {
				check(at.key(key).key(value.Content[i].Value), value.Content[i+1], "")
			}
		}
	}
}
