package mcpregistry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/mcpregistry"
	"goblin/registry/candidate"
)

func entry(t testing.TB, text string) mcpregistry.Entry {
	t.Helper()
	c := &mcpregistry.Entry{}
	require.NoError(t, json.Unmarshal([]byte(`{"name":"io.github.ada/weather","version":"1.0.0",`+text+`}`), c))
	return *c
}

// built builds the first choice of an entry.
func built(e mcpregistry.Entry, answers map[string][]string) (*candidate.Definition, error) {
	return e.Choices()[0].Build("weather", answers)
}

func set(pairs ...string) map[string][]string {
	m := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = append(m[pairs[i]], pairs[i+1])
	}
	return m
}

func line(d *candidate.Definition) string {
	words := []string{fmt.Sprint(d.Keys["command"])}
	if args, ok := d.Keys["args"].([]string); ok {
		words = append(words, args...)
	}
	return strings.Join(words, "|")
}

func TestPackagesBecomeCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry string
		set   map[string][]string
		want  string
		env   any
	}{
		"npm":               {`"packages":[{"registryType":"npm","identifier":"@ada/weather","version":"1.2.3"}]`, nil, "npx|-y|@ada/weather@1.2.3", nil},
		"npm, once yes":     {`"packages":[{"registryType":"npm","identifier":"w","runtimeHint":"npx","runtimeArguments":[{"type":"named","name":"--yes"},{"type":"named","name":"-p","value":"x"}]}]`, nil, "npx|--yes|-p|x|w", nil},
		"npm, elsewhere":    {`"packages":[{"registryType":"npm","identifier":"w","registryBaseUrl":"https://npm.example/"}]`, nil, "npx|--registry=https://npm.example/|-y|w", nil},
		"bun":               {`"packages":[{"registryType":"npm","identifier":"w","version":"1","runtimeHint":"bunx"}]`, nil, "bunx|w@1", nil},
		"an unknown hint":   {`"packages":[{"registryType":"npm","identifier":"w","version":"1","runtimeHint":"rm"}]`, nil, "npx|-y|w@1", nil},
		"PyPI":              {`"packages":[{"registryType":"pypi","identifier":"weather","version":"0.5.0","runtimeHint":"uvx"}]`, nil, "uvx|weather@0.5.0", nil},
		"PyPI by pipx":      {`"packages":[{"registryType":"pypi","identifier":"weather","version":"0.5.0","runtimeHint":"pipx"}]`, nil, "pipx|run|weather==0.5.0", nil},
		"NuGet":             {`"packages":[{"registryType":"nuget","identifier":"Knapcode.Sample","version":"0.4.0-beta","packageArguments":[{"type":"positional","value":"mcp"},{"type":"positional","value":"start"}]}]`, nil, "dnx|--yes|Knapcode.Sample@0.4.0-beta|--|mcp|start", nil},
		"an image":          {`"packages":[{"registryType":"oci","identifier":"ghcr.io/ada/weather:1.0.2","version":"9","environmentVariables":[{"name":"KEY","value":"v"}]}]`, nil, "docker|run|-i|--rm|-e|KEY|ghcr.io/ada/weather:1.0.2", map[string]string{"KEY": "v"}},
		"an image, older":   {`"packages":[{"registryType":"oci","registryBaseUrl":"https://ghcr.io","identifier":"ada/weather","version":"1.0.2"}]`, nil, "docker|run|-i|--rm|ghcr.io/ada/weather:1.0.2", nil},
		"an image, said":    {`"packages":[{"registryType":"oci","identifier":"ada/weather","version":"1","runtimeArguments":[{"type":"positional","value":"run"},{"type":"named","name":"-i"},{"type":"named","name":"--rm"}]}]`, nil, "docker|run|-i|--rm|ada/weather:1", nil},
		"a mount":           {`"packages":[{"registryType":"oci","identifier":"ada/w:1","runtimeArguments":[{"type":"named","name":"--mount","value":"type=bind,src={from},dst={to}","isRequired":true,"isRepeated":true,"variables":{"from":{"isRequired":true,"format":"filepath"},"to":{"isRequired":true,"default":"/project"}}}],"packageArguments":[{"type":"positional","valueHint":"dir","value":"/project"}]}]`, set("from", "/my files"), "docker|run|-i|--rm|--mount|type=bind,src=/my files,dst=/project|ada/w:1|/project", nil},
		"arguments":         {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","valueHint":"dir","isRequired":true,"isRepeated":true},{"type":"named","name":"--port","description":"p","format":"number"},{"type":"named","name":"--host","default":"localhost"},{"type":"named","name":"--stdio"}]}]`, set("dir", "/a", "dir", "/b c"), "npx|-y|w|/a|/b c|--host|localhost|--stdio", nil},
		"shells have none":  {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":"; rm -rf ~ $(x) '\"|&"}]}]`, nil, "npx|-y|w|; rm -rf ~ $(x) '\"|&", nil},
		"variables neither": {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":"${cmd:rm -rf /} ${HOME} $${X}"}],"environmentVariables":[{"name":"K","default":"${keyring:github}"}]}]`, nil, "npx|-y|w|$${cmd:rm -rf /} $${HOME} $$${X}", map[string]string{"K": "$${keyring:github}"}},
		"nor in parts":      {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":"${a}{HOME} $","variables":{"a":{"value":""}}}]}]`, nil, "npx|-y|w|$${HOME} $", nil},
		"a user's are":      {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","valueHint":"dir","isRequired":true}]}]`, set("dir", "${HOME}/notes"), "npx|-y|w|${HOME}/notes", nil},
		"braces stay":       {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":"{nobody} {x}","variables":{"x":{"default":"1"}}}]}]`, nil, "npx|-y|w|{nobody} 1", nil},
		"left out":          {`"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"named","name":"--log","value":"{level}","variables":{"level":{}}}],"environmentVariables":[{"name":"OPT","description":"o"}]}]`, nil, "npx|-y|w", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := built(entry(t, tt.entry), tt.set)
			require.NoError(t, err)
			require.Equal(t, tt.want, line(d))
			require.Equal(t, tt.env, d.Keys["env"])
			require.Equal(t, "io.github.ada/weather 1.0.0, from the MCP registry", d.Comment)
		})
	}
}

func TestRemotesBecomeURLs(t *testing.T) {
	t.Parallel()
	d, err := built(entry(t, `"remotes":[{"type":"streamable-http","url":"https://{tenant}.example.com/mcp","variables":{"tenant":{"isRequired":true}},
		"headers":[{"name":"Authorization","value":"Bearer {token}","isSecret":true,"variables":{"token":{"isRequired":true,"isSecret":true}}},{"name":"X-Region","default":"eu","choices":["eu","us"]},{"name":"X-Not"}]}]`),
		set("tenant", "acme", "token", "hunter2"))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"url": "https://acme.example.com/mcp", "type": "http",
		"headers": map[string]string{"Authorization": "Bearer ${keyring:weather.token}", "X-Region": "eu"},
	}, d.Keys)
	require.Equal(t, []candidate.Secret{{Name: "weather.token", Value: "hunter2"}}, d.Secrets)

	d, err = built(entry(t, `"remotes":[{"type":"sse","url":"https://example.com/sse"}]`), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"url": "https://example.com/sse", "type": "sse"}, d.Keys)
}

