package config_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

// answers returns a Resolver for known references, written as in the config.
func answers(known map[string]string) config.Resolver {
	return func(_ context.Context, kind string, words []string, _ string) (string, error) {
		value, ok := known[kind+":"+strings.Join(words, "|")]
		if !ok {
			return "", errors.New("is not set; set it")
		}
		return value, nil
	}
}

func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	vars := map[string]string{"HOME": "/home/me", "WHO": "a b", "file": "variable"}
	cfg, err := config.Parse("/etc/goblin/c.yaml", []byte(text), func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	})
	require.NoError(t, err)
	return cfg
}

func TestReferencesAreResolvedWhenAServerStarts(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, `servers:
  local:
    command: ${file:bin}
    args: ["--key=${keyring:team/key}", "${file:~/x y}", "${cmd:op read 'op://a b/${WHO}' \"\"}", "${file:-d}", "$${keyring:no}"]
    env: {A: "${keyring:team/key}-${WHO}", B: "${file:${HOME}/f}"}
    cwd: ${cmd:pwd}
  remote:
    url: https://${keyring:host}/mcp
    headers: {Authorization: "Bearer ${cmd:gh auth token}"}
    oauth: {client_id: x, client_secret: "${keyring:client}", issuer: "https://login.example"}
  plain: {command: c}
`)
	require.Empty(t, cfg.Warnings)
	local := &cfg.Servers[0]
	require.Equal(t, []string{"${cmd:op …}", "${cmd:pwd}", "${file:/etc/goblin/bin}", "${file:/home/me/f}", "${file:/home/me/x y}", "${keyring:team/key}"}, local.References())
	require.Equal(t, "${keyring:team/key}-a b", local.Env["A"], "the reference stays, the variable is replaced")
	require.Equal(t, "variable", local.Args[3], "a variable may have the name of a kind")
	require.Equal(t, "${cmd:pwd}", local.Cwd, "not a path yet")

	known := answers(map[string]string{
		"keyring:team/key": "the team's key", "file:/etc/goblin/bin": "./prog", "file:/home/me/x y": "of x", "file:/home/me/f": "of f",
		"cmd:op|read|op://a b/a b|": "of op", "cmd:pwd": "/work", "keyring:host": "h.example", "cmd:gh|auth|token": "the token", "keyring:client": "the client",
	})
	now, err := local.Resolve(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, "/etc/goblin/prog", now.Command)
	require.Equal(t, []string{"--key=the team's key", "of x", "of op", "variable", "${keyring:no}"}, now.Args)
	require.Equal(t, map[string]string{"A": "the team's key-a b", "B": "of f"}, now.Env)
	require.Equal(t, "/work", now.Cwd)
	require.Contains(t, now.Secrets, "of op")
	require.Equal(t, "${keyring:team/key}-a b", local.Env["A"], "the config is unchanged")

	now, err = cfg.Servers[1].Resolve(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, "https://h.example/mcp", now.URL)
	require.Equal(t, "Bearer the token", now.Headers["Authorization"])
	require.Equal(t, "the client", now.OAuth.ClientSecret)

	mask := config.NewMask(cfg)
	require.Equal(t, "${keyring:client} is told", mask.String("${keyring:client} is told"))
	mask.AddServerSecrets(now)
	require.Equal(t, "[hidden] at [hidden]", mask.String("Bearer the token at h.example"))

	now, err = local.Resolve(t.Context(), known)
	require.NoError(t, err)
	mask.AddServerSecrets(now)
	require.Equal(t, "[hidden]", mask.String("the team's key-a b"), "with the surrounding text")
	moved := cfg.Servers[1]
	moved.Cwd = "/elsewhere"
	now, err = moved.Resolve(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, "/elsewhere", now.Cwd, "later changes are kept")
	now, err = cfg.Servers[2].Resolve(t.Context(), nil)
	require.NoError(t, err)
	require.Same(t, &cfg.Servers[2], now.Server, "nothing is resolved")
}

