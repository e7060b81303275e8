package repair

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
)

const maxNested = 64

// SchemaCompiles reports whether the validators of TypeScript clients can compile a JSON
// schema. Releases from 1.20 on compile each outputSchema of a list, and one failure
// rejects the list. It returns false if uncertain.
func SchemaCompiles(schema []byte) bool {
	c := compiler{root: schema, resolved: make(map[string]bool)}
	return c.schema(schema, 0)
}

// SchemaProblem is the first part of a schema that validators may not compile.
type SchemaProblem struct {
	Keyword string // such as "minimum"; "" if the schema is no object
	Path    string // JSON pointer to the keyword's value
	Value   []byte // of the keyword
	Unsure  bool   // some validators accept it
}

// FindSchemaProblem returns nil if [SchemaCompiles] returns true.
func FindSchemaProblem(schema []byte) *SchemaProblem {
	c := compiler{root: schema, resolved: make(map[string]bool)}
	if c.schema(schema, 0) {
		return nil
	}
	switch c.problem.Keyword {
	case "pattern", "patternProperties", "id", "nullable":
		c.problem.Unsure = true
	case "$ref":
		ref, _ := rawjson.String(c.problem.Value)
		c.problem.Unsure = strings.HasPrefix(ref, "#") && ref != "#" && !strings.HasPrefix(ref, "#/") // an anchor
	}
	return &c.problem
}

type compiler struct {
	root     []byte
	resolved map[string]bool // targets of references
	problem  SchemaProblem
}

// fail records the innermost keyword, and extends its path by each outer one.
func (c *compiler) fail(keyword string, value []byte) {
	if c.problem.Keyword == "" {
		c.problem.Keyword, c.problem.Value = keyword, value
	}
	c.addPath(keyword)
}

func (c *compiler) addPath(name string) { c.problem.Path = "/" + shorten(name) + c.problem.Path }

var scalarKeywords = map[string]kind{
	"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number, "multipleOf": number,
	"minLength": number, "maxLength": number, "minItems": number, "maxItems": number, "minProperties": number, "maxProperties": number,
	"format": text, "$id": text,
	"uniqueItems": boolean, "nullable": boolean,
	"required": array,
}

func (c *compiler) keyword(name string, v []byte, depth int) bool {
	switch name {
	case "type":
		return isType(v)
	case "enum":
		return isKind(v, array) && childOf(v, "0") != nil
	case "$ref":
		return c.reference(v, depth)
	case "pattern":
		return isPattern(v)
	case "additionalProperties", "additionalItems", "contains", "propertyNames", "not", "if", "then", "else":
		return c.schema(v, depth)
	case "allOf", "anyOf", "oneOf":
		return isKind(v, array) && c.elements(v, depth)
	case "items":
		return c.items(v, depth)
	case "properties":
		return isKind(v, object) && c.values(v, depth)
	case "patternProperties":
		return isKind(v, object) && arePatterns(v) && c.values(v, depth)
	case "dependencies":
		return isKind(v, object) && c.values(v, depth, array)
	case "id": // of draft 4; validators refuse it
		return false
	}
	want, known := scalarKeywords[name]
	return !known || isKind(v, want)
}

// items accepts one schema for all elements, or one for each.
func (c *compiler) items(v []byte, depth int) bool {
	return isKind(v, array) && c.elements(v, depth) || c.schema(v, depth)
}

func arePatterns(object []byte) bool {
	for k := range rawjson.Members(object) {
		if !isPattern(k) {
			return false
		}
	}
	return true
}

func isKind(v []byte, k kind) bool {
	is, ok := kindOf(v)
	return ok && is == k
}

func (c *compiler) schema(v []byte, depth int) bool {
	if isKind(v, boolean) {
		return true
	}
	if !isKind(v, object) || depth > maxNested {
		return false
	}
	typed, nullable := false, false
	for k, value := range rawjson.Members(v) {
		name := string(k.Name())
		if !c.keyword(name, value, depth+1) {
			c.fail(name, value)
			return false
		}
		typed = typed || name == "type"
		nullable = nullable || name == "nullable"
	}
	if nullable && !typed {
		c.fail("nullable", nil)
		return false
	}
	return true
}

func (c *compiler) elements(v []byte, depth int) bool {
	for e := range rawjson.Elements(v) {
		if !c.schema(e, depth) {
			return false
		}
	}
	return true
}

// values checks the schemas in an object. Values of the kinds in others pass.
func (c *compiler) values(v []byte, depth int, others ...kind) bool {
	for k, s := range rawjson.Members(v) {
		if is, ok := kindOf(s); ok && slices.Contains(others, is) {
			continue
		}
		if !c.schema(s, depth) {
			c.addPath(string(k.Name()))
			return false
		}
	}
	return true
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func isType(v []byte) bool {
	known := func(v []byte) bool {
		name, ok := rawjson.String(v)
		return ok && slices.Contains(typeNames, name)
	}
	if !isKind(v, array) {
		return known(v)
	}
	some := false
	for e := range rawjson.Elements(v) {
		some = true
		if !known(e) {
			return false
		}
	}
	return some
}

func isPattern(v []byte) bool {
	pattern, ok := rawjson.String(v)
	return ok && isRegExp(pattern)
}

// reference resolves a JSON pointer into the schema. Other references fail.
func (c *compiler) reference(v []byte, depth int) bool {
	ref, ok := rawjson.String(v)
	pointer, local := strings.CutPrefix(ref, "#")
	if !ok || !local {
		return false
	}
	if c.resolved[pointer] {
		return true
	}
	c.resolved[pointer] = true
	target := c.root
	if pointer, err := url.PathUnescape(pointer); err != nil || pointer != "" && pointer[0] != '/' {
		return false
	} else if pointer != "" {
		for name := range strings.SplitSeq(pointer[1:], "/") {
			if target = childOf(target, strings.NewReplacer("~1", "/", "~0", "~").Replace(name)); target == nil {
				return false
			}
		}
	}
	return c.schema(target, depth)
}

func childOf(v []byte, name string) []byte {
	if !isKind(v, array) {
		return rawjson.Get(v, name)
	}
	i := 0
	for e := range rawjson.Elements(v) {
		if strconv.Itoa(i) == name {
			return e
		}
		i++
	}
	return nil
}
