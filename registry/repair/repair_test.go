package repair_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"goblin/registry/rawjson"
	"goblin/registry/repair"

	"github.com/stretchr/testify/require"
)

// kinds are the functions that repair a definition of each kind.
var kinds = map[string]func(item []byte) (repair.Definition, error){
	"tool":     func(item []byte) (repair.Definition, error) { return repair.Tool(item), nil },
	"prompt":   repair.Prompt,
	"resource": func(item []byte) (repair.Definition, error) { return repair.Resource(item), nil },
	"template": func(item []byte) (repair.Definition, error) { return repair.Template(item), nil },
}

func FuzzRepair(f *testing.F) {
	for _, item := range []string{
		`{"name":"a","inputSchema":{"type":"object","properties":{"x":true,"y":{}},"required":["x",1]}}`,
		`{"name":"a","title":null,"annotations":{"readOnlyHint":"true","title":3},"icons":[{"src":"a","sizes":"1x1"},{}],"execution":{"taskSupport":1}}`,
		`{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"x":{"$ref":"#/properties/x","pattern":"[a-\\d"}}}}`,
		`{"uri":"x:a/b?c","size":"1","annotations":{"audience":["user",1],"priority":2,"lastModified":"x"}}`,
		`{"uriTemplate":"x:a/{b}{?c}","_meta":null}`, `{"name":"p","arguments":[{"name":"a","required":null}, {"name":"b"}]}`,
		`{ "name" : "a" , "description" : null , "description" : "b" }`, `{}`, `{"inputSchema":null,"inputSchema":[]}`,
	} {
		f.Add([]byte(item))
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		if rawjson.Valid(item) != nil || !rawjson.IsObject(item) {
			return
		}
		item = bytes.TrimSpace(item)
		for _, repaired := range kinds {
			d, err := repaired(item)
			if err != nil {
				continue
			}
			if len(d.Changes) == 0 {
				require.Nil(t, d.Legacy)
				require.Same(t, &item[0], &d.JSON[0])
				require.Equal(t, item, d.JSON)
				continue
			}
			require.LessOrEqual(t, len(d.Changes), repair.MaxChanges+1)
			versions := [][]byte{d.JSON}
			if d.Legacy != nil {
				versions = append(versions, d.Legacy)
			}
			for _, v := range versions {
				require.NoError(t, rawjson.Valid(v))
				again, err := repaired(v)
				require.NoError(t, err)
				require.Equal(t, string(v), string(again.JSON))
			}
			if d.Legacy != nil {
				again, _ := repaired(d.Legacy)
				require.Nil(t, again.Legacy)
			}
		}
	})
}

func TestOutputSchemasThatValidatorsCanCompile(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"properties":{"c":{"$ref":"#"}}}}}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x~1y%20z"}},"$defs":{"x/y z":true}}`:                   true,
		`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"strin"}}}`:                                  false,
		`{"properties":{"a":{"$ref":"https://x.example/s"}}}`:                                                       false,
		`{"properties":{"a":{"$ref":"#/$defs/none"}}}`:                                                              false,
		`{"items":[{"type":["string","null"]}],"additionalItems":false}`:                                            true,
		`{"items":3}`: false,
		`{"dependencies":{"a":["b"],"c":{"not":{}}}}`:   true,
		`{"allOf":[{}],"x-vendor":{"type":"anything"}}`: true,
		`{"minimum":"3"}`:                   false,
		`{"nullable":true}`:                 false,
		`{"type":"string","nullable":true}`: true,
		strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100): false,
	} {
		require.Equal(t, want, repair.SchemaCompiles([]byte(schema)), schema)
	}
	for pattern, want := range map[string]bool{
		`^[a-z0-9_-]{1,64}$`: true, `^(?!-)(?:[\w.]+|\p{L})+?(\d)\1$`: true, `\u00e4|[\-\]]|\x41`: true, `a{2,}`: true, `^\d{4}-\d{2}$`: true,
		`(`: false, `)`: false, `a**`: false, `\-`: false, `[a-\d]`: false, `[b-a]`: false, `{`: false, `a{2,1}`: false, `(?i)a`: false, `^*`: false, `(a)\2`: false, `[`: false, `\p{Nope}`: false, `\`: false,
	} {
		schema := append(append([]byte(`{"pattern":`), rawjson.Quote(pattern)...), '}')
		require.Equal(t, want, repair.SchemaCompiles(schema), pattern)
	}
}

func TestTheProblemOfASchemaHasItsPlace(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"properties":{"a":{"items":{"minimum":"3"}}}}`:              `minimum /properties/a/items/minimum "3" false`,
		`{"properties":{"a":{"$ref":"#/$defs/b"}}}`:                   `$ref /properties/a/$ref "#/$defs/b" false`,
		`{"properties":{"a":{"$ref":"#anchor"}}}`:                     `$ref /properties/a/$ref "#anchor" true`,
		`{"properties":{"a":7}}`:                                      `properties /properties/a {"a":7} false`,
		`{"properties":{"a":{"pattern":"(?<x>a)"}}}`:                  `pattern /properties/a/pattern "(?<x>a)" true`,
		`{"$ref":"#/$defs/b","$defs":{"b":{"anyOf":[{"type":"x"}]}}}`: `type /$ref/anyOf/type "x" false`,
		`{"nullable":true}`:                                           "nullable /nullable  true",
		`7`:                                                           "   false",
	} {
		got := ""
		if p := repair.FindSchemaProblem([]byte(schema)); p != nil {
			got = fmt.Sprintf("%s %s %s %v", p.Keyword, p.Path, p.Value, p.Unsure)
		}
		require.Equal(t, want, got, schema)
	}
}