func TestAReferenceWithoutAValueNamesItselfAndTheFix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		server string
		known  map[string]string
		want   string
	}{
		{`{command: c, env: {A: "${keyring:k}"}}`, nil, `${keyring:k} ("A" in env of server "s") is not set; set it`},
		{`{command: c, args: ["${cmd:op read op://secret}"]}`, nil, `${cmd:op …} ("args[0]" in server "s") is not set; set it`},
		{`{command: c, args: ["${cmd:pass secret}"]}`, nil, `${cmd:pass …} ("args[0]" in server "s") is not set; set it`},
		{`{command: c, args: ["${WHO}` + strings.Repeat("${keyring:k}", 17) + `"]}`, map[string]string{"keyring:k": strings.Repeat("v", 64<<10)}, `"args[0]" in server "s" is longer than 1 MiB with its variables expanded`},
		{`{url: "${file:u}"}`, map[string]string{"file:/etc/goblin/u": "nonsense"}, `"url" in server "s" must begin with http:// or https://`},
		{`{url: "http://h", headers: {A: "${keyring:k}"}}`, map[string]string{"keyring:k": "a\nb"}, `"A" in headers of server "s" contains a line break`},
		{`{command: c, env: {A: "${keyring:k}", B: "${keyring:l}"}}`, map[string]string{"keyring:k": "the value"}, `${keyring:l} ("B" in env of server "s") is not set`},
	} {
		cfg := parsed(t, "servers:\n  s: "+tt.server)
		_, err := cfg.Servers[0].Resolve(t.Context(), answers(tt.known))
		var why *config.UnresolvedError
		require.ErrorAs(t, err, &why, tt.server)
		require.ErrorContains(t, err, tt.want)
		require.Equal(t, "/etc/goblin/c.yaml:2", why.Location)
		for _, value := range tt.known {
			require.NotContains(t, err.Error(), value)
		}
	}
}

func TestMistakesInReferencesAreToldWithTheirPlace(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"${keyring:}":     `with an invalid name`,
		"${keyring:a b}":  `with an invalid name`,
		"${keyring:a:-b}": `with an invalid name`,
		"${file:}":        `without a path`,
		"${cmd:}":         `without a program`,
		"${cmd:''}":       `without a program`,
		"${cmd:a 'b}":     `an unclosed quote`,
		"${cmd:" + strings.Repeat("a ", 65) + "}": `more than 64 words`,
		"${A:-${keyring:k}}":                      `inside another`,
		"${cmd:a ${keyring:k}}":                   `inside another`,
		"${vault:k}":                              `neither ${NAME} nor`,
	} {
		_, err := config.Parse("c.yaml", fmt.Appendf(nil, "servers:\n  s:\n    command: c\n    args:\n      - %q\n", value), env)
		require.ErrorContains(t, err, `c.yaml:5: "args[0]" in server "s" `, value)
		require.ErrorContains(t, err, want, value)
	}
	for _, text := range []string{
		"servers: {s: {command: c, tools: {deny: ['${keyring:k}']}}}",
		"servers: {s: {command: c, timeout: '${file:k}'}}",
		"servers: {s: {url: 'http://h', oauth: {issuer: 'https://${cmd:k}'}}}",
		"gateway: {listen: '${cmd:x}'}",
		"log: {file: '${file:x}'}",
	} {
		_, err := config.Parse("c.yaml", []byte(text), env)
		require.ErrorContains(t, err, "is needed before servers start", text)
	}
	cfg, err := config.Parse("c.yaml", []byte("servers: {s: {command: c, args: ['${file:${NOT_THERE}/x}']}}"), env)
	require.NoError(t, err)
	require.Contains(t, cfg.Servers[0].Problem, "${NOT_THERE} is not set", "as any other")
}

func TestTheTokenOfTheGatewayMayBeAReference(t *testing.T) {
	t.Parallel()
	cfg := parsed(t, "servers: {s: {command: c}}\ngateway:\n  listen: 0.0.0.0:7331\n  auth_token: ${keyring:t}\n")
	require.Equal(t, "${keyring:t} is told", config.NewMask(cfg).String("${keyring:t} is told"))
	g, secrets := cfg.Gateway.Resolve(t.Context(), answers(map[string]string{"keyring:t": "the-token"}))
	require.Equal(t, "the-token", g.AuthToken)
	require.Equal(t, []string{"the-token"}, secrets)
	require.Empty(t, g.NoToken.Text)

	g, _ = cfg.Gateway.Resolve(t.Context(), answers(map[string]string{"keyring:t": ""}))
	require.Empty(t, g.AuthToken)
	require.Contains(t, g.NoToken.Text, "auth_token has no value", "listening requires a token")

	for value, want := range map[string]string{"": "is not set; set it", "a b": "must be visible ASCII"} {
		known := map[string]string{}
		if value != "" {
			known["keyring:t"] = value
		}
		g, _ = cfg.Gateway.Resolve(t.Context(), answers(known))
		require.Empty(t, g.AuthToken)
		require.Contains(t, g.NoToken.String(), "/etc/goblin/c.yaml:4: ")
		require.Contains(t, g.NoToken.Text, want)
	}
}

func TestWhatAServerRefersToDecidesWhetherItIsTheSame(t *testing.T) {
	t.Parallel()
	server := func(value string) *config.Server {
		return &parsed(t, "servers: {s: {command: c, env: {A: '"+value+"'}}}").Servers[0]
	}
	require.True(t, server("${keyring:k}").Equal(server("${keyring:k}")))
	require.False(t, server("${keyring:k}").Equal(server("${keyring:l}")))
	require.False(t, server("${keyring:k}").Equal(server("$${keyring:k}")))
}
