package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/registry/candidate"
)

// adding is an attempt to add a server from a registry.
type adding struct {
	entries []string
	typed   string // on a terminal; "" without input
	name    string // default: weather
	o       registryFlags
	secrets map[string]string // stored secrets
}

func (y *adding) run(t *testing.T) (d *candidate.Definition, said string, err error) {
	t.Helper()
	t.Setenv("PATH", t.TempDir()) // nothing is installed
	var out bytes.Buffer
	dir := t.TempDir()
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	a := &App{App: &cli.App{In: strings.NewReader(y.typed), InTTY: y.typed != "", Out: io.Discard, Err: &out, Getenv: func(k string) string {
		return map[string]string{"XDG_CACHE_HOME": dir, "XDG_STATE_HOME": dir}[k]
	}, ConfigFlag: filepath.Join(dir, "goblin.yaml")}}
	y.o.url = shelf(t, y.entries...)
	if y.name == "" {
		y.name = "weather"
	}
	y.o.server = y.name
	d, err = a.buildDefinition(t.Context(), "", &addFlags{registry: y.o, secrets: a.Secrets().Begin()})
	y.secrets = map[string]string{}
	names, listErr := a.Secrets().List()
	require.NoError(t, listErr)
	for _, name := range names {
		y.secrets[name], listErr = a.Secrets().Get(name)
		require.NoError(t, listErr)
	}
	return d, out.String(), err
}

func TestAServerOfTheRegistryIsAskedForAndShown(t *testing.T) {
	y := &adding{entries: []string{weatherEntry}, typed: "9\n1\n\nhunter2\ntons\nimperial\nyes\n"}
	d, said, err := y.run(t)
	require.NoError(t, err, said)
	require.Equal(t, &candidate.Definition{
		Name: "weather", Comment: "io.a/weather 1.2.0, from the MCP registry",
		Keys: map[string]any{
			"command": "npx", "args": []string{"-y", "@a/weather@1.2.0"}, "startup_timeout": "2m",
			"env": map[string]string{"API_KEY": "${keyring:weather.API_KEY}", "UNITS": "imperial"},
		},
		Secrets: []candidate.Secret{{Name: "weather.API_KEY", Value: "hunter2"}},
	}, d)
	require.Equal(t, map[string]string{"weather.API_KEY": "hunter2"}, y.secrets)
	for _, line := range []string{
		"  1  npm  @a/weather 1.2.0, needs npx (not found in PATH)\n", "  2  http  https://a.example/mcp\n",
		"Which one? [2] Enter a number from 1 to 2.\n", "API_KEY: of a.example\n", "API_KEY is required.\n",
		"UNITS (metric, imperial; optional) [metric]: UNITS must be one of metric, imperial.\n",
		"goblin: io.a/weather 1.2.0, from the MCP registry\ngoblin: runs     npx -y @a/weather@1.2.0\n",
		"goblin: with     API_KEY='${keyring:weather.API_KEY}'\n", "goblin: stored secret \"weather.API_KEY\" in ",
	} {
		require.Contains(t, said, line)
	}
	require.NotContains(t, said, "hunter2")
}

func TestWithoutATerminalTheAnswersAreSet(t *testing.T) {
	y := &adding{entries: []string{weatherEntry}, o: registryFlags{use: "npm", set: []string{"API_KEY=${TOKEN}"}, yes: true}}
	d, _, err := y.run(t)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"API_KEY": "${TOKEN}", "UNITS": "metric"}, d.Keys["env"])
	require.Empty(t, y.secrets, "a reference is not a secret")

	y = &adding{entries: []string{weatherEntry}, o: registryFlags{yes: true}}
	d, said, err := y.run(t)
	require.NoError(t, err)
	require.Equal(t, "https://a.example/mcp", d.Keys["url"], "a URL needs no installed program")
	require.Contains(t, said, "goblin: reaches  https://a.example/mcp\n")
}

