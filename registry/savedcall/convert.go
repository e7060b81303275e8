package savedcall

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/rawjson"
)

// converter converts YAML to JSON. Numbers keep all their digits.
type converter struct {
	*parser
	notes notes
}

func (c *converter) append(dst []byte, n *yaml.Node, at string, depth int) []byte {
	if depth > maxDepth {
		c.failf(n.Line, "values are nested more than %d deep", maxDepth)
		return dst
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.object(dst, n, at, depth)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = c.append(dst, item, at+"/"+strconv.Itoa(i), depth+1)
		}
		return append(dst, ']')
	case yaml.ScalarNode:
		return c.scalar(dst, n, at)
	}
	c.failf(n.Line, "aliases are not supported; write the value again")
	return dst
}

func (c *converter) object(dst []byte, n *yaml.Node, at string, depth int) []byte {
	known := c.members(n, "an object", nil)
	dst = append(dst, '{')
	for i, first := 0, true; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.ShortTag() == "!!merge" {
			c.failf(key.Line, "merge keys are not supported; write the members again")
			continue
		}
		if pair, ok := known[key.Value]; !ok || pair.key != key {
			continue // reported
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(rawjson.AppendString(dst, key.Value), ':')
		dst = c.append(dst, n.Content[i+1], at+"/"+escapePointer(key.Value), depth+1)
	}
	return append(dst, '}')
}

func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func (c *converter) scalar(dst []byte, n *yaml.Node, at string) []byte {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return append(dst, "null"...)
	case "!!bool":
		return append(dst, strings.ToLower(n.Value)...)
	case "!!int", "!!float":
		if number := jsonNumber(n.Value); number != "" {
			return append(dst, number...)
		}
		c.failf(n.Line, "%q is no number in JSON; quote a text", n.Value)
		return dst
	case "!!str", "!!timestamp":
	default:
		c.failf(n.Line, "tag %q is not supported", tag)
		return dst
	}
	if strings.Contains(n.Value, "$") {
		c.checkVariables(n.Line, n.Value)
		_, lone := loneVariable(n.Value)
		c.notes[at] = note{line: n.Line, plain: lone && isPlain(n)}
	}
	return rawjson.AppendString(dst, n.Value)
}

// isPlain reports whether a scalar has no quotes.
func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// jsonNumber returns a YAML number as JSON spells it, or "" if JSON has none.
func jsonNumber(s string) string {
	if rawjson.Valid([]byte(s)) == nil && !strings.ContainsAny(s, " \n") {
		return s
	}
	plain := strings.ReplaceAll(s, "_", "")
	if n, ok := new(big.Int).SetString(plain, 0); ok {
		return n.String()
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return ""
}
