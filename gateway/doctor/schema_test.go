package doctor

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFaultsOfSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 40) + "{}" + strings.Repeat("}}", 40)
	for def, want := range map[string]string{
		`{"name":"a","inputSchema":{"type":"object"}}`:                                                        "",
		`{"name":"a","inputSchema":{"type":"object","properties":{"a":true,"b":{"type":["string","null"]}}}}`: "",
		`{"name":"a","inputSchema":{"type":"object"},"outputSchema":null}`:                                    "",
		`{"name":"a"}`:                  "broken has no inputSchema",
		`{"name":"a","inputSchema":[]}`: "broken inputSchema is not an object",
		`{"name":"a","inputSchema":{}}`: `broken inputSchema: missing type: "object"`,
		`{"inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{}}}`:          `broken outputSchema: missing type: "object"`,
		`{"inputSchema":{"type":"object","properties":[]}}`:                                     "broken inputSchema: properties is not an object",
		`{"inputSchema":{"type":"object","properties":{"a":"string"}}}`:                         "broken inputSchema.a is not a schema",
		`{"inputSchema":{"type":"object","properties":{"a":{"type":null}}}}`:                    "broken inputSchema.a: type null must be quoted",
		`{"inputSchema":{"type":"object","properties":{"a":{"type":[1]}}}}`:                     "broken inputSchema.a: unknown type 1",
		`{"inputSchema":{"type":"object","properties":{"a":{"anyOf":{}}}}}`:                     "broken inputSchema.a: anyOf is not an array",
		`{"inputSchema":{"type":"object","required":"a"}}`:                                      "broken inputSchema: required is not an array of names",
		`{"inputSchema":{"type":"object","required":[1]}}`:                                      "broken inputSchema: required is not an array of names",
		`{"inputSchema":{"type":"object","properties":{},"required":["b"]}}`:                    `refused inputSchema requires "b", which is not in its properties`,
		`{"inputSchema":{"type":"object","properties":{"a":{"$ref":"https://x.example/s"}}}}`:   "refused inputSchema.a refers to https://x.example/s, which clients don't fetch",
		`{"inputSchema":{"type":"object","properties":{"a":{"items":{"items":{"type":"x"}}}}}}`: `broken inputSchema.a[][]: unknown type "x"`,
		`{"inputSchema":` + deep + `}`:                                                          "refused inputSchema" + strings.Repeat(".a", 33) + " is nested too deeply",
		`{"inputSchema":{"type":"object","x":"` + strings.Repeat("x", maxSchema) + `"}}`:        "refused inputSchema has 1048600 bytes",
	} {
		var got []string
		for _, f := range SchemaFaults([]byte(def)) {
			got = append(got, map[bool]string{true: "broken ", false: "refused "}[f.Broken]+f.Text)
		}
		require.Equal(t, want, strings.Join(got, "; "), short(def, 200))
	}
}

func FuzzFaults(f *testing.F) {
	for _, def := range []string{
		`{"inputSchema":{"type":"object","properties":{"a":{"type":"array"}},"required":["b"]}}`, `{"inputSchema":{"type":["object"]}}`,
		`{"inputSchema":{"type":"object","anyOf":[{"$ref":"x://y"}]},"outputSchema":{"type":"object","items":[{}]}}`, `{`, `[]`, "{\"inputSchema\":{\"type\":\"object\",\"properties\":{\"\xff\":{}}}}",
	} {
		f.Add([]byte(def))
	}
	f.Fuzz(func(t *testing.T, def []byte) {
		found := SchemaFaults(def)
		require.LessOrEqual(t, len(found), maxFaults)
		for _, one := range found {
			require.NotEmpty(t, one.Text)
			require.True(t, utf8.ValidString(one.Text) || !utf8.Valid(def))
		}
	})
}
