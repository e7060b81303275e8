package clients

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"goblin/gateway/config"
)

var (
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	leading  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`) })
	doubling = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	})
	inCurly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\{(env|file):([^{}]+)\}`) })
)

// text is a text of a client as Goblin's config has it: variables that the client expands
// are ${X}, and what else begins as one is escaped.
func (r *reading) text(s string) string {
	if !strings.ContainsAny(s, "${") {
		return s
	}
	var out strings.Builder
	for s != "" {
		at := strings.IndexAny(s, "${")
		if at < 0 {
			break
		}
		out.WriteString(s[:at])
		s = s[at:]
		value, used := r.variable(s)
		out.WriteString(value)
		s = s[used:]
	}
	out.WriteString(s)
	return out.String()
}

// variable resolves the variable at the beginning of a text, and returns its length in the
// text.
func (r *reading) variable(s string) (value string, used int) {
	d := r.dialect
	if m := doubling().FindStringSubmatch(s); m != nil && d.expands&doubled != 0 {
		return "${" + m[1] + "}", len(m[0])
	}
	if m := inCurly().FindStringSubmatch(s); m != nil && d.expands&curly != 0 {
		switch {
		case m[1] == "file":
			return "${file:" + r.near(m[2]) + "}", len(m[0])
		case variable().MatchString(m[2]):
			return "${" + m[2] + "}", len(m[0])
		}
	}
	if strings.HasPrefix(s, "${") {
		if end := config.Closing(s); end > 0 {
			if value, ok := r.named(s[2:end]); ok {
				return value, end + 1
			}
		}
		return "$${", 2
	}
	if d.expands&dollar != 0 && s[0] == '$' {
		if name := leading().FindString(s[1:]); name != "" {
			return "${" + name + "}", 1 + len(name)
		}
	}
	return s[:1], 1
}

// named resolves ${body}.
func (r *reading) named(body string) (value string, ok bool) {
	expands := r.dialect.expands
	if name, fallback, has := strings.Cut(body, ":-"); expands&braces != 0 && variable().MatchString(name) {
		if has {
			return "${" + name + ":-" + r.text(fallback) + "}", true
		}
		return "${" + body + "}", true
	}
	if expands&prefix == 0 {
		return "", false
	}
	kind, name, _ := strings.Cut(body, ":")
	switch {
	case kind == "env" && variable().MatchString(name):
		return "${" + name + "}", true
	case kind == "input" && name != "":
		return r.input(name), true
	case kind == "file" && name != "":
		return "${file:" + r.near(name) + "}", true
	case body == "userHome":
		return "${HOME}", true
	case body == "workspaceFolder":
		r.perProject = true
		return "${project}", true
	case body == "pathSeparator", body == "/":
		if r.machine.OS == "windows" {
			return `\`, true
		}
		return "/", true
	}
	r.lose("has ${%s}, for which Goblin has nothing; it is taken as it is", short(body))
	return "", false
}

// near is the path of a file that a client reads, as Goblin has to be told.
func (r *reading) near(file string) string {
	switch {
	case strings.HasPrefix(file, "~/"):
		return "${HOME}" + file[1:]
	case strings.HasPrefix(file, "/"), len(file) > 1 && file[1] == ':':
		return file
	}
	return path.Join(strings.ReplaceAll(r.dir, `\`, "/"), file)
}

// input is the variable for what VS Code asks its user for.
func (r *reading) input(id string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, id)
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	r.needs(name, "input "+short(id))
	if def := r.inputs[id]; def != "" {
		return "${" + name + ":-" + strings.ReplaceAll(def, "${", "$${") + "}"
	}
	return "${" + name + "}"
}
