package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/state"
	"goblin/registry/termtext"
)

// Some clients pass on almost none of the user's variables. An env_file supplies them to
// every reader of the config. The environment takes precedence.

const maxEnvFile = 1 << 20 // bytes

// envFileLine finds the key in a text that cannot be parsed.
var envFileLine = pattern(`(?m)^\s*"?env_file"?\s*:\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#'"][^#\n,}]*))`)

// readEnvFile adds the variables of the env_file to r's environment, before any key that
// may need them. Mistakes in the key itself are reported when all keys are read.
func (r *reader) readEnvFile(root *yaml.Node) {
	n := envFileNode(root)
	if n == nil {
		return
	}
	file, ok := envFilePath(r.dir, n.Value, r.env)
	if !ok {
		return
	}
	vars, open, err := loadEnvFile(file)
	if err != nil {
		r.fail(n, "%q names %s, which %v", envFileKey, quote(n.Value), err)
		return
	}
	if open {
		r.warn(n, "%q names %s, which other users of this machine can read; run chmod 600 on it", envFileKey, quote(n.Value))
	}
	r.fileVars, r.env = vars, lookup(r.env, vars)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if vars[name] != "" {
			r.fileNames = append(r.fileNames, name)
		}
	}
}

const envFileKey = "env_file"

func envFileNode(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if k, v := target(root.Content[i]), target(root.Content[i+1]); k.Value == envFileKey && v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
			return v
		}
	}
	return nil
}

func envFilePath(dir, value string, env func(string) (string, bool)) (file string, ok bool) {
	e := expansion{env: env}
	file = e.expand(value, 0)
	home := homeOf(env)
	switch {
	case file == "" || e.wrong != "" || len(e.unset) > 0 || noNUL(file) != "":
		return "", false
	case strings.HasPrefix(file, "~/"):
		return filepath.Join(home, file[2:]), home != ""
	case !filepath.IsAbs(file):
		return filepath.Join(dir, file), true
	}
	return filepath.Clean(file), true
}

// withEnvFile also works for configs with mistakes and ignores an unreadable env_file.
func withEnvFile(path string, src []byte, env func(string) (string, bool)) func(string) (string, bool) {
	value := ""
	if root, _, bad := parseNodes(path, src); bad == nil {
		n := envFileNode(root)
		if n == nil {
			return env
		}
		value = n.Value
	} else if m := envFileLine().FindSubmatch(src); m != nil {
		value = strings.TrimSpace(string(m[1]) + string(m[2]) + string(m[3]))
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return env
	}
	file, ok := envFilePath(filepath.Dir(full), value, env)
	if !ok {
		return env
	}
	vars, _, err := loadEnvFile(file)
	if err != nil {
		return env
	}
	return lookup(env, vars)
}

func lookup(env func(string) (string, bool), vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := env(name); ok {
			return value, true
		}
		value, ok := vars[name]
		return value, ok
	}
}

// loadEnvFile reads a file of variables. open reports whether other users can read the
// file. An error continues "which".
func loadEnvFile(file string) (vars map[string]string, open bool, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("cannot be read: %w", reason(err))
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, false, fmt.Errorf("is not a regular file")
	case info.Size() > maxEnvFile:
		return nil, false, fmt.Errorf("is larger than %s", termtext.ExactSize(maxEnvFile))
	}
	text, err := state.Read(file, maxEnvFile)
	if err != nil {
		return nil, false, fmt.Errorf("cannot be read: %w", reason(err))
	}
	vars, err = parseEnvFile(string(text))
	return vars, runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0, err
}

// ReadEnvFile returns the variables in a file. An error continues "which".
func ReadEnvFile(file string) (map[string]string, error) {
	vars, _, err := loadEnvFile(file)
	return vars, err
}

// parseEnvFile reads lines like NAME=value or "export NAME=value", and comments. Single
// quotes keep a value as it is. Double quotes support the escapes \n, \t, \" and \\. An
// unquoted value ends before " #". Nothing is expanded.
func parseEnvFile(text string) (map[string]string, error) {
	vars := make(map[string]string)
	line := 0
	for raw := range strings.Lines(strings.TrimPrefix(text, bom)) {
		line++
		s := strings.TrimSpace(raw)
		if s == "" || s[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(s, "export "); ok {
			s = strings.TrimSpace(rest)
		}
		name, value, ok := strings.Cut(s, "=")
		if name = strings.TrimSpace(name); !ok || !variable().MatchString(name) {
			return nil, fmt.Errorf("has a mistake in line %d: expected NAME=value", line)
		}
		value, ok = envValue(strings.TrimSpace(value))
		if !ok || noNUL(value) != "" {
			return nil, fmt.Errorf("has a mistake in line %d: the value of %s has an unclosed quote", line, name)
		}
		vars[name] = value
	}
	return vars, nil
}

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

func envValue(s string) (value string, ok bool) {
	if s == "" {
		return "", true
	}
	quoted := s[0]
	if quoted != '"' && quoted != '\'' {
		if i := strings.Index(s, " #"); i >= 0 {
			s = strings.TrimSpace(s[:i])
		}
		return s, true
	}
	end := 1
	for end < len(s) && s[end] != quoted {
		if quoted == '"' && s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s) {
		return "", false
	}
	if rest := strings.TrimSpace(s[end+1:]); rest != "" && rest[0] != '#' {
		return "", false
	}
	value = s[1:end]
	if quoted == '"' {
		value = escapes.Replace(value)
	}
	return value, true
}
