package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway"
	"goblin/registry"
)

func TestArgumentsThatDoNotFitASchemaAreToldWithTheirPath(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["n"],"additionalProperties":false,"$defs":{"size":{"enum":["s","l"]},"loop":{"anyOf":[{"$ref":"#/$defs/loop"},{"$ref":"#/$defs/loop"}]}},"properties":{
		"n":{"type":"integer"},"sizes":{"type":"array","items":{"$ref":"#/$defs/size"}},"any":{"anyOf":[{"type":"null"},{"type":"object","required":["x"]}]},
		"a/b":{"const":1},"open":{"type":["string","null"]},"loop":{"$ref":"#/$defs/loop"},"far":{"$ref":"https://example.com/schema"},"no":{"type":"string","nullable":true},
		"pair":{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}}}`
	reg := registry.New(registry.Options{Servers: []string{"a"}})
	require.Empty(t, reg.SetList("a", registry.Tool, [][]byte{[]byte(`{"name":"b","inputSchema":` + schema + `}`)}))
	tool, err := reg.ResolveTool("a_b")
	require.NoError(t, err)
	for args, want := range map[string]string{
		`{"n":1}`:                         "",
		`{"n":1.0,"open":null,"no":null}`: "",
		`{"n":1,"any":{"x":2},"a/b":1.0}`: "",
		`{"n":1,"far":7}`:                 "",
		`{"n":1,"loop":7}`:                "", // does not wait for the loop
		`{"loop":7}`:                      "", // reports no partial output
		`{"n":1,"pair":[7]}`:              "",
		`{}`:                              "/n is missing",
		`{"n":"1"}`:                       `/n must be integer, not "1"`,
		`{"n":1.5}`:                       "/n must be integer, not 1.5",
		`{"n":1,"sizes":["s","m"]}`:       `/sizes/1 must be one of "s", "l", not "m"`,
		`{"n":1,"any":{}}`:                "/any matches none of the allowed forms",
		`{"n":1,"a/b":2}`:                 "/a~1b must be 1, not 2",
		`{"n":1,"open":false}`:            "/open must be string or null, not false",
		`{"n":1,"m":1}`:                   "/m is unknown; allowed: a/b, any, far, loop, n, no, open, pair, sizes",
		`{"n":true,"sizes":"s"}`:          `/n must be integer, not true; /sizes must be array, not "s"`,
	} {
		err := gateway.ValidateNested(tool, []byte(args))
		if want == "" {
			require.NoError(t, err, args)
			continue
		}
		require.ErrorContains(t, err, want+"; see describe_tool for the arguments of a_b", args)
	}
}

func TestACallOfACallIsThatOfTheToolWhichItNames(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"name":"call_tool","arguments":{"name":"a","arguments":{"x":1}},"_meta":{"progressToken":1}}`: `{"name":"a","arguments":{"x":1},"_meta":{"progressToken":1}}`,
		`{"name":"call_tool","arguments":{"name":"a"},"task":{}}`:                                       `{"name":"a","arguments":{},"task":{}}`,
		`{"name":"call_tool","arguments":{"name":"a","arguments":null}}`:                                `{"name":"a","arguments":{}}`,
		`{"name":"call_tool"}`: `argument "name" is missing`,
		`{"name":"call_tool","arguments":{"name":"a","name":"b"}}`:                      `duplicate argument "name"`,
		`{"name":"call_tool","arguments":{"name":"a","arguments":[]}}`:                  `argument "arguments" must be an object, not []`,
		`{"name":"call_tool","arguments":{"name":"a","args":{}}}`:                       `unknown argument "args"; use name and arguments`,
		`{"name":"call_tool","arguments":{"name":["` + strings.Repeat("x", 99) + `"]}}`: `argument "name" must be a string, not ["` + strings.Repeat("x", 62) + "…",
	} {
		got, err := gateway.NestedParams([]byte(params))
		if err != nil {
			require.Contains(t, err.Error(), want, params)
			continue
		}
		require.JSONEq(t, want, string(got), params)
	}
}
