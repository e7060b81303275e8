package meta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/registry/rawjson"
)

// param is one argument of a tool: what its schema says is what is checked.
type param struct {
	name, about string
	required    bool
	object      bool // any object
	number      bool // an integer from least to most, else a text
	least, most int  // of a text: most bytes
	standard    int  // of a number that is not given
}

// Bounds of what agents ask for.
const (
	maxLimit   = 1000
	maxOffset  = 1 << 30
	maxQuery   = 1 << 10 // bytes
	maxName    = 16 << 10
	manyCards  = 100 // of a catalog, if nothing is said
	someCards  = 20  // of a search
	maxExcerpt = 200 // characters of a description on a card
)

func limit(standard int) param {
	return param{name: "limit", about: "Entries in the answer at most", number: true, least: 1, most: maxLimit, standard: standard}
}

var (
	offset   = param{name: "offset", about: "Entries to leave out first: nextOffset of the answer before", number: true, most: maxOffset}
	serverID = param{name: "serverId", about: "Only of this server, see catalog_servers", most: maxName}
	mimeType = param{name: "mimeType", about: "Only of this MIME type; * stands for anything, as in image/*", most: maxName}
	query    = param{name: "query", about: "Keywords as tools use them: a verb, the thing, the service, synonyms; empty for all", required: true, most: maxQuery}
)

// option is the parameter in the schema of a tool.
func (p param) option() mcp.ToolOption {
	about := []mcp.PropertyOption{mcp.Description(p.about)}
	if p.required {
		about = append(about, mcp.Required())
	}
	if p.object {
		return mcp.WithObject(p.name, append(about, mcp.AdditionalProperties(true))...)
	}
	if !p.number {
		return mcp.WithString(p.name, about...)
	}
	about = append(about, mcp.Min(p.least), mcp.DefaultNumber(p.standard))
	if p.most < maxOffset {
		about = append(about, mcp.Max(p.most))
	}
	return mcp.WithInteger(p.name, about...)
}

// arguments are those of one call, checked.
type arguments struct {
	texts   map[string]string
	numbers map[string]int
}

func (a arguments) text(p param) string { return a.texts[p.name] }
func (a arguments) number(p param) int  { return a.numbers[p.name] }

// argumentError says what is wrong with the arguments of a call.
type argumentError struct{ text string }

func (e *argumentError) Error() string { return "INVALID_ARGUMENTS: " + e.text }

func wrong(format string, args ...any) error {
	return &argumentError{fmt.Sprintf(format, args...)}
}

// read checks a raw object of arguments.
func read(raw []byte, params []param) (arguments, error) {
	a := arguments{texts: map[string]string{}, numbers: map[string]int{}}
	given := map[string]bool{}
	for k, v := range rawjson.Members(raw) {
		name, _ := rawjson.String(k)
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			return a, wrong("unknown argument %s; known are %s", strconv.Quote(cut(name, 64)), known(params))
		case given[name]:
			return a, wrong("argument %q stands more than once", name)
		case string(v) == "null" && !params[i].required:
			continue
		}
		given[name] = true
		if err := params[i].read(v, a); err != nil {
			return a, err
		}
	}
	for _, p := range params {
		if p.required && !given[p.name] {
			return a, wrong("argument %q is missing: %s", p.name, p.about)
		}
		if p.number && !given[p.name] {
			a.numbers[p.name] = p.standard
		}
	}
	return a, nil
}

func (p param) read(v []byte, into arguments) error {
	if p.number {
		n, ok := rawjson.Int(v)
		if !ok || n < int64(p.least) || n > int64(p.most) {
			return wrong("argument %q must be an integer from %d to %d, not %s", p.name, p.least, p.most, cut(string(v), 64))
		}
		into.numbers[p.name] = int(n)
		return nil
	}
	text, ok := rawjson.String(v)
	switch {
	case !ok:
		return wrong("argument %q must be a string, not %s", p.name, cut(string(v), 64))
	case len(text) > p.most:
		return wrong("argument %q has %d bytes; %d are allowed", p.name, len(text), p.most)
	}
	into.texts[p.name] = text
	return nil
}

func known(params []param) string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:i] + "…"
		}
	}
	return s
}
