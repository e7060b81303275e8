package clientconfig

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"goblin/gateway/config"
	"goblin/registry/termtext"
)

var (
	variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	leading  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`) })
	doubling = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	})
	word       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\w{1,40}$`) })
	curlyStart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(?:env|file):`) })
	inCurly    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\{(env|file):([^{}]+)\}`) })
)

// maxReference is in bytes.
const maxReference = 4096

// text converts a client's text to Goblin's syntax. The client's variables become ${X}.
// Other text that Goblin would expand is escaped.
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
		if strings.HasPrefix(value, "${") && strings.HasSuffix(out.String(), "$") {
			r.noteLoss("has a variable after a $, which Goblin cannot express; it is copied unchanged")
			value = escaped(s[:used])
			if s[0] == '{' { // the $ before it is already written
				value = "$" + value
			}
		}
		out.WriteString(value)
		s = s[used:]
	}
	out.WriteString(s)
	return out.String()
}

func escaped(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// variable resolves the variable at the start of a text and returns its length there.
func (r *reading) variable(s string) (value string, used int) {
	d := r.dialect
	if m := doubling().FindStringSubmatch(s); m != nil && d.expands&doubled != 0 {
		if value, ok := r.environment(m[1]); ok {
			return value, len(m[0])
		}
	}
	if d.expands&curly != 0 {
		if m := inCurly().FindStringSubmatch(s); m != nil {
			if value, ok := r.inCurly(m[1], m[2]); ok {
				return value, len(m[0])
			}
		}
		if inCurly().MatchString(s[1:]) { // the variable starts after the $
			return s[:1], 1
		}
	}
	if strings.HasPrefix(s, "${") {
		if end := termtext.ClosingBrace(s[:min(len(s), maxReference)]); end > 0 {
			if value, ok := r.named(s[2:end]); ok {
				return value, end + 1
			}
		}
		return "$${", 2
	}
	if d.expands&dollar != 0 && s[0] == '$' {
		if name := leading().FindString(s[1:]); name != "" {
			if value, ok := r.environment(name); ok {
				return value, 1 + len(name)
			}
		}
	}
	return s[:1], 1
}

// environment returns a reference. ok is false if Goblin cannot reference the name.
func (r *reading) environment(name string) (value string, ok bool) {
	if !variable().MatchString(name) || name == "project" { // ${project} is a folder
		r.noteLoss("has a variable that Goblin cannot reference; it is ignored")
		return "", false
	}
	return "${" + name + "}", true
}

func (r *reading) inCurly(kind, name string) (value string, ok bool) {
	if kind == "file" {
		return r.file(name)
	}
	return r.environment(name)
}

func (r *reading) named(body string) (value string, ok bool) {
	expands := r.dialect.expands
	if name, fallback, has := strings.Cut(body, ":-"); expands&braces != 0 && variable().MatchString(name) {
		if value, ok := r.environment(name); !ok || !has {
			return value, ok
		}
		return r.withDefault(name, r.text(fallback))
	}
	kind, name, _ := strings.Cut(body, ":")
	switch {
	case expands&prefix != 0 && kind == "env" && variable().MatchString(name):
		return r.environment(name)
	case expands&inputs != 0 && kind == "input" && name != "":
		return r.input(name), true
	case expands&files != 0 && kind == "file" && name != "":
		return r.file(name)
	case expands&places != 0 && r.machine.place(body) != "":
		return r.machine.place(body), true
	case expands&workspace != 0 && body == "workspaceFolder":
		r.perProject = true
		return "${project}", true
	}
	r.plain(kind, body)
	return "", false
}

func (m *Machine) place(name string) string {
	switch {
	case name == "userHome":
		return m.homeReference()
	case name != "pathSeparator" && name != "/":
		return ""
	case m.OS == "windows":
		return `\`
	}
	return "/"
}

// plain notes a text that looks like a variable and is copied unchanged.
func (r *reading) plain(kind, body string) {
	shown := kind + ":…" // the rest may be secret
	if word().MatchString(body) {
		shown = body
	} else if !word().MatchString(kind) {
		shown = "…"
	}
	switch own := config.IsReferenceKind(kind) && kind != body; {
	case own && r.client != nil:
		r.note("has ${%s}, which is plain text in %s; it is copied unchanged", shown, r.client.Title)
	case own || r.dialect.expands&prefix != 0:
		r.noteLoss("has ${%s}, which Goblin does not support; it is copied unchanged", shown)
	}
}

// withDefault returns a reference. ok is false if the default cannot be part of it.
func (r *reading) withDefault(name, fallback string) (value string, ok bool) {
	value = "${" + name + ":-" + fallback + "}"
	if termtext.ClosingBrace(value) != len(value)-1 {
		r.noteLoss("has a variable with a default that Goblin cannot express; it is ignored")
		return "", false
	}
	return value, true
}

// file returns a reference to a file. ok is false if its path cannot be part of one.
func (r *reading) file(name string) (value string, ok bool) {
	dir := strings.ReplaceAll(r.dir, `\`, "/")
	at := path.Join(dir, name)
	checked := name + at
	switch {
	case strings.HasPrefix(name, "~/"):
		checked, at = name, r.machine.homeReference()+name[1:]
	case strings.HasPrefix(name, "/"), len(name) > 1 && name[1] == ':':
		checked, at = name, name
	}
	if strings.ContainsAny(checked, "{}") {
		r.noteLoss("reads a file whose path has braces; it is ignored")
		return "", false
	}
	return "${file:" + at + "}", true
}

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
		if value, ok := r.withDefault(name, escaped(def)); ok {
			return value
		}
	}
	return "${" + name + "}"
}

// writable returns an error if the client would expand a part of Goblin's command line.
func (c *Client) writable(d *dialect, words ...string) error {
	for _, word := range words {
		at := -1
		switch {
		case d.expands&dollar != 0:
			at = strings.IndexByte(word, '$')
		case d.expands&curly != 0:
			if in := curlyStart().FindStringIndex(word); in != nil {
				at = in[0]
			}
		case d.expands != 0:
			at = strings.Index(word, "${")
		}
		if at >= 0 {
			return fmt.Errorf("%s would expand a variable in %q, from %q on; move Goblin or its config to another path", c.Title, word, short(word[at:]))
		}
	}
	return nil
}
