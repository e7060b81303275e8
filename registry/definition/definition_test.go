package definition_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

func texts(s string) *string { return &s }

// Members that an override does not name stay byte for byte.
func TestAnOverrideChangesWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	const tool = `{"name":"create","x": 1.50,"annotations":{"readOnlyHint":false,"acme":[1 , 2]},"inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"n":{"type":"integer"}},"required":["owner","n"],"$defs":{ }}}`
	for name, c := range map[string]struct {
		override *definition.Override
		want     string
		problems []string
	}{
		"nothing": {&definition.Override{}, tool, nil},
		"texts": {
			&definition.Override{Title: texts("T"), Description: texts(`a "b"`)},
			`{"name":"create","x": 1.50,"annotations":{"readOnlyHint":false,"acme":[1 , 2]},"inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"n":{"type":"integer"}},"required":["owner","n"],"$defs":{ }},"title":"T","description":"a \"b\""}`, nil,
		},
		"hints are merged": {
			&definition.Override{Annotations: []definition.Member{{Name: "readOnlyHint", Value: []byte("true")}}},
			`{"name":"create","x": 1.50,"annotations":{"readOnlyHint":true,"acme":[1 , 2]},"inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"n":{"type":"integer"}},"required":["owner","n"],"$defs":{ }}}`, nil,
		},
		"an argument is hidden": {
			&definition.Override{Arguments: []definition.Member{{Name: "owner", Value: []byte(`"acme"`)}}},
			`{"name":"create","x": 1.50,"annotations":{"readOnlyHint":false,"acme":[1 , 2]},"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"$defs":{ }}}`, nil,
		},
		"an argument of another type, and an unknown one": {
			&definition.Override{Arguments: []definition.Member{{Name: "n", Value: []byte(`true`)}, {Name: "ownr", Value: []byte(`1`)}}},
			`{"name":"create","x": 1.50,"annotations":{"readOnlyHint":false,"acme":[1 , 2]},"inputSchema":{"type":"object","properties":{"owner":{"type":"string"}},"required":["owner"],"$defs":{ }}}`,
			[]string{`argument "n" must be of type integer, not boolean`, `argument "ownr" is not in the schema; did you mean "owner"?`},
		},
	} {
		got, applied := c.override.Tool([]byte(tool))
		require.Equal(t, c.want, string(got), name)
		require.Equal(t, c.problems, applied.Problems, name)
	}
}

func TestArgumentsThatTheConfigDecidesAreInEachCall(t *testing.T) {
	t.Parallel()
	fill := definition.FixedArguments{{Name: "owner", Value: []byte(`"acme"`)}}
	for params, want := range map[string]string{
		`{"name":"a"}`:                                  `{"name":"a","arguments":{"owner":"acme"}}`,
		`{"name":"a","arguments":null}`:                 `{"name":"a","arguments":{"owner":"acme"}}`,
		`{"arguments":{"n": 1},"name":"a"}`:             `{"arguments":{"n": 1,"owner":"acme"},"name":"a"}`,
		`{"arguments":{"owner":"\u0061cme"}}`:           `{"arguments":{"owner":"acme"}}`, // the same value
		`{"arguments":{"owner":"evil"}}`:                `!argument "owner" is set by Goblin's config (overrides); omit it`,
		`{"arguments":{"Owner":"acme"}}`:                `!argument "Owner" can be mistaken for "owner", which Goblin's config sets (overrides); omit it`,
		`{"arguments":{"owner\u0000":"acme"}}`:          `!argument "owner\x00" can be mistaken for "owner", which Goblin's config sets (overrides); omit it`,
		`{"arguments":{"owner":"acme","owner":"evil"}}`: `!argument "owner" is set by Goblin's config (overrides); omit it`,
		`{"arguments":[1]}`:                             `!member "arguments" must be an object`,
	} {
		edit, err := fill.Edit([]byte(params), "arguments")
		got := ""
		if err != nil {
			got = "!" + err.Error()
		} else {
			got = string(rawjson.Splice([]byte(params), edit))
		}
		require.Equal(t, want, got, params)
	}
}

