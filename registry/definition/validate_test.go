package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/definition"
)

// A schema that refers to itself from its parts is fine, unless a value makes that slow.
func TestSchemasThatTakeLongAreNotApplied(t *testing.T) {
	t.Parallel()
	const tree = `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}}}`
	many := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/a"},`, 5000), ",")
	for name, row := range map[string]struct{ schema, value string }{
		"alternatives in items": {
			`{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"},"contains":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}}}`,
			strings.Repeat("[", 60) + strings.Repeat("]", 60),
		},
		"a pattern for many alternatives": {`{"allOf":[` + many + `],"$defs":{"a":{"pattern":"(a|b){900}x"}}}`, `"` + strings.Repeat("ab", 5000) + `"`},
		"a long enum":                     {`{"items":{"enum":[` + strings.Repeat(`"x",`, 90_000) + `1]}}`, `[` + strings.Repeat(`1,`, 90_000) + `1]`},
		"errors about a large value":      {`{"anyOf":[` + many + `],"$defs":{"a":{"type":"string"}}}`, `[` + strings.Repeat(`1,`, 90_000) + `1]`},
	} {
		s, err := definition.ResolveSchema([]byte(row.schema))
		require.NoError(t, err, name)
		require.True(t, errors.Is(s.Validate(decoded(t, row.value), 1<<20), definition.ErrNotApplied), name)
	}
	deep := strings.Repeat(`{"r":1,"l":`, 500) + "{}" + strings.Repeat("}", 500)
	s, err := definition.ResolveSchema([]byte(tree))
	require.NoError(t, err)
	require.ErrorContains(t, s.Validate(decoded(t, deep), 1<<20), "has type")
	require.NoError(t, s.Validate(decoded(t, strings.ReplaceAll(deep, `"r":1`, `"r":{}`)), 1<<20))
}

// References that only the library resolves must form no loop: it would never end.
func TestHiddenLoopsOfSchemasEnd(t *testing.T) {
	t.Parallel()
	const loop = `"$defs":{"b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/b"}}`
	for _, schema := range []string{
		fmt.Sprintf(`{"$id":"https://a.example/r","$ref":"#/$defs/y","$defs":{"b":true,"c":true,"y":{"$id":"https://a.example/y","$ref":"#/$defs/b",%s}}}`, loop),
		fmt.Sprintf(`{"$ref":"#/$defs/y","$defs":{"b":true,"c":true,"y":{"$id":"y","$ref":"#/$defs/b",%s}}}`, loop),
		fmt.Sprintf(`{"$ref":"#/$defs/b",%s,"$defs":{"b":true}}`, loop),
		fmt.Sprintf(`{"$ref":"#/$defs/b",%s,"$Defs":{"b":true}}`, loop),
		`{"$ref":"#/$defs/b","$Ref":"#/$defs/x","$defs":{"b":true,"x":true},"$DEFS":{"b":{"$ref":"#/$defs/b"}}}`,
	} {
		s, err := definition.ResolveSchema([]byte(schema))
		if err == nil {
			require.NoError(t, s.Validate(decoded(t, `{}`), 1<<20), schema) // must return
		}
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}
