package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"goblin/gateway/config"
)

var update = flag.Bool("update", false, "write schema.json and KEYS.md")

func TestSchemaFileIsCurrent(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile("schema.json", config.Schema(), 0o644))
	}
	file, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	require.Equal(t, string(config.Schema()), string(file), "run `go generate ./gateway/config`")
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("goblin.json", doc))
	s, err := c.Compile("goblin.json")
	require.NoError(t, err)
	return s
}

// document returns a YAML text as an editor's schema checker sees it. ok is false if it
// has no such form.
func document(t *testing.T, src string) (doc any, ok bool) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(src), &v); err != nil {
		return nil, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return doc, true
}

func TestSchemaRefusesTheMistakesThatItCanSee(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for _, m := range mistakes {
		doc, ok := document(t, m.src)
		if !m.seen {
			continue
		}
		require.True(t, ok, m.name)
		require.Error(t, s.Validate(doc), "%s:\n%s", m.name, m.src)
	}
}

func TestSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	t.Parallel()
	s := schema(t)
	for _, src := range []string{
		whole,
		"servers:\ngateway:\nlua:\nlog:\ntui:\n",
		"mcpServers: {a: {command: x, args: , env: , tools: , type: '${NONE:-stdio}'}}",
		"servers: {a: {url: 'http://h', type: streamable-http, timeout: '${NONE:-1s}', isolation: '${NONE:-shared}', inherit_env: }}",
		"servers: {a: {command: x, inherit_env: true}, b: {command: x, inherit_env: false}, c: {command: x, type: stdio}}",
		"gateway: {limits: {frame: 65536, unsent: '${NONE:-1MB}'}, meta_tools: false, roots: , startup_wait: 1.5h30m}",
	} {
		_, err := config.Parse("goblin.yaml", []byte(src), env)
		doc, ok := document(t, src)
		require.True(t, ok, src)
		if err != nil {
			require.Error(t, s.Validate(doc), src)
			continue
		}
		require.NoError(t, s.Validate(doc), src)
	}
}

func TestSchemaHoldsTheDefaults(t *testing.T) {
	t.Parallel()
	var s struct {
		Properties struct {
			Gateway struct {
				Properties map[string]struct{ Default any }
			}
		}
		Defs struct {
			Server struct {
				Properties map[string]struct {
					Default     any
					Description string
				}
			}
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(config.Schema(), &s))
	require.Equal(t, "uri", s.Properties.Gateway.Properties["namespace"].Default)
	require.Equal(t, "1m", s.Properties.Gateway.Properties["linger"].Default)
	require.InDelta(t, 1000, s.Properties.Gateway.Properties["page_size"].Default, 0)
	require.Equal(t, "30s", s.Defs.Server.Properties["timeout"].Default)
	require.Len(t, s.Defs.Server.Properties, 28, "it lacks keys of other clients")
	for name, p := range s.Defs.Server.Properties {
		require.NotEmpty(t, p.Description, name)
	}
}

func example(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile("../../config.yaml.example")
	require.NoError(t, err)
	return string(src)
}

func TestExampleIsValid(t *testing.T) {
	t.Parallel()
	src := example(t)
	cfg := parse(t, "/etc/goblin/config.yaml", src)
	require.Empty(t, cfg.Warnings)
	require.Len(t, cfg.Servers, 3)
	doc, ok := document(t, src)
	require.True(t, ok)
	require.NoError(t, schema(t).Validate(doc))

	plain := parse(t, "/etc/goblin/config.yaml", "servers: {}")
	require.Equal(t, plain.Gateway, cfg.Gateway, "the example shows the defaults")
	require.Equal(t, plain.Lua, cfg.Lua)
	require.Equal(t, plain.Log, cfg.Log)
	require.Equal(t, plain.TUI, cfg.TUI)
	// Commented-out lines are valid too.
	open := regexp.MustCompile(`(?m)^  # (listen|auth_token): `).ReplaceAllString(src, "  $1: ")
	got, err := config.Parse("config.yaml", []byte(open), func(string) (string, bool) { return "/value", true })
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7331", got.Gateway.Listen)
	require.Equal(t, "/value", got.Gateway.AuthToken)
	require.Empty(t, got.Warnings)
}

// commentedKey is a key or a list item of the example that is commented out.
var commentedKey = regexp.MustCompile(`(?m)^( {0,8})# ( *(?:- \{.*\}|[a-z_]+:( .*)?))$`)

func TestExampleShowsEveryKey(t *testing.T) {
	t.Parallel()
	doc, ok := document(t, commentedKey.ReplaceAllString(example(t), "$1$2"))
	require.True(t, ok)
	var root map[string]any
	require.NoError(t, json.Unmarshal(config.Schema(), &root))
	server := root["$defs"].(map[string]any)["server"]
	// Keys are compared by the last two names of their path: overrides of servers and of
	// profiles have the same keys.
	known, shown := map[string]bool{}, map[string]bool{}
	last := func(path []string) string { return strings.Join(path[max(len(path)-2, 0):], ".") }
	var walk func(node any, path []string, values []any)
	walk = func(node any, path []string, values []any) {
		m, ok := node.(map[string]any)
		if !ok {
			return
		}
		if m["$ref"] == "#/$defs/server" {
			m = server.(map[string]any)
		}
		objects := make([]map[string]any, 0, len(values))
		var elements []any
		for _, v := range values {
			switch v := v.(type) {
			case map[string]any:
				objects = append(objects, v)
			case []any:
				elements = append(elements, v...)
			}
		}
		properties, _ := m["properties"].(map[string]any)
		for name, property := range properties {
			if name == "mcpServers" {
				continue // an alias
			}
			at := append(path[:len(path):len(path)], name)
			known[last(at)] = true
			var next []any
			for _, o := range objects {
				if v, ok := o[name]; ok {
					shown[last(at)] = true
					next = append(next, v)
				}
			}
			walk(property, at, next)
		}
		if more, ok := m["additionalProperties"].(map[string]any); ok {
			var next []any
			for _, o := range objects {
				next = slices.AppendSeq(next, maps.Values(o))
			}
			walk(more, append(path[:len(path):len(path)], "*"), next)
		}
		walk(m["items"], append(path[:len(path):len(path)], "[]"), elements)
		for _, word := range []string{"anyOf", "oneOf", "allOf"} {
			alternatives, _ := m[word].([]any)
			for _, one := range alternatives {
				walk(one, path, values)
			}
		}
	}
	walk(root, nil, []any{doc})
	require.Greater(t, len(known), 80)
	for key := range known {
		require.True(t, shown[key], "config.yaml.example lacks %s", key)
	}
}