func TestADefinitionThatIsOddIsOverriddenAllTheSame(t *testing.T) {
	t.Parallel()
	override := &definition.Override{
		Description: texts("new"), Annotations: []definition.Member{{Name: "readOnlyHint", Value: []byte("true")}},
		Arguments: []definition.Member{{Name: "owner", Value: []byte(`"acme"`)}},
	}
	for item, want := range map[string]string{
		`{"name":"a"}`: `{"name":"a","description":"new","annotations":{"readOnlyHint":true}}`,
		`{"description":"one","description":"two","annotations":[],"inputSchema":"none"}`: `{"annotations":{"readOnlyHint":true},"inputSchema":"none","description":"new"}`,
	} {
		got, applied := override.Tool([]byte(item))
		require.Equal(t, want, string(got))
		require.Equal(t, []string{`argument "owner" is not in the schema`}, applied.Problems)
		require.Len(t, applied.Fill, 1, "calls still get it")
	}
}

func TestArgumentsOfPromptsThatTheConfigDecidesAreTexts(t *testing.T) {
	t.Parallel()
	override := &definition.Override{Arguments: []definition.Member{{Name: "n", Value: []byte("5")}, {Name: "who", Value: []byte(`"me"`)}, {Name: "wo", Value: []byte("true")}}}
	got, applied := override.Prompt([]byte(`{"name":"p","arguments":[{"name":"n"},{"name":"who","required":true},{"name":"rest"}]}`))
	require.Equal(t, `{"name":"p","arguments":[{"name":"rest"}]}`, string(got))
	require.Equal(t, definition.FixedArguments{{Name: "n", Value: []byte(`"5"`)}, {Name: "who", Value: []byte(`"me"`)}, {Name: "wo", Value: []byte(`"true"`)}}, applied.Fill)
	require.Equal(t, []string{`argument "wo" is not an argument of the prompt; did you mean "who"?`}, applied.Problems)
}

func TestAnArgumentThatTheConfigDecidesIsNotCompletedInAnySpelling(t *testing.T) {
	t.Parallel()
	fill := definition.FixedArguments{{Name: "owner", Value: []byte(`"acme"`)}}
	require.NoError(t, fill.Permits("own"))
	for _, name := range []string{"owner", "OWNER", "owner\x00x"} {
		var fixed *definition.FixedError
		require.ErrorAs(t, fill.Permits(name), &fixed)
		require.Equal(t, definition.FixedError{Argument: name, Fixed: "owner"}, *fixed)
	}
	edit, err := fill.Edit([]byte(`{"argument":{}}`), "context", "of", "arguments")
	require.NoError(t, err)
	require.Equal(t, `{"argument":{},"context":{"of":{"arguments":{"owner":"acme"}}}}`, string(rawjson.Splice([]byte(`{"argument":{}}`), edit)))
}

func TestAnArgumentIsOfTheTypeThatTheSchemaWants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ types, value, want, problem string }{
		{`"number"`, `5`, `5`, ""},
		{`"number"`, `"5"`, `5`, ""}, // values with variables are always texts in a config
		{`"number"`, `" 1.5 "`, `1.5`, ""},
		{`"integer"`, `"5"`, `5`, ""},
		{`"integer"`, `"1.5"`, `"1.5"`, `argument "n" must be of type integer, not string`},
		{`"boolean"`, `"true"`, `true`, ""},
		{`["string","integer"]`, `"5"`, `"5"`, ""},
		{`["null","boolean"]`, `[]`, `[]`, `argument "n" must be of type null or boolean, not array`},
		{`7`, `{}`, `{}`, ""},
	} {
		override := &definition.Override{Arguments: []definition.Member{{Name: "n", Value: []byte(c.value)}}}
		_, applied := override.Tool([]byte(`{"inputSchema":{"properties":{"n":{"type":` + c.types + `}}}}`))
		require.Equal(t, c.want, string(applied.Fill[0].Value), "%s of %s", c.value, c.types)
		require.Equal(t, c.problem, strings.Join(applied.Problems, ""), "%s of %s", c.value, c.types)
	}
}

