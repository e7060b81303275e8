package meta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/registry/rawjson"
)

// param is one argument of a tool. Its schema and its checks come from the same fields.
type param struct {
	name, description string
	required          bool
	object            bool // any object
	number            bool // an integer; otherwise a text
	minimum, maximum  int  // of a text: maximum in bytes
	defaultValue      int  // of a missing number
}

const (
	maxLimit            = 1000
	maxOffset           = 1 << 30
	maxQuery            = 1 << 10 // bytes
	maxName             = 16 << 10
	defaultCatalogCards = 100
	defaultSearchCards  = 20
	maxExcerpt          = 200 // characters of a description on a card
)

func limit(standard int) param {
	return param{name: "limit", description: "Maximum number of entries to return", number: true, minimum: 1, maximum: maxLimit, defaultValue: standard}
}

var (
	offset   = param{name: "offset", description: "Number of entries to skip: nextOffset of the previous answer", number: true, maximum: maxOffset}
	serverID = param{name: "serverId", description: "Only this server, see catalog_servers", maximum: maxName}
	mimeType = param{name: "mimeType", description: "Only this MIME type; * matches anything, as in image/*", maximum: maxName}
	query    = param{name: "query", description: "Keywords as used by tools: verb, object, service, synonyms; empty for all", required: true, maximum: maxQuery}
)

func (p param) schema() mcp.ToolOption {
	about := []mcp.PropertyOption{mcp.Description(p.description)}
	if p.required {
		about = append(about, mcp.Required())
	}
	if p.object {
		return mcp.WithObject(p.name, append(about, mcp.AdditionalProperties(true))...)
	}
	if !p.number {
		return mcp.WithString(p.name, about...)
	}
	about = append(about, mcp.Min(p.minimum), mcp.DefaultNumber(p.defaultValue))
	if p.maximum < maxOffset {
		about = append(about, mcp.Max(p.maximum))
	}
	return mcp.WithInteger(p.name, about...)
}

type arguments struct {
	texts   map[string]string
	numbers map[string]int
}

func (a arguments) text(p param) string { return a.texts[p.name] }
func (a arguments) number(p param) int  { return a.numbers[p.name] }

type argumentError struct{ text string }

func (e *argumentError) Error() string { return "INVALID_ARGUMENTS: " + e.text }

func invalidArguments(format string, args ...any) error {
	return &argumentError{fmt.Sprintf(format, args...)}
}

func parseArguments(raw []byte, params []param) (arguments, error) {
	a := arguments{texts: map[string]string{}, numbers: map[string]int{}}
	given := map[string]bool{}
	for k, v := range rawjson.Members(raw) {
		name, _ := rawjson.String(k)
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			return a, invalidArguments("unknown argument %s; known: %s", strconv.Quote(truncateText(name, 64)), isKnown(params))
		case given[name]:
			return a, invalidArguments("argument %q is given more than once", name)
		case string(v) == "null" && !params[i].required:
			continue
		}
		given[name] = true
		if err := params[i].parse(v, a); err != nil {
			return a, err
		}
	}
	for _, p := range params {
		if p.required && !given[p.name] {
			return a, invalidArguments("argument %q is missing: %s", p.name, p.description)
		}
		if p.number && !given[p.name] {
			a.numbers[p.name] = p.defaultValue
		}
	}
	return a, nil
}

func (p param) parse(v []byte, into arguments) error {
	if p.number {
		n, ok := rawjson.Int(v)
		if !ok || n < int64(p.minimum) || n > int64(p.maximum) {
			return invalidArguments("argument %q must be an integer from %d to %d, not %s", p.name, p.minimum, p.maximum, truncateText(string(v), 64))
		}
		into.numbers[p.name] = int(n)
		return nil
	}
	text, ok := rawjson.String(v)
	switch {
	case !ok:
		return invalidArguments("argument %q must be a string, not %s", p.name, truncateText(string(v), 64))
	case len(text) > p.maximum:
		return invalidArguments("argument %q has %d bytes; the limit is %d", p.name, len(text), p.maximum)
	}
	into.texts[p.name] = text
	return nil
}

func isKnown(params []param) string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

func truncateText(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:i] + "…"
		}
	}
	return s
}
