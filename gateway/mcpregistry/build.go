package mcpregistry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goblin/registry/candidate"
	"goblin/registry/termtext"
)

// CheckAnswer returns what is wrong with the answer to a question, or "".
func CheckAnswer(q *candidate.Variable, answer string) string {
	switch {
	case strings.ContainsRune(answer, 0):
		return "must not contain NUL"
	case reference(answer):
		return "" // its value is not known yet
	case len(q.Choices) > 0 && !slices.Contains(q.Choices, answer):
		return "must be one of " + strings.Join(q.Choices, ", ")
	case q.Format == "number":
		n, err := strconv.ParseFloat(answer, 64)
		switch {
		case err != nil:
			return "must be a number"
		case q.Min != nil && n < *q.Min:
			return fmt.Sprintf("must be %g or more", *q.Min)
		case q.Max != nil && n > *q.Max:
			return fmt.Sprintf("must be %g or less", *q.Max)
		}
	case q.Format == "boolean" && answer != "true" && answer != "false":
		return "must be true or false"
	}
	return ""
}

// Variables returns the values that the user can set, each once.
func (c *Choice) Variables() []candidate.Variable {
	b := &builder{}
	_, _ = b.keys(c) // missing values are the questions
	return b.questions
}

// Build returns the definition of a server with the given name. answers are keyed by
// [candidate.Variable].Key. An answer like ${VAR} stays a reference, and secrets become
// references. Text from the registry is never treated as a reference.
func (c *Choice) Build(name string, answers map[string][]string) (*candidate.Definition, error) {
	switch {
	case c.Problem != "":
		return nil, fmt.Errorf("%s: %s", c.entry.Name, c.Problem)
	case c.NeedsDownload():
		return nil, fmt.Errorf("%s: its bundle was not downloaded", c.entry.Name)
	}
	b := &builder{name: name, answers: answers}
	keys, err := b.keys(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.entry.Name, err)
	}
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		if !slices.ContainsFunc(b.questions, func(q candidate.Variable) bool { return q.Key == key }) {
			return nil, fmt.Errorf("%s: unknown value %q; known: %s", c.entry.Name, key, cmp.Or(b.known(), "none"))
		}
	}
	return &candidate.Definition{Name: name, Comment: comment(c.entry), Keys: keys, Secrets: b.secrets}, nil
}

func comment(e *Entry) string {
	text := e.Name
	if e.Version != "" {
		text += " " + e.Version
	}
	return termtext.Line(termtext.Truncate(text, 200)) + ", from the MCP registry"
}

type builder struct {
	name      string
	answers   map[string][]string
	questions []candidate.Variable
	secrets   []candidate.Secret
	missing   []string
	wrong     []string
}

func (b *builder) known() string {
	var keys []string
	for _, q := range b.questions {
		keys = append(keys, q.Key)
	}
	return strings.Join(keys, ", ")
}

// startup is the startup_timeout of packages: the first start downloads them.
const startup = "2m"

func (b *builder) keys(c *Choice) (map[string]any, error) {
	keys := map[string]any{}
	switch {
	case c.bundle != nil:
		b.bundle(c.bundle, keys)
	case c.plan != nil:
		var passed []KeyValue
		env := b.pairs(c.pkg.Environment, func(v KeyValue) { passed = append(passed, v) })
		keys["command"] = c.plan.command
		keys["args"] = c.plan.words(b.arguments(c.pkg.RuntimeArguments), b.arguments(c.pkg.Arguments), passed)
		if len(env) > 0 {
			keys["env"] = env
		}
		keys["startup_timeout"] = startup
	case c.remote != nil:
		in := Input{Value: &c.remote.URL, Variables: c.remote.Variables, Required: true}
		address, _ := b.value("url", in, false)
		keys["url"], keys["type"] = b.join(address[0]), c.Kind
		if headers := b.pairs(c.remote.Headers, func(KeyValue) {}); len(headers) > 0 {
			keys["headers"] = headers
		}
	}
	switch {
	case len(b.missing) > 0:
		return nil, fmt.Errorf("needs %s; set it with --set %s=VALUE", strings.Join(b.missing, ", "), b.missing[0])
	case len(b.wrong) > 0:
		return nil, errors.New(strings.Join(b.wrong, "; "))
	case c.remote != nil:
		return keys, checkURL(keys["url"].(string))
	}
	return keys, nil
}

func (b *builder) pairs(all []KeyValue, has func(KeyValue)) map[string]string {
	found := map[string]string{}
	for _, v := range all {
		if value, ok := b.value(v.Name, v.Input, false); ok {
			found[v.Name] = b.join(value[0])
			has(v)
		}
	}
	return found
}

