package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/rawjson"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		` { "b" : 1.50 , "a" : [ true , null , { } , [ ] ] } `: `{"a":[true,null,{},[]],"b":1.50}`,
		`{"\u0061\/":"\u00e9\u2028<\n"}`:                       "{\"a/\":\"é\u2028<\\n\"}",
		`{"b":1,"a":2,"b":{"d":1,"c":2}}`:                      `{"a":2,"b":1,"b":{"c":2,"d":1}}`,
		`-0.0e+1`:                                              `-0.0e+1`,
		`[]`:                                                   `[]`,
	} {
		require.Equal(t, want, string(rawjson.AppendCanonical(nil, []byte(in))), in)
	}
}

// FuzzCanonical checks that the canonical form is JSON of the same value and its own
// canonical form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":[1,{"x":"\ud83d\ude00"}],"a":-1e-7}`, `[[],{},"",null]`, `{"a":1,"a":2}`, `"\ud800"`, `{"a":[}`, `[1 2]`, `{"a" 1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if rawjson.Valid(text) != nil {
			if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < rawjson.MaxDepth {
				rawjson.AppendCanonical(nil, text) // invalid output, but no panic
			}
			return
		}
		form := rawjson.AppendCanonical(nil, text)
		require.NoError(t, rawjson.Valid(form))
		require.Equal(t, string(form), string(rawjson.AppendCanonical(nil, form)))
		require.Equal(t, decoded(t, text), decoded(t, form))
	})
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}
