package savedcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// New returns the call of a request, as a client sent it or a recording has it. A request
// of another method is an error. Placeholders of secrets in recordings become variables:
// the caller must show their names to the user.
func New(method string, params json.RawMessage) (c *Call, variables []string, err error) {
	c = &Call{Line: 1}
	for _, kind := range []Kind{KindCall, KindRead, KindPrompt} {
		if kind.Method() == method {
			c.Kind = kind
		}
	}
	switch {
	case c.Kind == "":
		return nil, nil, fmt.Errorf("%s cannot be saved; only tools/call, resources/read and prompts/get can", method)
	case len(params) > MaxFile:
		return nil, nil, errors.New("the request is larger than 1 MiB")
	case rawjson.Valid(params) != nil || !rawjson.IsObject(params):
		return nil, nil, errors.New("the params of the request are missing or incomplete")
	}
	if depth, _, _ := nesting(params); depth > maxDepth {
		return nil, nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	key := c.Kind.NameMember()
	b := builder{names: make(map[string]string), used: make(map[string]int)}
	if c.Name = b.text(rawjson.GetString(params, key), key); c.Name == "" {
		return nil, nil, fmt.Errorf("the request has no %s", key)
	}
	if arguments := rawjson.Get(params, "arguments"); rawjson.IsObject(arguments) && c.Kind != KindRead {
		c.Arguments = b.value(arguments, "")
	}
	if b.err != nil {
		return nil, nil, b.err
	}
	if _, err := Parse("", c.Format()); err != nil {
		return nil, nil, fmt.Errorf("the request cannot be saved: %w", err)
	}
	return c, b.variables, nil
}

// builder copies values, escapes "${" and replaces placeholders.
type builder struct {
	variables []string          // in order, each once
	names     map[string]string // variables by placeholder with a hash
	used      map[string]int    // next number by variable; 0 for unused ones
	err       error
}

// value returns the copy of a value. name is the name of the nearest member.
func (b *builder) value(v []byte, name string) []byte {
	switch {
	case rawjson.IsObject(v):
		seen := make(map[string]bool)
		out := []byte{'{'}
		for key, value := range rawjson.Members(v) {
			member, _ := rawjson.String(key)
			if seen[member] || recording.HasPlaceholder(member) {
				b.err = fmt.Errorf("the member %q is repeated or hidden", member)
			}
			seen[member] = true
			out = rawjson.AppendMember(out, key, b.value(value, member))
		}
		return append(out, '}')
	case rawjson.IsArray(v):
		var items [][]byte
		for item := range rawjson.Elements(v) {
			items = append(items, b.value(item, name))
		}
		return rawjson.Array(items...)
	}
	if s, ok := rawjson.String(v); ok {
		return rawjson.Quote(b.text(s, name))
	}
	return v
}

func (b *builder) text(s, name string) string {
	var out strings.Builder
	for {
		start, end := recording.Placeholder(s)
		if start < 0 {
			out.WriteString(Escape(s))
			return out.String()
		}
		out.WriteString(Escape(s[:start]))
		variable := b.variable(s[start:end], name)
		out.WriteString("${" + variable + "}")
		s = s[end:]
	}
}

// Escape returns a text without variables that resolves to s.
func Escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// variable returns the variable for a placeholder: the same one for the same hash.
func (b *builder) variable(placeholder, member string) string {
	if known := b.names[placeholder]; known != "" {
		return known
	}
	base := strings.Trim(clean(strings.ToUpper(member), '_'), "_")
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = strings.TrimSuffix("SECRET_"+base, "_")
	}
	name := base
	for i := max(2, b.used[base]); b.used[name] > 0; i++ {
		name = base + "_" + strconv.Itoa(i)
		b.used[base] = i + 1
	}
	b.used[name] = max(b.used[name], 1)
	b.variables = append(b.variables, name)
	if strings.Contains(placeholder, ":") {
		b.names[placeholder] = name
	}
	return name
}

// clean replaces each run of characters that are no ASCII letters or digits.
func clean(s string, by byte) string {
	var out []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != by:
			out = append(out, by)
		}
	}
	return string(out)
}

const maxName = 60 // characters of a proposed file name, without its suffixes

// FileName proposes the name of a call's file: the tool's name with safe characters. taken
// reports whether a name exists in the folder.
func (c *Call) FileName(taken func(name string) bool) string {
	name := c.Name
	if _, rest, ok := strings.Cut(name, "://"); ok && c.Kind == KindRead {
		name = rest
	}
	base := strings.ToLower(clean(name, '_'))
	base = strings.Trim(base[max(len(base)-maxName, 0):], "_") // the end differs more than the server
	if base == "" {
		base = string(c.Kind)
	}
	if isReserved(base) {
		base += "_" + string(c.Kind)
	}
	file := base + ".yaml"
	for i := 2; taken != nil && taken(file); i++ {
		file = base + "_" + strconv.Itoa(i) + ".yaml"
	}
	return file
}

// isReserved reports whether Windows reserves a file name, with any suffix.
func isReserved(base string) bool {
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
}

// IsFile reports whether a file may be a saved call, by its name.
func IsFile(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

// AnswerFile returns the name or path of the stored answer beside that of a call:
// one.answer.json for one.yaml.
func AnswerFile(name string) string {
	return strings.TrimSuffix(name, path.Ext(name)) + ".answer.json"
}