func TestSecretsBecomeReferences(t *testing.T) {
	t.Parallel()
	e := entry(t, `"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"named","name":"--key","isSecret":true,"isRequired":true}],"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true},{"name":"OTHER","isSecret":true,"isRequired":true}]}]`)
	d, err := built(e, set("API_KEY", "a${b", "key", "k", "OTHER", "${MY_VAR}"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"API_KEY": "${keyring:weather.API_KEY}", "OTHER": "${MY_VAR}"}, d.Keys["env"])
	require.Equal(t, "npx|-y|w|--key|${keyring:weather.key}", line(d))
	require.Equal(t, []candidate.Secret{{Name: "weather.API_KEY", Value: "a${b"}, {Name: "weather.key", Value: "k"}}, d.Secrets)

	e = entry(t, `"packages":[{"registryType":"npm","identifier":"w","environmentVariables":[{"name":"DB","value":"db://me:{pass}@h","isSecret":true,"variables":{"pass":{}}}]}]`)
	require.True(t, e.Choices()[0].Variables()[0].Secret, "a part of a secret")
	d, err = built(e, set("pass", "hunter2"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"DB": "db://me:${keyring:weather.pass}@h"}, d.Keys["env"])
	require.Equal(t, []candidate.Secret{{Name: "weather.pass", Value: "hunter2"}}, d.Secrets)
}