func TestServersOfTheRegistryThatAreNotAdded(t *testing.T) {
	evil := `{"name":"io.c/evil","version":"1\u001b[2J","packages":[{"registryType":"npm","identifier":"x","packageArguments":[{"type":"positional","value":"$(rm -rf ~); \u001b]0;x\u0007"}]}]}`
	for want, y := range map[string]*adding{
		"needs API_KEY; set it with --set API_KEY=VALUE": {o: registryFlags{use: "npm", yes: true}},
		"use --yes":                                     {o: registryFlags{use: "http"}},
		"has no \"oci\", only npm, http":                {o: registryFlags{use: "oci"}},
		"--set must be KEY=VALUE":                       {o: registryFlags{set: []string{"hunter2"}}},
		"unknown value \"NOPE\"; known: API_KEY, UNITS": {o: registryFlags{use: "npm", set: []string{"NOPE=1", "API_KEY=1"}}},
		"cannot be used: it has no checksum":            {name: "io.b/weather-bundle"},
		"is not in the registry":                        {name: "io.b/none"},
		"no server \"none\" in the registry":            {name: "none"},
		"nothing was added":                             {name: "io.c/evil", typed: "n\n"},
		"nothing was":                                   {name: "io.c/evil", typed: "maybe"},
		"stdin closed before the answer":                {name: "io.a/weather", typed: "1\n"},
		"io.a/empty has no packages or remotes":         {name: "io.a/empty"},
	} {
		t.Run(want, func(t *testing.T) {
			y.entries = []string{weatherEntry, bundleEntry, evil, `{"name":"io.a/empty"}`}
			_, said, err := y.run(t)
			require.ErrorContains(t, err, want)
			require.NotContains(t, said, "\x1b")
			require.Empty(t, y.secrets)
			if y.name == "io.c/evil" {
				require.Contains(t, said, `runs     npx -y x $'$(rm -rf ~); \033]0;x\007'`)
			}
		})
	}
}

func TestAddWritesAServerOfTheRegistry(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	url, state := shelf(t, weatherEntry), t.TempDir()
	add := func(config string, more ...string) (got outcome, text string) {
		got = try{config: config, env: map[string]string{"XDG_CACHE_HOME": t.TempDir(), "XDG_STATE_HOME": state}}.run(t, append([]string{"add", "--registry", "weather", "--registry-url", url, "--no-check", "--json"}, more...)...)
		if got.code == 0 {
			file, err := os.ReadFile(decodeJSON(t, got.out).(map[string]any)["config"].(string))
			require.NoError(t, err)
			text = string(file)
		}
		return got, text
	}
	got, text := add("servers:\n  a: {command: x} # mine\n", "--use", "npm", "--set", "API_KEY=${KEY:-none}", "--yes", "tides")
	require.Zero(t, got.code, got.err)
	require.Contains(t, text, "  a: {command: x} # mine\n")
	cfg, err := config.Parse("c.yaml", []byte(text), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	tides, ok := cfg.Server("tides")
	require.True(t, ok)
	require.Equal(t, []string{"-y", "@a/weather@1.2.0"}, tides.Args)
	require.Equal(t, map[string]string{"API_KEY": "none", "UNITS": "metric"}, tides.Env)
	require.Contains(t, text, "# io.a/weather 1.2.0, from the MCP registry")

	got, text = add(threeServers, "--use", "npm", "--set", "API_KEY=hunter2", "--yes")
	require.Zero(t, got.code, got.err)
	require.Contains(t, text, "API_KEY: ${keyring:weather.API_KEY}")
	require.NotContains(t, text+got.out+got.err, "hunter2")
	kept, err := os.ReadFile(filepath.Join(state, "goblin", "secrets.json"))
	require.NoError(t, err)
	require.Contains(t, string(kept), "hunter2")

	for want, args := range map[string][]string{
		"at most one name":            {"a", "b"},
		"invalid server name \"a b\"": {"a b"},
		"use --set and --use":         {"--env", "A=B"},
		"use --yes":                   {"--use", "http"},
	} {
		got, _ := add(threeServers, args...)
		require.Equal(t, cli.CodeUsage, got.code, want)
		require.Contains(t, got.err, want)
		require.NotContains(t, got.err, "hunter2")
	}
}
