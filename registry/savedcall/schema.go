package savedcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"goblin/registry/compare"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

// maxSchemaSteps limits the steps of a validation.
const maxSchemaSteps = 16 << 20

// checkSchema returns the reason why structuredContent does not fit the outputSchema.
func (r *Request) checkSchema(a Answer) string {
	value := rawjson.Get(a.Result, "structuredContent")
	switch {
	case r.Call.Kind != KindCall:
		return "only tools have an outputSchema"
	case len(a.OutputSchema) == 0:
		return "the tool has no outputSchema"
	case a.Error != nil:
		return "the answer is an error"
	case value == nil:
		return "the answer has no structuredContent"
	}
	if err := fits(a.OutputSchema, value); err != nil {
		return short(err.Error())
	}
	return ""
}

// fits returns an error if value does not fit a schema.
func fits(schema, value []byte) error {
	resolved, err := definition.ResolveSchema(schema)
	if err != nil {
		return fmt.Errorf("outputSchema: %w", err)
	}
	if n := countValues(value); n > compare.MaxValues {
		return fmt.Errorf("structuredContent has more than %d values", compare.MaxValues)
	}
	var content any
	if err := json.Unmarshal(value, &content); err != nil { // a number too large for the library
		return fmt.Errorf("structuredContent: %w", err)
	}
	if err := resolved.Validate(content, maxSchemaSteps); err != nil {
		return errors.New(problem(err))
	}
	return nil
}

// countValues returns an upper limit for the number of values in a JSON text.
func countValues(text []byte) int {
	n := 1
	for _, c := range text {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	}
	return n
}

// problem returns the last place and the problem of an error of the library. The error
// names the schemas from the root on: "validating root: validating /properties/a: …".
func problem(err error) string {
	place, text := "", err.Error()
	for {
		next, ok := strings.CutPrefix(text, "validating ")
		at, rest, found := strings.Cut(next, ": ")
		if !ok || !found {
			break
		}
		place, text = at, rest
	}
	if i := strings.LastIndex(text, `has type "`); i > 0 && strings.HasPrefix(text, "type: ") {
		text = text[i:] // the value may be long
	}
	if place == "" || place == "root" {
		return text
	}
	return "at " + place + ": " + text
}