func TestWhatCannotBeRunSaysWhy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"packages":[{"registryType":"cargo","identifier":"x"}]`:                                                               "unsupported package type cargo",
		`"packages":[{"registryType":"","identifier":"x"}]`:                                                                    "unsupported package type",
		`"packages":[{"registryType":"mcpb","identifier":"https://x.example/w.mcpb","fileSha256":"00"}]`:                       "it has no checksum",
		`"packages":[{"registryType":"npm","identifier":"w","transport":{"type":"streamable-http","url":"http://localhost"}}]`: "it serves streamable-http itself",
		`"packages":[{"registryType":"npm","identifier":"--eval=x"}]`:                                                          "its identifier is invalid for npm",
		`"packages":[{"registryType":"npm","identifier":"../../x"}]`:                                                           "its identifier is invalid for npm",
		`"packages":[{"registryType":"npm","identifier":"https://x.example/w.tgz"}]`:                                           "its identifier is invalid for npm",
		`"packages":[{"registryType":"pypi","identifier":"w; rm"}]`:                                                            "its identifier is invalid for pypi",
		`"packages":[{"registryType":"oci","identifier":"-v/:/host"}]`:                                                         "its identifier is invalid for oci",
		`"packages":[{"registryType":"nuget","identifier":"a b"}]`:                                                             "its identifier is invalid for nuget",
		`"packages":[{"registryType":"npm","identifier":"w","version":"--x"}]`:                                                 "its version is invalid",
		`"packages":[{"registryType":"npm","identifier":"w","version":"1 2"}]`:                                                 "its version is invalid",
		`"packages":[{"registryType":"npm","identifier":"w","registryBaseUrl":"http://x.example"}]`:                            "use https",
		`"packages":[{"registryType":"nuget","identifier":"w","registryBaseUrl":"https://x.example"}]`:                         "not supported by dnx",
		`"packages":[{"registryType":"npm","identifier":"w","environmentVariables":[{"name":"A=B"}]}]`:                         "an environment variable has an invalid name",
		`"remotes":[{"type":"websocket","url":"wss://x"}]`:                                                                     "unsupported transport websocket",
		`"remotes":[{"type":"sse","url":"https://x","headers":[{"name":"A\r\nB"}]}]`:                                           "a header has an invalid name",
		`"remotes":[{"type":"sse","url":"file:///etc/passwd"}]`:                                                                "invalid URL \"file:///etc/passwd\"",
		`"remotes":[{"type":"sse","url":"https://x/ y"}]`:                                                                      "invalid URL",
		`"packages":[{"registryType":"npm","identifier":"w","environmentVariables":[{"name":"K","isRequired":true}]}]`:         "needs K; set it with --set K=VALUE",
	} {
		_, err := built(entry(t, text), nil)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "io.github.ada/weather: ")
	}
}

func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	e := entry(t, `"packages":[{"registryType":"npm","identifier":"w","environmentVariables":[{"name":"MODE","choices":["a","b"]},{"name":"N","format":"number"},{"name":"B","format":"boolean"},{"name":"S"}]}]`)
	for key, tt := range map[string][2]string{
		"MODE": {"c", "MODE must be one of a, b"}, "N": {"x", "N must be a number"}, "B": {"yes", "B must be true or false"}, "S": {"a\x00b", "NUL"}, "T": {"x", `unknown value "T"; known: MODE, N, B, S`},
	} {
		_, err := built(e, set(key, tt[0]))
		require.ErrorContains(t, err, tt[1])
	}
	_, err := built(e, set("S", "1", "S", "2"))
	require.ErrorContains(t, err, "S takes one value")
	_, err = built(e, set("MODE", "a", "N", "1.5", "B", "true", "S", "-x"))
	require.NoError(t, err)
}

func TestQuestionsAreAskedOnce(t *testing.T) {
	t.Parallel()
	e := entry(t, `"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":"{dir}","variables":{"dir":{"isRequired":true}}},{"type":"positional","value":"{dir}/x","variables":{"dir":{"isRequired":true}}}],"environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true,"description":"of \u001b[2J","placeholder":"sk-"},{"name":"FIXED","value":"1"}]}]`)
	q := e.Choices()[0].Variables()
	require.Len(t, q, 2)
	require.Equal(t, candidate.Variable{Key: "KEY", Description: "of \x1b[2J", Required: true, Secret: true, Placeholder: "sk-"}, q[0])
	require.Equal(t, "dir", q[1].Key)
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"io.github.ada/weather": "weather", "io.github.ada/weather-mcp-server": "weather", "io.github.ada/mcp-server-weather": "weather",
		"com.stripe/mcp": "stripe", "io.x/goblin": "server", "io.x/.-_a": "a", "io.x/___": "server", "x/mcp": "x",
	} {
		e := mcpregistry.Entry{Name: name}
		require.Equal(t, want, e.ShortName(), name)
	}
}

