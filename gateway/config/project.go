package config

import (
	_ "embed"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// projectVariable stays in a server's definition until the project is known.
const projectVariable = "${project}"

// perProject finds isolation: project before the server's keys are read.
func (r *reader) perProject(n *yaml.Node) bool {
	silent := reader{file: r.file} // mistakes are reported when the keys are read
	for _, p := range silent.pairs(keyPath{}, n) {
		if p.key.Value == "isolation" {
			return p.val.Kind == yaml.ScalarNode && p.val.Value == string(PerProject)
		}
	}
	return false
}

// InProject returns the server with ${project} replaced by the project's folder.
func (s *Server) InProject(folder string) *Server {
	v := *s
	in := func(text string) string { return strings.ReplaceAll(text, projectVariable, folder) }
	v.Command, v.Cwd = in(s.Command), in(s.Cwd)
	v.URL = strings.ReplaceAll(s.URL, projectVariable, strings.ReplaceAll(url.QueryEscape(folder), "+", "%20"))
	v.Args = slices.Clone(s.Args)
	for i := range v.Args {
		v.Args[i] = in(v.Args[i])
	}
	v.Env, v.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, m := range []map[string]string{v.Env, v.Headers} {
		for name, value := range m {
			m[name] = in(value)
		}
	}
	return &v
}

// projectPackages lists packages that work in one project, one per line. Marked ones do
// so unless an argument names a folder.
//
//go:embed projects.txt
var projectPackages string

func (r *reader) warnProjects(servers []Server) {
	for i := range servers {
		s := &servers[i]
		if s.Type != Stdio || s.Disabled || s.Problem != "" {
			continue
		}
		if instead := runsProjectCode(s); s.Isolation == PerProject && instead != "" {
			r.warn(r.servers[i].key, "server %q: %s runs code from the project's folder, so a malicious repository can replace it; %s, or set the path of an installed program", s.Name, baseName(s.Command), instead)
		}
		if s.Isolation != Shared {
			continue
		}
		if name := projectPackage(s); name != "" {
			r.warn(r.servers[i].key, "server %q: %s works in one project, but all clients share it; set isolation: project to run one per project, and use ${project} for its folder", s.Name, name)
		}
	}
}

// warnOpenProjects reports servers that HTTP clients cannot use: without a token they
// have no project.
func (r *reader) warnOpenProjects(cfg *Config) {
	g := &cfg.Gateway
	if g.Listen == "" || g.AuthToken != "" || g.lateToken != nil || r.badToken {
		return
	}
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; s.Isolation == PerProject && !s.Disabled {
			r.warn(r.servers[i].key, "server %q: clients over HTTP cannot use it, because isolation: project needs a token; set gateway.auth_token, or connect them over stdio", s.Name)
		}
	}
}

func projectPackage(s *Server) string {
	for i, word := range append([]string{baseName(s.Command)}, s.Args...) {
		for line := range strings.Lines(projectPackages) {
			name, unlessFolder := strings.CutSuffix(strings.TrimSpace(line), " unless-folder")
			if name == "" || strings.HasPrefix(name, "#") || !isPackage(word, name) {
				continue
			}
			if unlessFolder && slices.ContainsFunc(s.Args[i:], func(arg string) bool {
				return !strings.HasPrefix(arg, "-") && (strings.ContainsAny(arg, `/\`) || arg == "." || arg == "~")
			}) {
				continue
			}
			return name
		}
	}
	return ""
}

// runsProjectCode reports commands that prefer code in the working directory. It returns
// the change of args that prevents this, or "".
func runsProjectCode(s *Server) (instead string) {
	if !strings.Contains(s.Cwd, projectVariable) {
		return ""
	}
	has := func(flags ...string) bool {
		return slices.ContainsFunc(s.Args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return slices.Contains(flags, name)
		})
	}
	name, _, _ := strings.Cut(strings.ToLower(baseName(s.Command)), ".") // python3.12, npx.cmd
	switch {
	case (name == "npx" || name == "npm") && !has("--prefix"):
		return "add --prefix with an empty folder to args" // because of node_modules/.bin and .npmrc
	case strings.HasPrefix(name, "python") && has("-m") && !has("-P", "-I"):
		return "add -P to args" // the folder comes first in the module path
	case name == "bunx" || name == "bun" && has("x"):
		return "use npx with --prefix and an empty folder" // because of node_modules/.bin
	}
	return ""
}

func baseName(command string) string { return command[strings.LastIndexAny(command, `/\`)+1:] }

// isPackage accepts a package, optionally with a version, or its repository's URL.
func isPackage(word, name string) bool {
	word = strings.TrimSuffix(strings.TrimSuffix(word, ".exe"), ".git")
	if rest, ok := strings.CutPrefix(word, name); ok && (rest == "" || rest[0] == '@' || strings.HasPrefix(rest, "==")) {
		return true
	}
	return strings.Contains(word, "://") && strings.HasSuffix(word, "/"+name)
}
