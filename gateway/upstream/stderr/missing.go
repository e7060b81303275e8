package stderr

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"goblin/gateway/config"
)

// MissingVariables explains why the server's process lacks variables, and returns the
// fix. missing are variables reported as missing; mentioned are other candidates. env is
// the process's environment, lookup reads the user's, and file lists the variables of
// env_file. cause is "" if no variable explains the failure.
func MissingVariables(s *config.Server, missing, mentioned, env []string, lookup func(string) (string, bool), file []string) (cause, fix string) {
	l := missingByReason{lookup: lookup, file: file}
	for _, name := range missing {
		classify(s, &l, name, env)
	}
	for _, name := range mentioned {
		if _, passed := valueOf(env, name); passed || slices.Contains(l.notPassed, name) || slices.Contains(l.inEnvFile, name) {
			continue
		}
		if list := l.source(name); list != &l.unset {
			*list = append(*list, name)
		}
	}
	var causes, fixes []string
	if len(l.notPassed) > 0 {
		causes = append(causes, fmt.Sprintf("%s set in your shell, but Goblin does not pass %s on", subject(l.notPassed), pronoun(l.notPassed)))
	}
	if len(l.inEnvFile) > 0 {
		causes = append(causes, fmt.Sprintf("%s set in env_file, but Goblin does not pass %s on", subject(l.inEnvFile), pronoun(l.inEnvFile)))
	}
	if len(l.notInContainer) > 0 {
		causes = append(causes, fmt.Sprintf("%s passed to %s, but not into the container", subject(l.notInContainer), filepath.Base(s.Command)))
		fixes = append(fixes, fmt.Sprintf("add to args of %q, before the image: %s", s.Name, flags(s, l.notInContainer)))
	}
	if len(l.empty) > 0 {
		causes = append(causes, subject(l.empty)+" empty")
		fixes = append(fixes, fmt.Sprintf("give %s a value in env of %q", and(l.empty), s.Name))
	}
	add := slices.Concat(l.notPassed, l.inEnvFile)
	if len(l.unset) > 0 {
		causes = append(causes, subject(l.unset)+" not set")
		fixes = append(fixes, "set "+and(l.unset))
		for _, name := range l.unset {
			if !s.InheritEnv.All && !slices.Contains(s.InheritEnv.Names, name) {
				add = append(add, name)
			}
		}
	}
	if len(add) > 0 {
		fixes = append(fixes, passFix(s, add))
	}
	return strings.Join(causes, ", and "), strings.Join(fixes, ", then ")
}

type missingByReason struct {
	lookup func(string) (string, bool)
	file   []string

	notPassed      []string // set only in the user's environment
	inEnvFile      []string // set only in env_file
	notInContainer []string // not passed into the container
	empty          []string
	unset          []string // set nowhere
}

func classify(s *config.Server, l *missingByReason, name string, env []string) {
	value, passed := valueOf(env, name)
	switch {
	case value != "" && flags(s, []string{name}) != "":
		l.notInContainer = append(l.notInContainer, name)
	case value != "":
	case passed:
		l.empty = append(l.empty, name)
	default:
		list := l.source(name)
		*list = append(*list, name)
	}
}

// source returns the list for a variable that is not passed, depending on where it is
// set.
func (l *missingByReason) source(name string) *[]string {
	if value, _ := l.lookup(name); value != "" {
		return &l.notPassed
	}
	if slices.Contains(l.file, name) {
		return &l.inEnvFile
	}
	return &l.unset
}

func valueOf(env []string, name string) (value string, ok bool) {
	for _, entry := range env {
		of, value, _ := strings.Cut(entry, "=")
		if of == name || runtime.GOOS == "windows" && strings.EqualFold(of, name) {
			return value, true
		}
	}
	return "", false
}

func passFix(s *config.Server, names []string) string {
	entries := make([]string, len(names))
	for i, name := range names {
		entries[i] = EnvEntry(s, name, "${"+name+"}")
	}
	fix := EnvFix(s, entries...)
	if flags := flags(s, names); flags != "" {
		fix += ", and to args, before the image: " + flags
	}
	return fix
}

// EnvFix returns the config change that adds entries (see EnvEntry) to the server's env.
func EnvFix(s *config.Server, entries ...string) string {
	if s.FromAddCommand {
		return "write in front of --: " + strings.Join(entries, " ")
	}
	if len(s.Env) > 0 {
		return fmt.Sprintf("add to env of %q: %s", s.Name, strings.Join(entries, ", "))
	}
	return fmt.Sprintf("add to %q: %s", s.Name, s.Mapping("env", entries...))
}

// flags returns the arguments that pass variables into the server's container, or "".
// Variables of docker itself are not passed.
func flags(s *config.Server, names []string) string {
	var flags []string
	for _, name := range names {
		if s.IsContainer() && !hasFlag(s, name) && !strings.HasPrefix(name, "DOCKER_") && !strings.HasPrefix(name, "CONTAINER_") {
			flags = append(flags, fmt.Sprintf("%q, %q", "-e", name))
		}
	}
	return strings.Join(flags, ", ")
}

// EnvEntry returns a variable and value in the form for EnvFix.
func EnvEntry(s *config.Server, name, text string) string {
	if s.FromAddCommand {
		return "--env '" + strings.ReplaceAll(name+"="+text, "'", `'\''`) + "'"
	}
	return s.Entry(name, text)
}

// KeyHeader returns a headers entry that sends a key with a scheme such as Bearer. The
// key comes from a variable named after the server.
func KeyHeader(s *config.Server, scheme string) string {
	variable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s.Name)
	if variable[0] >= '0' && variable[0] <= '9' {
		variable = "_" + variable
	}
	return s.Mapping("headers", s.Entry("Authorization", scheme+" ${"+strings.ToUpper(variable)+"_TOKEN}"))
}

func hasFlag(s *config.Server, name string) bool {
	return slices.ContainsFunc(s.Args, func(arg string) bool {
		of := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(arg, "-e"), "--env"), "=")
		return of == name || strings.HasPrefix(of, name+"=")
	})
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

func and(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
