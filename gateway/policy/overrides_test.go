package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/policy"
	"goblin/registry"
	"goblin/registry/definition"
	"goblin/registry/rawjson"
)

func TestArgumentsThatTheConfigDecidesAreInACompletionAndNotCompleted(t *testing.T) {
	t.Parallel()
	override := &definition.AppliedOverride{Override: &definition.Override{}, Fill: definition.FixedArguments{{Name: "owner", Value: []byte(`"acme"`)}}}
	complete := func(of *registry.Entry, text string) (string, error) {
		params := []byte(text)
		rename := rawjson.ReplaceEdit(params, rawjson.Path(params, "ref", "name"), []byte(`"p"`))
		edits, err := policy.FillCompletion(registry.Target{Entry: of}, params, []rawjson.Edit{rename})
		return string(rawjson.Splice(params, edits...)), err
	}
	for _, c := range []struct {
		override     *definition.AppliedOverride
		params, want string
	}{
		{override, `{"ref":{"name":"a_p"},"argument":{"name":"title"}}`, `{"ref":{"name":"p"},"argument":{"name":"title"},"context":{"arguments":{"owner":"acme"}}}`},
		{override, `{"context":{"arguments":{"n":"1"}},"ref":{"name":"a_p"}}`, `{"context":{"arguments":{"n":"1","owner":"acme"}},"ref":{"name":"p"}}`}, // in the order of the members
		{&definition.AppliedOverride{Override: &definition.Override{}}, `{"ref":{"name":"a_p"}}`, `{"ref":{"name":"p"}}`},
		{nil, `{"ref":{"name":"a_p"},"argument":{"name":"owner"}}`, `{"ref":{"name":"p"},"argument":{"name":"owner"}}`},
	} {
		got, err := complete(&registry.Entry{Override: c.override}, c.params)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	got, err := complete(nil, `{"ref":{"name":"a_p"},"argument":{"name":"owner"}}`)
	require.NoError(t, err)
	require.Equal(t, `{"ref":{"name":"p"},"argument":{"name":"owner"}}`, got)

	_, err = complete(&registry.Entry{Override: override}, `{"ref":{"name":"a_p"},"argument":{"name":"Owner"}}`)
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jsonrpc.CodeInvalidParams, refused.Code)
	require.JSONEq(t, `{"code":"ARGUMENT_FIXED","argument":"Owner"}`, string(refused.Data))
	_, err = complete(&registry.Entry{Override: override}, `{"ref":{"name":"a_p"},"context":[]}`)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, `Invalid params: member "context" must be an object`, refused.Message)
	require.Nil(t, refused.Data)
}

func TestOverridesForNothingAreToldOnTheirLines(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("goblin.yaml", []byte(`
servers:
  hub:
    command: x
    overrides:
      tools:
        creat: {title: t}
        open: {name: close}
        list: {name: list}
        move: {name: gone, arguments: {n: yes}}
      prompts:
        review: {arguments: {stile: brief}}
      resources:
        "repo:a": {title: t}
        "repo:b": {title: t}
  idle:
    command: x
    overrides: {tools: {any: {title: t}}}
profiles:
  work:
    overrides:
      hub: {tools: {gone: {name: moved}, close: {name: open}, list: {name: create}}}
`), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	thing := func(kind registry.Kind, definition string) policy.OverriddenEntry {
		name := rawjson.GetString([]byte(definition), "name")
		return policy.OverriddenEntry{Server: "hub", Kind: kind, Name: name, Definition: []byte(definition)}
	}
	things := []policy.OverriddenEntry{
		thing(registry.Tool, `{"name":"create"}`), thing(registry.Tool, `{"name":"open"}`), thing(registry.Tool, `{"name":"close"}`), thing(registry.Tool, `{"name":"list"}`),
		thing(registry.Tool, `{"name":"move","inputSchema":{"properties":{"n":{"type":"integer"}}}}`), thing(registry.Tool, `{"name":"gone"}`),
		thing(registry.Prompt, `{"name":"review","arguments":[{"name":"style"}]}`),
		thing(registry.Resource, `{"name":"repo:a"}`),
		{Server: "other", Kind: registry.Tool, Name: "creat"},
	}
	tell := func(kinds ...registry.Kind) (told []string) {
		for _, p := range policy.CheckOverrides(cfg, slices.Values(things), kinds...) {
			told = append(told, fmt.Sprintf("%d: %s", p.Line, strings.TrimPrefix(p.Text, `overrides of server "hub"`)))
		}
		return told
	}
	require.Equal(t, []string{
		`7: : unknown tool "creat"; did you mean "create"?`,
		`8: : cannot rename tool "open" to "close": the server already has that name`,
		`10: : cannot rename tool "move" to "gone": the server already has that name`,
		`10: : tool "move": argument "n" must be of type integer, not string`,
		`12: : prompt "review": argument "stile" is not an argument of the prompt; did you mean "style"?`,
		`15: : unknown resource or template "repo:b"; did you mean "repo:a"?`,
		`22:  in profile "work": cannot rename tool "list" to "create": the server already has that name`,
	}, tell())
	require.Equal(t, []string{`12: : prompt "review": argument "stile" is not an argument of the prompt; did you mean "style"?`}, tell(registry.Prompt), "only prompts are known")
}

func TestWhatIsLeftOutIsNotSaidToBeMissing(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("goblin.yaml", []byte(`servers:
  aa:
    command: x
    tools: {deny: ["sl*"]}
    prompts: {allow: [greet]}
    resources: {deny: ["file:///secret/*"]}
    overrides:
      tools: {slow: {title: X}, ech: {title: Y}}
      prompts: {part: {title: Z}}
      resources: {"file:///secret/a": {title: A}, "file:///b": {title: B}}
profiles:
  work:
    overrides: {aa: {tools: {slow: {title: W}}}}
`), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	var told []string
	for _, p := range policy.CheckOverrides(cfg, slices.Values([]policy.OverriddenEntry{{Server: "aa", Kind: registry.Tool, Name: "echo", Definition: []byte(`{"name":"echo"}`)}})) {
		told = append(told, p.Text)
	}
	require.ElementsMatch(t, []string{
		`overrides of server "aa": tool "slow" is hidden by the server's "tools" filter`,
		`overrides of server "aa": unknown tool "ech"; did you mean "echo"?`,
		`overrides of server "aa": prompt "part" is hidden by the server's "prompts" filter`,
		`overrides of server "aa": resource or template "file:///secret/a" is hidden by the server's "resources" filter`,
		`overrides of server "aa": unknown resource or template "file:///b"`,
		`overrides of server "aa" in profile "work": tool "slow" is hidden by the server's "tools" filter`,
	}, told)
}
