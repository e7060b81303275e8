package stack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/e2e"
	"goblin/registry/candidate"
)

// idle returns a stack that does not run, with its own home folder, and the config's path.
func idle(t *testing.T, text string) (i *Stack, path, home string) {
	t.Helper()
	home = t.TempDir()
	path = filepath.Join(home, "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	cfg, err := config.Load(path)
	require.NoError(t, err)
	i, err = New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler), Getenv: func(name string) string {
		return map[string]string{"HOME": home, "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home}[name]
	}})
	require.NoError(t, err)
	return i, path, home
}

func TestServersOfARegistryAreFoundWithFreeNames(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	for n := range 300 {
		fmt.Fprintf(&page, `{"server":{"name":"io.a/weather%d","description":%q}},`, n, strings.Repeat("x", 5000))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("search") == "hangs" {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"servers":[{"server":{"name":"io.a/a","version":"1","repository":{"url":"https://git"},"packages":[
			{"registryType":"npm","identifier":"@a/a","transport":{"type":"stdio"},"environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true}]},
			{"registryType":"mcpb","identifier":"https://b/w.mcpb","fileSha256":"`+strings.Repeat("a", 64)+`"}]}},{"server":3},`+page.String()+`{}],"metadata":{}}`)
	}))
	t.Cleanup(web.Close)
	i, _, _ := idle(t, "registry: "+web.URL+"\nservers:\n  a: {command: x}\n")
	found, err := i.SearchRegistry(within(t), []string{"a"})
	require.NoError(t, err)
	require.Equal(t, web.URL, found.Registry)
	require.Len(t, found.Servers, 100)
	require.True(t, found.HasMore)
	require.Len(t, found.Servers[1].Description, 1000)
	s := found.Servers[0]
	require.Equal(t, []string{"a-2", "io.a/a", "https://git"}, []string{s.Name, s.Origin, s.Link})
	require.Equal(t, "is a bundle; add it with: goblin add --registry io.a/a", s.Choices[1].Problem)
	require.Equal(t, []candidate.Variable{{Key: "KEY", Secret: true, Required: true}}, s.Choices[0].Variables)
	d, err := s.Choices[0].Build("b", map[string][]string{"KEY": {"hunter2"}})
	require.NoError(t, err)
	require.Equal(t, []candidate.Secret{{Name: "b.KEY", Value: "hunter2"}}, d.Secrets)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = i.SearchRegistry(ctx, []string{"hangs"})
	require.Error(t, err)
}

func TestServersOfClientsAreFoundWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	i, _, home := idle(t, "servers:\n  clock: {command: clock}\n")
	for path, text := range map[string]string{
		".cursor/mcp.json":                  `{"mcpServers":{"git":{"command":"git-mcp","disabled":true,"env":{"GITHUB_TOKEN":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}},"clock":{"command":"clock"}}}`,
		".codeium/windsurf/mcp_config.json": `{`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, path), []byte(text), 0o600))
	}
	all, err := i.ClientServers()
	require.NoError(t, err)
	require.Len(t, all.Problems, 1)
	require.Len(t, all.Servers, 2)
	git := all.Servers[0].Entry
	require.Equal(t, map[string]any{"command": "git-mcp", "env": map[string]string{"GITHUB_TOKEN": "${keyring:git.GITHUB_TOKEN}"}}, git.Keys)
	require.Equal(t, []candidate.Secret{{Name: "git.GITHUB_TOKEN", Value: "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}, git.Secrets)
	require.True(t, all.Servers[1].Present)
}

func TestSecretsOfAServerAreStoredOnlyIfItIsAdded(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	e2e.Use()
	i, path, _ := idle(t, "servers:\n  a: {command: x}\n")
	i.o.Resolve = i.secretStore().Resolve
	script := filepath.Join(t.TempDir(), "b.json")
	require.NoError(t, os.WriteFile(script, []byte(`{"name":"b",`+tools+`}`), 0o600))
	d := &candidate.Definition{
		Name: "b", Comment: "from a test", Secrets: []candidate.Secret{{Name: "b.KEY", Value: "hunter2"}},
		Keys: map[string]any{"command": "/no/such/prog", "env": map[string]string{"KEY": "${keyring:b.KEY}"}},
	}
	stored := func() []string {
		names, err := i.secretStore().List()
		require.NoError(t, err)
		return names
	}
	lacks, err := i.AddDefinition(within(t), d, false)
	require.NoError(t, err)
	require.Contains(t, lacks, "no file /no/such/prog")
	require.Empty(t, stored())

	d.Keys["command"], d.Keys["args"] = e2e.TestServer, []string{script}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = i.AddDefinition(ended, d, true)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, stored())

	lacks, err = i.AddDefinition(within(t), d, false)
	require.NoError(t, err)
	require.Empty(t, lacks)
	require.Equal(t, []string{"b.KEY"}, stored())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "# from a test\n  b:\n")
	require.NotContains(t, string(text), "hunter2")

	typed := &candidate.Definition{Name: "c", Keys: map[string]any{
		"command": "x", "args": []string{"--api-key", "sk-typed1234567890abcdef"},
		"env": map[string]string{"API_TOKEN": "tok-typed1234567890", "PLAIN": "hello", "KEY": "${SET}"},
	}}
	_, err = i.AddDefinition(within(t), typed, true)
	require.NoError(t, err)
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "typed", "values that look secret are stored")
	require.Contains(t, string(text), "${keyring:c.API_TOKEN}")
	require.Contains(t, string(text), "PLAIN: hello")
	require.Len(t, stored(), 3)
}

func TestAConfigThatCannotBeChangedIsReportedAndStays(t *testing.T) {
	t.Parallel()
	d := &candidate.Definition{Name: "b", Keys: map[string]any{"command": "x"}}
	for want, spoil := range map[string]func(path string) error{
		"was deleted; restore it": os.Remove,
		"is read-only":            func(path string) error { return os.Chmod(path, 0o400) },
		"unknown key":             func(path string) error { return os.WriteFile(path, []byte("nonsense: 1\n"), 0o600) },
	} {
		i, path, _ := idle(t, "servers: {}\n")
		require.NoError(t, spoil(path))
		before, _ := os.ReadFile(path)
		_, err := i.ClientServers()
		require.ErrorContains(t, err, want)
		_, err = i.AddDefinition(within(t), d, true)
		require.ErrorContains(t, err, want)
		after, _ := os.ReadFile(path)
		require.Equal(t, before, after)
	}
}
