package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

const settingsFile = `
servers:
  zulu:
    command: /opt/private/bin/run
    args: [--token, s3cr3t-argument, /home/alice/data]
    env: {API_TOKEN: s3cr3t-environment, PLACE: /home/alice/place}
    cwd: /home/alice/work
    tags: [work]
    tools: {allow: ["read_*"], deny: ["*_all"]}
    isolation: session
    max_result: 64KiB
    overrides:
      tools:
        read_file:
          name: open
          description: Uses s3cr3t-environment.
          annotations: {readOnlyHint: true}
          arguments: {root: /home/alice/fixed, limit: 5, level: "7", key: [s3cr3t-environment]}
  alpha:
    url: https://alice:s3cr3t-password@private.example/mcp
    headers: {Authorization: "Bearer s3cr3t-header"}
    disabled: true
    open_resources: true
    resources: {allow: ["notes://*"]}
profiles:
  small: {servers: ["tag:work"], expose: search, overrides: {zulu: {tools: {read_file: {title: Open}}}}}
clients: {"zz*": small, "a*": ""}
gateway: {namespace: flat, max_name: 40, page_size: 10, meta_tools: [search_tools], auth_token: s3cr3t-of-the-gateway, roots: [{uri: "file:///home/alice/root"}]}
log: {file: /home/alice/log}
`

func TestSettingsContainNothingPrivate(t *testing.T) {
	t.Parallel()
	raw := string(config.Settings(parse(t, "/home/alice/goblin.yaml", settingsFile)))
	require.True(t, json.Valid([]byte(raw)), raw)
	for _, private := range []string{
		"s3cr3t", "alice", "private", "/opt", "Authorization", "Bearer", "API_TOKEN", "PLACE", "--token",
		"command", "args", "env", "cwd", "url", "headers", "auth_token", "roots",
	} {
		require.NotContains(t, raw, private)
	}
}

func TestSettingsShapeTheSameCatalog(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", settingsFile)
	var file map[string]any
	require.NoError(t, json.Unmarshal(config.Settings(cfg), &file))
	for _, server := range file["servers"].(map[string]any) {
		server.(map[string]any)["command"] = "true"
	}
	text, err := json.Marshal(file)
	require.NoError(t, err)
	again := parse(t, "goblin.yaml", string(text))

	require.Equal(t, cfg.Profiles, again.Profiles)
	require.Equal(t, cfg.Gateway.Namespace, again.Gateway.Namespace)
	require.Equal(t, cfg.Gateway.MaxName, again.Gateway.MaxName)
	require.Equal(t, cfg.Gateway.PageSize, again.Gateway.PageSize)
	require.Equal(t, cfg.Gateway.MetaTools, again.Gateway.MetaTools)
	for i := range cfg.Servers {
		want := &cfg.Servers[i]
		is, ok := again.Server(want.Name)
		require.True(t, ok)
		require.Equal(t, want.Tags, is.Tags)
		require.Equal(t, want.Tools, is.Tools)
		require.Equal(t, want.Resources, is.Resources)
		require.Equal(t, want.Isolation, is.Isolation)
		require.Equal(t, want.Disabled, is.Disabled)
		require.Equal(t, want.OpenResources, is.OpenResources)
		require.Equal(t, want.MaxResult, is.MaxResult)
	}
	zulu, _ := again.Server("zulu")
	fixed := zulu.Overrides.Tools["read_file"]
	require.Equal(t, "open", fixed.Name)
	require.Equal(t, "Uses [hidden].", *fixed.Description)
	arguments := map[string]string{}
	for _, m := range fixed.Arguments {
		arguments[m.Name] = string(m.Value)
	}
	require.Equal(t, map[string]string{"root": `"[hidden]"`, "limit": "5", "level": `"7"`, "key": `["[hidden]"]`}, arguments)
}

func TestSettingsKeepTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	raw := string(config.Settings(parse(t, "goblin.yaml", settingsFile)))
	again := parse(t, "goblin.yaml", strings.ReplaceAll(raw, `"isolation"`, `"command":"true","isolation"`))
	require.Equal(t, "zulu", again.Servers[0].Name)
	require.Equal(t, []config.ClientRule{{Glob: "zz*", Profile: "small"}, {Glob: "a*"}}, again.Clients)
}
