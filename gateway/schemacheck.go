package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// maxSchemaSteps limits the check, since schemas are untrusted and may be recursive.
const maxSchemaSteps = 10_000

const maxMistakes = 5

// ValidateNested returns an error if call_tool calls itself, or if arguments violate the
// tool's schema. Unsupported keywords are left to the server.
func ValidateNested(t registry.Target, arguments []byte) error {
	if t.Local != nil && t.Local.Tool.ForwardsCall {
		return argumentError("%s cannot call itself", t.Listed)
	}
	tool := t.Entry
	if tool == nil || t.Local != nil { // these check themselves
		return nil
	}
	c := checker{stepsLeft: maxSchemaSteps}
	var value any
	if decodeJSON(rawjson.Get(tool.JSON(), "inputSchema"), &c.root) != nil || decodeJSON(arguments, &value) != nil {
		return nil
	}
	c.check("", c.root, value)
	if c.stepsLeft <= 0 || len(c.mistakes) == 0 {
		return nil
	}
	return argumentError("%s; see describe_tool for the arguments of %s", strings.Join(c.mistakes[:min(len(c.mistakes), maxMistakes)], "; "), tool.Listed)
}

func decodeJSON(raw []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

type checker struct {
	root      any
	stepsLeft int
	mistakes  []string
}

func (c *checker) addMistake(path, format string, args ...any) {
	if path == "" {
		path = "/"
	}
	c.mistakes = append(c.mistakes, path+" "+fmt.Sprintf(format, args...))
}

func (c *checker) check(path string, schema, value any) {
	s, ok := schema.(map[string]any)
	if c.stepsLeft--; !ok || c.stepsLeft <= 0 {
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		c.check(path, c.at(ref), value)
	}
	if value == nil && s["nullable"] == true { // OpenAPI
		return
	}
	if !fitsType(s["type"], value) {
		c.addMistake(path, "must be %s, not %s", typeNames(s["type"]), formatValue(value))
		return
	}
	among, ok := s["enum"].([]any)
	c.stepsLeft -= len(among)
	if ok && !slices.ContainsFunc(among, func(one any) bool { return equal(one, value) }) {
		c.addMistake(path, "must be one of %s, not %s", formatValues(among), formatValue(value))
	}
	if only, ok := s["const"]; ok && !equal(only, value) {
		c.addMistake(path, "must be %s, not %s", formatValue(only), formatValue(value))
	}
	c.forms(path, s, value)
	if all, ok := s["allOf"].([]any); ok {
		for _, one := range all {
			c.check(path, one, value)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		c.checkObject(path, s, value)
	case []any:
		if _, tuple := s["prefixItems"]; !tuple {
			for i, item := range value {
				c.check(path+"/"+strconv.Itoa(i), s["items"], item)
			}
		}
	}
}

func (c *checker) forms(path string, s map[string]any, value any) {
	for _, key := range []string{"anyOf", "oneOf"} {
		if some, ok := s[key].([]any); ok && len(some) > 0 && !c.matchesAny(path, some, value) {
			c.addMistake(path, "matches none of the allowed forms")
		}
	}
}

func (c *checker) matchesAny(path string, some []any, value any) bool {
	return slices.ContainsFunc(some, func(one any) bool {
		inner := checker{root: c.root, stepsLeft: c.stepsLeft}
		inner.check(path, one, value)
		c.stepsLeft = inner.stepsLeft
		return c.stepsLeft <= 0 || len(inner.mistakes) == 0
	})
}

func (c *checker) checkObject(path string, s, value map[string]any) {
	known, _ := s["properties"].(map[string]any)
	if required, ok := s["required"].([]any); ok {
		for _, name := range required {
			if name, ok := name.(string); ok {
				if _, given := value[name]; !given {
					c.addMistake(path+"/"+pointer(name), "is missing")
				}
			}
		}
	}
	_, patterns := s["patternProperties"]
	for _, name := range slices.Sorted(maps.Keys(value)) {
		at := path + "/" + pointer(name)
		if schema, ok := known[name]; ok {
			c.check(at, schema, value[name])
		} else if !patterns {
			if s["additionalProperties"] == false {
				c.addMistake(at, "is unknown; allowed: %s", joinFirst(slices.Sorted(maps.Keys(known))))
			}
			c.check(at, s["additionalProperties"], value[name])
		}
	}
}

func pointer(name string) string {
	return excerpt(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

func (c *checker) at(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	at := c.root
	for _, name := range strings.Split(path, "/")[1:] {
		if object, is := at.(map[string]any); is && ok {
			at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		} else {
			return nil
		}
	}
	if !ok {
		return nil
	}
	return at
}

func fitsType(of, value any) bool {
	switch of := of.(type) {
	case string:
		return hasType(of, value)
	case []any:
		return len(of) == 0 || slices.ContainsFunc(of, func(one any) bool {
			name, ok := one.(string)
			return !ok || hasType(name, value)
		})
	}
	return true
}

func hasType(name string, value any) bool {
	switch name {
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "null":
		return value == nil
	case "number", "integer":
		n, ok := value.(json.Number)
		return ok && (name == "number" || isInteger(n))
	}
	return true
}

// isInteger accepts 1.0 and 1e3.
func isInteger(n json.Number) bool {
	if _, err := strconv.ParseInt(string(n), 10, 64); err == nil || len(n) > 32 {
		return true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return err != nil || f == float64(int64(f)) || f > 1<<53 || f < -1<<53
}

// equal treats 1 and 1.0 as equal.
func equal(a, b any) bool {
	x, ok := a.(json.Number)
	y, also := b.(json.Number)
	if !ok || !also {
		return reflect.DeepEqual(a, b)
	}
	f, _ := strconv.ParseFloat(string(x), 64) // or the nearest value
	g, _ := strconv.ParseFloat(string(y), 64)
	return x == y || f == g
}

func typeNames(of any) string {
	several, ok := of.([]any)
	if !ok {
		return fmt.Sprint(of)
	}
	names := make([]string, len(several))
	for i, one := range several {
		names[i] = fmt.Sprint(one)
	}
	return strings.Join(names, " or ")
}

func formatValue(value any) string {
	raw, _ := json.Marshal(value) // decoded from JSON
	return excerpt(string(raw))
}

func formatValues(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = formatValue(v)
	}
	return joinFirst(texts)
}

func joinFirst(words []string) string {
	const most = 20
	if len(words) > most {
		words = append(words[:most:most], "…")
	}
	return strings.Join(words, ", ")
}
