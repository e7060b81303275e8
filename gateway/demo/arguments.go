package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// rules are the checked part of a schema: objects with strings and numbers.
type rules struct {
	Required   []string
	Properties map[string]rule
}

type rule struct {
	Type                 string
	Enum                 []string
	MinLength, MaxLength *float64
	Minimum, Maximum     *float64
}

// withCheckedArguments rejects calls whose arguments don't match the tool's schema. The
// error is for the user of a form.
func withCheckedArguments(tool mcp.Tool, call toolHandler) toolHandler {
	var r rules
	text, err := json.Marshal(tool.InputSchema)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil { // unreachable: the schemas are in this package
		panic(fmt.Sprintf("schema of tool %q: %v", tool.Name, err))
	}
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if list := r.complaints(req.Params.Arguments); len(list) > 0 {
			return mcp.NewToolResultError("invalid arguments: " + strings.Join(list, "; ")), nil
		}
		return call(ctx, req)
	}
}

func (r rules) complaints(arguments any) []string {
	if arguments == nil {
		arguments = map[string]any{}
	}
	members, ok := arguments.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("got %s, want object", kindOf(arguments))}
	}
	var list, missing []string
	for _, name := range r.Required {
		if _, there := members[name]; !there {
			missing = append(missing, strconv.Quote(name))
		}
	}
	if len(missing) > 0 {
		list = append(list, "missing "+strings.Join(missing, ", "))
	}
	for name, value := range members {
		if known, ok := r.Properties[name]; ok {
			for _, complaint := range known.complaints(value) {
				list = append(list, fmt.Sprintf("%q: %s", name, complaint))
			}
		}
	}
	slices.Sort(list) // map order is random
	return list
}

func (r rule) complaints(value any) []string {
	var list []string
	limit := func(word string, got float64, bound *float64, over bool) {
		if bound != nil && (over && got > *bound || !over && got < *bound) {
			list = append(list, fmt.Sprintf("%s: got %s, want %s", word, thousands(got), thousands(*bound)))
		}
	}
	switch v := value.(type) {
	case string:
		if r.Type != "string" {
			break
		}
		length := float64(utf8.RuneCountInString(v))
		limit("minLength", length, r.MinLength, false)
		limit("maxLength", length, r.MaxLength, true)
		if r.Enum != nil && !slices.Contains(r.Enum, v) {
			list = append(list, "value must be one of '"+strings.Join(r.Enum, "', '")+"'")
		}
		return list
	case float64:
		if r.Type != "integer" || v != math.Trunc(v) {
			break
		}
		limit("minimum", v, r.Minimum, false)
		limit("maximum", v, r.Maximum, true)
		return list
	}
	return []string{fmt.Sprintf("got %s, want %s", kindOf(value), r.Type)}
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func thousands(n float64) string {
	digits := strconv.FormatFloat(math.Abs(n), 'f', -1, 64)
	var b strings.Builder
	if n < 0 {
		b.WriteByte('-')
	}
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}
