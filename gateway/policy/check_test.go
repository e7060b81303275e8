package policy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/policy"
	"goblin/registry"
)

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
		`overrides of server "aa": tool "slow" is left out by "tools" of the server`,
		`overrides of server "aa": it has no tool "ech"; did you mean "echo"?`,
		`overrides of server "aa": prompt "part" is left out by "prompts" of the server`,
		`overrides of server "aa": resource or template "file:///secret/a" is left out by "resources" of the server`,
		`overrides of server "aa": it has no resource or template "file:///b"`,
		`overrides of server "aa" in profile "work": tool "slow" is left out by "tools" of the server`,
	}, told)
}