func TestAProfilesOverrideLeavesTheRestToTheServers(t *testing.T) {
	t.Parallel()
	below := &definition.Override{
		Name: "name", Label: "label", Title: texts("title"), Description: texts("about"),
		Annotations: []definition.Member{{Name: "a", Value: []byte("1")}, {Name: "c", Value: []byte("1")}},
		Arguments:   []definition.Member{{Name: "x", Value: []byte("1")}},
	}
	above := &definition.Override{Title: texts(""), Annotations: []definition.Member{{Name: "a", Value: []byte("2")}, {Name: "b", Value: []byte("2")}}}
	joined := (&definition.Set{Tools: map[string]*definition.Override{"t": above, "v": {Name: "other"}}}).Merge(&definition.Set{Tools: map[string]*definition.Override{"t": below, "u": below, "v": below}})
	renamed := *below
	renamed.Name = "other"
	require.Equal(t, map[string]*definition.Override{"u": below, "v": &renamed, "t": {
		Name: "name", Label: "label", Title: texts(""), Description: texts("about"),
		Annotations: []definition.Member{{Name: "a", Value: []byte("2")}, {Name: "b", Value: []byte("2")}, {Name: "c", Value: []byte("1")}},
		Arguments:   below.Arguments,
	}}, joined.Tools)
}

func TestANameThatAnotherHasIsNotGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, given []string
		want       map[int]int
	}{
		{[]string{"a", "b"}, []string{"a", "b"}, map[int]int{}},
		{[]string{"a", "b"}, []string{"b", "a"}, map[int]int{}},                     // both give up their names
		{[]string{"a", "b"}, []string{"b", "b"}, map[int]int{0: 1}},                 // the owner of the name keeps it
		{[]string{"a", "b"}, []string{"x", "x"}, map[int]int{1: 0}},                 // the first one has it
		{[]string{"a", "b", "c"}, []string{"x", "x", "b"}, map[int]int{1: 0, 2: 1}}, // a refused one keeps its own
	} {
		require.Equal(t, c.want, definition.CheckRenames(c.own, c.given), "%v", c.given)
	}
}

// FuzzOverride checks that clients receive JSON without hidden members, and that calls
// have the config's values, for any definition.
func FuzzOverride(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"properties":{"owner":{},"b":1},"required":["owner"]}}`))
	f.Add([]byte(`{"annotations":3,"annotations":{},"inputSchema":{"required":["\u006fwner"],"properties":{"\u006fwner":{}}}}`))
	f.Add([]byte(`{"arguments":{"x":{"owner":1}}}`))
	override := &definition.Override{
		Title: texts("T"), Annotations: []definition.Member{{Name: "readOnlyHint", Value: []byte("true")}},
		Arguments: []definition.Member{{Name: "owner", Value: []byte(`"acme"`)}},
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		if rawjson.Valid(item) != nil || !rawjson.IsObject(item) {
			return
		}
		seen, applied := override.Tool(item)
		require.NoError(t, rawjson.Valid(seen))
		properties := rawjson.Path(seen, "inputSchema", "properties")
		for k := range rawjson.Members(properties) {
			require.False(t, k.Is("owner"), "%s", seen)
		}
		require.Equal(t, `"T"`, string(rawjson.Get(seen, "title")))

		edit, err := applied.Fill.Edit(item, "arguments")
		if err != nil {
			return
		}
		var call struct{ Arguments map[string]any }
		text := rawjson.Splice(item, edit)
		require.NoError(t, rawjson.Valid(text))
		if json.Unmarshal(text, &call) == nil {
			require.Equal(t, "acme", call.Arguments["owner"], "%s", text)
		}
	})
}