// FuzzLiteralsStayLiteral checks that the config contains texts of a registry literally.
func FuzzLiteralsStayLiteral(f *testing.F) {
	for _, s := range []string{"a", "${HOME}", "$${HOME}", "${a}{HOME}", "${keyring:x}", "{a}{b}", "$", "$$", "${a", "{a}$", "\x00", "$\xff{"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		if strings.ContainsRune(template+value, 0) {
			return // refused by the config
		}
		quoted := func(s string) string {
			text, _ := json.Marshal(strings.ToValidUTF8(s, "?"))
			return string(text)
		}
		e := entry(t, `"packages":[{"registryType":"npm","identifier":"w","packageArguments":[{"type":"positional","value":`+quoted(template)+`,"variables":{"a":{"default":`+quoted(value)+`},"b":{}},"isRequired":true}]}]`)
		d, err := built(e, nil)
		require.NoError(t, err)
		args := d.Keys["args"].([]string)
		text, err := json.Marshal(obj{"servers": obj{"w": obj{"command": "npx", "args": args}}})
		require.NoError(t, err)
		cfg, err := config.Parse("c.json", text, func(string) (string, bool) { return "LEAKED", true })
		if err != nil {
			t.Skip() // such as a text that a config cannot contain
		}
		require.NotContains(t, cfg.Servers[0].Args[2], "LEAKED")
		want := strings.NewReplacer("{a}", strings.ToValidUTF8(value, "?"), "{b}", "").Replace(strings.ToValidUTF8(template, "?"))
		require.Equal(t, want, cfg.Servers[0].Args[2])
	})
}

func FuzzEntries(f *testing.F) {
	f.Add([]byte(`{"server":{"name":"a/b","packages":[{"registryType":"oci","identifier":"x:1","runtimeArguments":[{"type":"named","name":"-e","value":"A={b}","variables":{"b":{"isRequired":true}}}]}],"remotes":[{"type":"sse","url":"https://{x}","variables":{"x":{"default":"y"}}}]}}`))
	f.Add([]byte(`{"server":{"name":"a/b","packages":[{"registryType":"npm","identifier":"@a/b","version":"1"}]},"_meta":{"x":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }))
		c.Cache = nil
		e, _, err := c.Get(t.Context(), "a/b", "")
		if err != nil {
			return
		}
		for _, choice := range e.Choices() {
			answers := map[string][]string{}
			for _, q := range choice.Variables() {
				answers[q.Key] = []string{"1"}
			}
			d, err := choice.Build("b", answers)
			if err != nil {
				continue
			}
			if command, ok := d.Keys["command"]; ok {
				require.Contains(t, []string{"npx", "bunx", "uvx", "pipx", "dnx", "docker", "podman"}, command)
			}
		}
	})
}