// checkURL accepts any value for references.
func checkURL(text string) error {
	u, err := url.Parse(references().ReplaceAllString(text, "x"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsFunc(text, unicode.IsSpace) {
		return fmt.Errorf("invalid URL %q", termtext.Truncate(text, 200))
	}
	return nil
}

var references = once(`\$\{[^{}]*\}`)

func (b *builder) arguments(all []Argument) (words []string) {
	for _, a := range all {
		named := a.Type == "named" && a.Name != ""
		key := cmp.Or(a.Hint, "argument")
		if named {
			key = cmp.Or(strings.TrimLeft(a.Name, "-"), key)
		}
		if named && a.isFlag() {
			words = append(words, literal(a.Name))
			continue
		}
		values, ok := b.value(key, a.Input, a.Repeated)
		if !ok {
			continue
		}
		for _, v := range values {
			if named {
				words = append(words, literal(a.Name))
			}
			words = append(words, b.join(v))
		}
	}
	return words
}

// isFlag reports whether a named argument has no value.
func (a *Argument) isFlag() bool {
	return a.Value == nil && a.Default == "" && a.Description == "" && a.Placeholder == "" && a.Hint == "" &&
		len(a.Choices) == 0 && !a.Required && !a.Secret && a.Format == ""
}

// segment is a part of a value: literal text or a config reference.
type segment struct {
	text      string
	reference bool
}

func literal(s string) string { return strings.ReplaceAll(s, "${", "$${") }

func (b *builder) join(pieces []segment) string {
	var out, plain strings.Builder
	flush := func() {
		out.WriteString(literal(plain.String()))
		plain.Reset()
	}
	for _, p := range pieces {
		if !p.reference {
			plain.WriteString(p.text)
			continue
		}
		if strings.HasSuffix(plain.String(), "$") { // it would escape the reference
			b.wrong = append(b.wrong, "a reference must not follow \"$\"")
		}
		flush()
		out.WriteString(p.text)
	}
	flush()
	return out.String()
}

func reference(s string) bool {
	at := references().FindStringIndex(s)
	return at != nil && at[0] == 0 && at[1] == len(s)
}

// value resolves an input. ok is false if it has no value and needs none.
func (b *builder) value(key string, in Input, repeated bool) (values [][]segment, ok bool) {
	if in.Value == nil {
		return b.answer(key, in, repeated)
	}
	pieces, whole := b.fill(in)
	return [][]segment{pieces}, whole || in.Required
}

var variable = once(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// fill replaces variables in a value. whole is false if one has no value. Braces around
// an unknown name stay. Variables of a secret value are secret.
func (b *builder) fill(of Input) (pieces []segment, whole bool) {
	template := *of.Value
	whole = true
	end := 0
	for _, at := range variable().FindAllStringIndex(template, -1) {
		name := template[at[0]+1 : at[1]-1]
		in, known := of.Variables[name]
		if !known {
			continue
		}
		in.Secret = in.Secret || of.Secret
		pieces = append(pieces, segment{text: template[end:at[0]]})
		end = at[1]
		in.Variables = nil // variables are not nested
		var value [][]segment
		ok := true
		if in.Value != nil {
			value = [][]segment{{{text: *in.Value}}}
		} else {
			value, ok = b.answer(name, in, false)
		}
		if !ok {
			whole = false
			continue
		}
		pieces = append(pieces, value[0]...)
	}
	return append(pieces, segment{text: template[end:]}), whole
}

func (b *builder) answer(key string, in Input, repeated bool) ([][]segment, bool) {
	q := candidate.Variable{
		Key: key, Description: in.Description, Required: in.Required, Secret: in.Secret, Format: in.Format,
		Default: in.Default, Placeholder: in.Placeholder, Choices: in.Choices, Min: in.Min, Max: in.Max, Repeated: repeated,
	}
	if !slices.ContainsFunc(b.questions, func(o candidate.Variable) bool { return o.Key == key }) {
		b.questions = append(b.questions, q)
	}
	given := b.answers[key]
	switch {
	case len(given) == 0 && in.Default != "":
		return [][]segment{{{text: in.Default}}}, true
	case len(given) == 0 && in.Required:
		if !slices.Contains(b.missing, key) {
			b.missing = append(b.missing, key)
		}
		return [][]segment{nil}, true
	case len(given) == 0:
		return nil, false
	case len(given) > 1 && !repeated:
		b.wrong = append(b.wrong, key+" takes one value")
	}
	var values [][]segment
	for i, v := range given {
		if problem := CheckAnswer(&q, v); problem != "" {
			b.wrong = append(b.wrong, key+" "+problem)
		}
		switch {
		case reference(v), !in.Secret && references().MatchString(v):
			values = append(values, []segment{{v, true}})
		case in.Secret:
			values = append(values, []segment{{b.secret(key, i, v), true}})
		default:
			values = append(values, []segment{{text: v}})
		}
	}
	return values, true
}

func (b *builder) secret(key string, n int, value string) string {
	name := termtext.Truncate(normalizeName(b.name+"."+key), 120)
	if n > 0 {
		name += "." + strconv.Itoa(n+1)
	}
	if !slices.ContainsFunc(b.secrets, func(s candidate.Secret) bool { return s.Name == name }) {
		b.secrets = append(b.secrets, candidate.Secret{Name: name, Value: value})
	}
	return "${keyring:" + name + "}"
}

func normalizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s)
}

// ShortName suggests a server name for the config.
func (e *Entry) ShortName() string {
	space, name, _ := strings.Cut(e.Name, "/")
	for _, affix := range []string{"mcp-server-", "server-", "mcp-"} {
		name = strings.TrimPrefix(name, affix)
	}
	for _, affix := range []string{"-mcp-server", "-server", "-mcp"} {
		name = strings.TrimSuffix(name, affix)
	}
	if name == "" || name == "mcp" || name == "server" {
		name = space[strings.LastIndexByte(space, '.')+1:]
	}
	name = strings.TrimLeft(termtext.Truncate(normalizeName(name), 64), "._-")
	if name == "" || strings.EqualFold(name, "goblin") {
		return "server"
	}
	return name
}
