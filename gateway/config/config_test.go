package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/definition"
	"goblin/registry/keymap"
)

// whole is a config with a value other than the default for every key.
const whole = `
servers:
  files:
    command: ./bin/files
    args: [-p, 8080, true, 1.50, "${TOKEN}"]
    env: {PORT: 8080, KEY: "${TOKEN}", OTHER: "${NONE:-fall back}"}
    cwd: ~/work
    inherit_env: [LC_ALL]
    type: stdio
    disabled: true
    timeout: 1m30s
    call_timeout: 0
    startup_timeout: ${NONE:-5s}
    start: lazy
    idle_timeout: off
    isolation: session
    era: both
    roots: none
    forward_meta: false
    tools: {allow: ["read_*"], deny: ["read_secret"]}
    prompts: {deny: ["*"]}
    resources: {allow: ["file:///srv/*"]}
    open_resources: true
    max_result: 64KiB
  remote:
    url: https://example.com/mcp?key=${TOKEN}
    type: sse
    headers: {Authorization: "Bearer ${TOKEN}"}
gateway:
  listen: 0.0.0.0:7331
  auth_token: ${TOKEN}
  allowed_origins: ["https://app.example.com", "vscode-file://vscode-app"]
  namespace: flat
  page_size: 50
  startup_wait: 0s
  handshake_wait: 250ms
  list_changed: {prompts: false}
  meta_tools: [catalog_tools]
  meta_tools_above: 7
  roots: [{uri: "file://${HOME}/src", name: Source}]
  pin: strict
  linger: 0s
  remember: 7d
  start: eager
  idle_timeout: 1m
  limits: {frame: 1MiB, in_flight: 2, unsent: 100000, sessions: 3, projects: 5, pages: 4, entries: 5, depth: 64}
search: {embeddings: "http://127.0.0.1:11434/v1", model: m, auth_token: "${TOKEN}"}
lua: {timeout: 1s, memory: 2MiB, calls: 0, output: 4 kB}
log: {level: debug, file: logs/goblin.log}
otel: {endpoint: "https://otel.example.com:4318", headers: {X-Key: "${TOKEN}"}, protocol: http/protobuf, sample: 0.25}
record: {dir: rec, max: 1MiB, days: 30, bodies: false}
tui: {theme: dark, images: sixel, keys: {sort: F5, tools: [2, C-t], page-down: [Ctrl+V, PgDn], copy: [], mark: [space], pause: " "}}
`

func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "/etc/goblin/config.yaml", whole)
	cfg.Warnings = nil
	require.Equal(t, &config.Config{
		Path: "/etc/goblin/config.yaml",
		Servers: []config.Server{
			{
				Name: "files", Type: config.Stdio, TypeSet: true,
				Command: "/etc/goblin/bin/files", Args: []string{"-p", "8080", "true", "1.50", "s3cr3t"},
				Env: map[string]string{"PORT": "8080", "KEY": "s3cr3t", "OTHER": "fall back"}, FromEnv: []string{"KEY"}, Variables: map[string]string{"TOKEN": "s3cr3t"},
				Cwd: "/home/me/work", InheritEnv: config.InheritEnv{Names: []string{"LC_ALL"}},
				Disabled: true, Timeout: 90 * time.Second, StartupTimeout: 5 * time.Second, Start: config.LazyStart, IdleTimeout: config.Never, Isolation: config.PerSession, Era: config.BothEras, Roots: config.NoRoots,
				Tools:         config.Filter{Allow: []string{"read_*"}, Deny: []string{"read_secret"}},
				Prompts:       config.Filter{Deny: []string{"*"}},
				Resources:     config.Filter{Allow: []string{"file:///srv/*"}},
				OpenResources: true, MaxResult: 64 << 10,
			},
			{
				Name: "remote", Type: config.SSE, TypeSet: true,
				URL: "https://example.com/mcp?key=s3cr3t", Headers: map[string]string{"Authorization": "Bearer s3cr3t"}, Variables: map[string]string{"TOKEN": "s3cr3t"},
				Timeout: 30 * time.Second, CallTimeout: 10 * time.Minute, StartupTimeout: 20 * time.Second, Isolation: config.Shared, Era: config.AutoEra, ForwardMeta: true,
			},
		},
		Gateway: config.Gateway{
			Listen: "0.0.0.0:7331", AuthToken: "s3cr3t",
			AllowedOrigins: []string{"https://app.example.com", "vscode-file://vscode-app"},
			Namespace:      config.NamespaceFlat, MaxName: 51, PageSize: 50, StartupWait: 0, HandshakeWait: 250 * time.Millisecond,
			ListChanged: config.ListChanged{Tools: true, Resources: true},
			MetaTools:   config.MetaTools{Names: []string{"catalog_tools"}}, MetaToolsAbove: 7,
			Roots: []config.Root{{URI: "file:///home/me/src", Name: "Source"}},
			Pin:   config.PinStrict, Linger: 0, Remember: 7 * 24 * time.Hour, Start: config.EagerStart, IdleTimeout: time.Minute,
			Limits: config.Limits{Frame: 1 << 20, InFlight: 2, Unsent: 100000, Sessions: 3, Projects: 5, Pages: 4, Entries: 5, Depth: 64},
		},
		Search: config.Search{Embeddings: "http://127.0.0.1:11434/v1", Model: "m", AuthToken: "s3cr3t"},
		Lua:    config.Lua{Timeout: time.Second, Memory: 2 << 20, Calls: 0, Output: 4000},
		Log:    config.Log{Level: slog.LevelDebug, File: "/etc/goblin/logs/goblin.log"},
		OTel: config.OTel{
			On: true, Endpoint: "https://otel.example.com:4318", Headers: map[string]string{"X-Key": "s3cr3t"},
			Protocol: config.OTelHTTPProtobuf, Sample: new(0.25),
		},
		Record: config.Record{On: true, Dir: "/etc/goblin/rec", Max: 1 << 20, Days: 30},
		TUI: config.TUI{Theme: "dark", Images: "sixel", Keys: map[string][]string{
			"sort": {"f5"}, "tools": {"2", "ctrl+t"}, "page-down": {"ctrl+v", "pgdown"}, "copy": {}, "mark": {" "}, "pause": {" "},
		}},
	}, cfg)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "/etc/goblin.yaml", "servers: {a: {command: npx}, b: {url: 'http://h'}}")
	require.Equal(t, &config.Config{
		Path: "/etc/goblin.yaml",
		Servers: []config.Server{
			{Name: "a", Type: config.Stdio, Command: "npx", Timeout: 30 * time.Second, CallTimeout: 10 * time.Minute, StartupTimeout: 2 * time.Minute, Isolation: config.Shared, Era: config.AutoEra, ForwardMeta: true},
			{Name: "b", Type: config.HTTP, URL: "http://h", Timeout: 30 * time.Second, CallTimeout: 10 * time.Minute, StartupTimeout: 20 * time.Second, Isolation: config.Shared, Era: config.AutoEra, ForwardMeta: true},
		},
		Gateway: config.Gateway{
			Namespace: config.NamespaceURI, MaxName: 51, PageSize: 1000, StartupWait: 10 * time.Second, HandshakeWait: 5 * time.Second,
			ListChanged: config.ListChanged{Tools: true, Prompts: true, Resources: true},
			MetaTools:   config.MetaTools{Auto: true}, MetaToolsAbove: 60, Pin: config.PinReport, Linger: time.Minute, Remember: 30 * 24 * time.Hour, Start: config.AutoStart, IdleTimeout: 15 * time.Minute,
			Limits: config.Limits{Frame: 128 << 20, InFlight: 256, Unsent: 16 << 20, Sessions: 2048, Projects: 16, Pages: 1000, Entries: 1000000, Depth: 512},
		},
		Search: config.Search{Model: "nomic-embed-text"},
		Lua:    config.Lua{Timeout: 10 * time.Second, Memory: 64 << 20, Calls: 1000, Output: 1 << 20},
		Log:    config.Log{Level: slog.LevelInfo},
		Record: config.Record{Max: 256 << 20, Days: 7, Bodies: true},
		TUI:    config.TUI{Theme: "auto", Images: "auto"},
	}, cfg)
}

func TestSectionsWithNothingInThemAreDefaults(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "# nothing\n", "---\n", "servers:\ngateway:\nlua:\nlog:\ntui:\n", "\ufeffservers: {}"} {
		cfg := parse(t, "goblin.yaml", src)
		require.Equal(t, 1000, cfg.Gateway.PageSize)
		require.Equal(t, []config.Problem{{File: "goblin.yaml", Text: `no servers are configured; add one under "servers"`}}, cfg.Warnings, src)
		require.Equal(t, `goblin.yaml: no servers are configured; add one under "servers"`, cfg.Warnings[0].String())
	}
}

func TestWhatIsOffMayBeWrittenInBothWays(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"off", "false"} {
		cfg := parse(t, "goblin.yaml", "servers: {a: {command: x, max_result: "+off+"}}\ngateway: {remember: "+off+"}")
		require.Less(t, cfg.Servers[0].MaxResult, int64(0), off)
		require.Zero(t, cfg.Gateway.Remember, off)
	}
	cfg := parse(t, "goblin.yaml", "servers: {a: {command: x}}\ngateway: {remember: 7d, allowed_hosts: [goblin.example.], auth_token: t}")
	require.Equal(t, 7*24*time.Hour, cfg.Gateway.Remember)
	require.Equal(t, []string{"goblin.example"}, cfg.Gateway.AllowedHosts, "a final dot means the same host")
}

func TestAnchorsAndMergesShareSettings(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", `
servers:
  a: &base
    command: x
    env: &env {A: 1}
    timeout: 5s
  b:
    <<: *base
    timeout: 7s
  c: {command: y, env: *env}
  d:
    <<: [{timeout: 1s}, *base]
`)
	require.Empty(t, cfg.Warnings)
	for i, want := range []struct {
		command string
		timeout time.Duration
	}{{"x", 5 * time.Second}, {"x", 7 * time.Second}, {"y", 30 * time.Second}, {"x", time.Second}} {
		s := cfg.Servers[i]
		require.Equal(t, want.command, s.Command, s.Name)
		require.Equal(t, want.timeout, s.Timeout, s.Name)
		require.Equal(t, map[string]string{"A": "1"}, s.Env, s.Name)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"plain", "plain"},
		{"a${TOKEN}b${TOKEN}", "as3cr3tbs3cr3t"},
		{"${NONE:-x}", "x"},
		{"${NONE:-}", ""},
		{"${EMPTY}", ""},
		{"${EMPTY:-x}", "x"},
		{"${TOKEN:-x}", "s3cr3t"},
		{"${NONE:-${TOKEN}}!", "s3cr3t!"},
		{"${NONE:-a:-b}", "a:-b"},
		{"$TOKEN $ 5$", "$TOKEN $ 5$"},
		{"$${TOKEN}", "${TOKEN}"},
		{"$$${TOKEN}", "$${TOKEN}"},
		{"$$", "$$"},
		{"{x: ${NONE:-'], y: [1'}", "{x: '], y: [1'"},
	} {
		cfg := parse(t, "goblin.yaml", "servers:\n  a:\n    command: x\n    args:\n      - "+yamlQuote(c.src))
		require.Empty(t, cfg.Servers[0].Problem, c.src)
		require.Equal(t, []string{c.want}, cfg.Servers[0].Args, c.src)
	}
}

func yamlQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestVariablesCannotAddToTheFile(t *testing.T) {
	t.Parallel()
	inject := func(string) (string, bool) { return "x\n  evil:\n    command: rm\n\"'}]", true }
	cfg, err := config.Parse("goblin.yaml", []byte("servers:\n  a:\n    command: x\n    args:\n      - \"${V}\"\n      - ${V}"), inject)
	require.NoError(t, err)
	require.Len(t, cfg.Servers, 1)
	value, _ := inject("")
	require.Equal(t, []string{value, value}, cfg.Servers[0].Args)
}

func TestAServerWithAnUnsetVariableStaysOffAlone(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", `
servers:
  good: {command: x}
  bad:
    url: http://${HOST}/${PATH_}
    headers:
      Authorization: Bearer ${SECRET}
  off: {command: "${NONE}", disabled: true}
  broken: {url: "http://h", headers: {A: "${BREAK}"}, timeout: "${WAIT}"}
`)
	const unset = `${%} is not set, but "#" in @ needs it; set it or write ${%:-default}`
	say := func(v, key, owner string) string {
		return strings.NewReplacer("%", v, "#", key, "@", owner).Replace(unset)
	}
	host, path := say("HOST", "url", `server "bad"`), say("PATH_", "url", `server "bad"`)
	secret := say("SECRET", "Authorization", `headers of server "bad"`)
	require.Empty(t, cfg.Servers[0].Problem)
	require.Equal(t, "goblin.yaml:5: "+host+"; goblin.yaml:5: "+path+"; goblin.yaml:7: "+secret, cfg.Servers[1].Problem)
	require.Empty(t, cfg.Servers[1].URL)
	require.Equal(t, "goblin.yaml:8: "+say("NONE", "command", `server "off"`), cfg.Servers[2].Problem)
	require.Equal(t, `goblin.yaml:9: "A" in headers of server "broken" contains a line break or another control character; `+
		`goblin.yaml:9: "timeout" in server "broken" must be a duration such as "500ms", "30s" or "5m", not "${WAIT}"`, cfg.Servers[3].Problem)
	require.Equal(t, 30*time.Second, cfg.Servers[3].Timeout)

	var warned []string
	for _, w := range cfg.Warnings {
		warned = append(warned, w.String())
	}
	require.Len(t, warned, 5, "none for the disabled server")
	require.Equal(t, "goblin.yaml:7: "+secret+` (server "bad" is not started until then)`, warned[2])
}

func TestClaudeDesktopFileWorksAsItIs(t *testing.T) {
	t.Parallel()
	src := `{
	"globalShortcut": "Ctrl+Space",
	"mcpServers": {
		"filesystem": {
			"command": "npx",
			"args": ["-y", "@modelcontextprotocol\/server-filesystem", "C:\\Users\\me", "\ud83d\ude00"],
			"env": {"DEBUG": "1"}
		},
		"remote": {
			"type": "streamable-http", "url": "https://h/mcp", "args": [], "env": {},
			"headers": {"Accept": "application/json", "X-Key": "${TOKEN}"},
			"disabled": false, "alwaysAllow": ["a"], "autoApprove": [], "description": "d", "timeout": 60,
			"disabledTools": ["drop"]
		},
		"typed": {"type": "stdio", "command": "x", "isActive": false},
		"vs": {"command": "x", "args": ["${input:key}"]}
	},
	"preferences": {"a": [1, 2.5, null]}
}`
	for _, name := range []string{"claude_desktop_config.json", "config.yaml"} {
		cfg := parse(t, "/etc/"+name, src)
		require.Len(t, cfg.Servers, 4)
		require.Equal(t, []string{"-y", "@modelcontextprotocol/server-filesystem", `C:\Users\me`, "😀"}, cfg.Servers[0].Args)
		remote := cfg.Servers[1]
		require.Equal(t, config.HTTP, remote.Type)
		require.Equal(t, map[string]string{"X-Key": "s3cr3t"}, remote.Headers)
		require.Equal(t, 30*time.Second, remote.Timeout)
		require.Equal(t, []string{"drop"}, remote.Tools.Deny)
		require.Equal(t, config.Stdio, cfg.Servers[2].Type)
		require.True(t, cfg.Servers[2].Disabled)
		require.Contains(t, cfg.Servers[3].Problem, "${NAME}")

		var warned []string
		for _, w := range cfg.Warnings {
			warned = append(warned, strings.TrimPrefix(w.String(), "/etc/"+name))
		}
		require.Equal(t, []string{
			`:10: "args" in server "remote" is for servers with "command" and is ignored`,
			`:10: "env" in server "remote" is for servers with "command" and is ignored`,
			`:11: "Accept" in headers of server "remote" is ignored because Goblin sets it`,
			`:12: "alwaysAllow" in server "remote" is a key of another client and is ignored`,
			`:12: "autoApprove" in server "remote" is a key of another client and is ignored`,
			`:12: "description" in server "remote" is a key of another client and is ignored`,
			`:12: "timeout" in server "remote" has no unit and is ignored; write it as "30s"`,
			`:16: "args[0]" in server "vs" has a "${…}" that is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${" (server "vs" is not started until then)`,
		}, warned)
	}
}

func TestKeysOfOtherClientsThatRestrictAreHeeded(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "mcp.json", `{"servers": {
		"a": {"serverUrl": "https://h", "enabled": false, "includeTools": ["read"], "excludeTools": ["write"]},
		"b": {"httpUrl": "https://h", "enabled": true},
		"c": {"command": "x", "headers": {"A": "b"}}
	}, "inputs": []}`)
	a, b, c := cfg.Servers[0], cfg.Servers[1], cfg.Servers[2]
	require.Equal(t, "https://h", a.URL)
	require.Equal(t, config.HTTP, a.Type)
	require.True(t, a.Disabled)
	require.Equal(t, config.Filter{Allow: []string{"read"}, Deny: []string{"write"}}, a.Tools)
	require.Equal(t, "https://h", b.URL)
	require.False(t, b.Disabled)
	require.Nil(t, c.Headers, "invalid for a command")
	require.Len(t, cfg.Warnings, 1)
}

func TestServerNamesAreMadeFitForURIs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 70)
	cfg := parse(t, "goblin.yaml", `
servers:
  My Server: {command: x}
  "My/Server": {command: x}
  My-Server: {command: x}
  goblin: {command: x}
  "  é": {command: x}
  -a.: {command: x}
  `+long+`: {command: x}
  `+long+`m: {command: x}
  1: {command: x}
`)
	var got []string
	for _, s := range cfg.Servers {
		got = append(got, s.Name)
	}
	require.Equal(t, []string{
		"My-Server-2", "My-Server-3", "My-Server", "goblin-2", "server", "a.", long[:64], long[:62] + "-2", "1",
	}, got)
	require.Equal(t, `goblin.yaml:3: the name "My Server" has characters that a URI does not allow; renamed to "My-Server-2"`, cfg.Warnings[0].String())
	require.Equal(t, `goblin.yaml:6: the name "goblin" is reserved for Goblin; renamed to "goblin-2"`, cfg.Warnings[2].String())
	s, ok := cfg.Server("goblin-2")
	require.True(t, ok)
	require.Same(t, &cfg.Servers[3], s)
	_, ok = cfg.Server("goblin")
	require.False(t, ok)
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, want string }{
		{
			"flat ids", "gateway:\n  namespace: flat",
			"goblin.yaml:2: namespace: flat lists resources by ids that are not URIs; clients that validate URIs, such as the Python SDK 1.x, reject the whole list",
		},
		{
			"long names", "servers:\n  " + strings.Repeat("n", 31) + ": {command: x}",
			`goblin.yaml:2: the name of server "` + strings.Repeat("n", 31) + `" leaves 19 characters for tool names in clients that add "mcp__goblin__" and allow 64; shorten it`,
		},
		{"names that fit", "servers:\n  " + strings.Repeat("n", 30) + ": {command: x}", ""},
		{
			"a prefix of a prefix", "servers:\n  my_db: {command: x}\n  my: {command: x}",
			`goblin.yaml:3: tools of server "my" whose listed names begin with "my_db_" get a suffix, because server "my_db" has that prefix`,
		},
		{
			"one prefix", "servers:\n  a.b: {command: x}\n  a_b: {command: x}",
			`goblin.yaml:2: tools of server "a.b" whose listed names begin with "a_b_" get a suffix, because server "a_b" has that prefix`,
		},
		{"names that only begin alike", "servers:\n  my: {command: x}\n  mydb: {command: x}\n  my-db: {command: x}", ""},
		{
			"a chain of prefixes", "servers:\n  a: {command: x}\n  a_b: {command: x}\n  a_b_c: {command: x}\n  a_d: {command: x}",
			`goblin.yaml:2: tools of server "a" whose listed names begin with "a_b_" get a suffix, because server "a_b" has that prefix
goblin.yaml:2: tools of server "a" whose listed names begin with "a_d_" get a suffix, because server "a_d" has that prefix
goblin.yaml:3: tools of server "a_b" whose listed names begin with "a_b_c_" get a suffix, because server "a_b_c" has that prefix`,
		},
		{
			"arguments in the command", "servers:\n  a:\n    command: npx -y foo",
			`goblin.yaml:3: "command" in server "a" contains a space; arguments belong in "args"`,
		},
		{
			"an unset token", "gateway:\n  auth_token: ${NONE}\n  listen: 0.0.0.0:7331",
			`goblin.yaml:2: ${NONE} is not set, but "auth_token" in gateway needs it; set it or write ${NONE:-default}`,
		},
		{
			"an empty token", "gateway:\n  auth_token: ${NONE:-}",
			`goblin.yaml:2: "auth_token" in gateway is empty, so every user of this machine may call Goblin`,
		},
		{
			"hosts of a proxy without a token", "gateway:\n  allowed_hosts: [goblin.example]",
			`goblin.yaml:2: allowed_hosts without auth_token: every client that reaches the proxy may call all servers; set auth_token`,
		},
		{
			"hosts of a proxy and an unset token", "gateway:\n  auth_token: ${NONE}\n  allowed_hosts: [goblin.example]",
			`goblin.yaml:2: ${NONE} is not set, but "auth_token" in gateway needs it; set it or write ${NONE:-default}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(c.src, "servers:") {
				c.src += "\nservers: {a: {command: x}}"
			}
			var got []string
			for _, w := range parse(t, "goblin.yaml", c.src).Warnings {
				got = append(got, w.String())
			}
			require.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, token string
		ok            bool
	}{
		{"127.0.0.1:7331", "", true},
		{"127.8.8.8:1", "", true},
		{"localhost:0", "", true},
		{"[::1]:80", "", true},
		{"[::ffff:127.0.0.1]:80", "", true},
		{":80", "", false},
		{"0.0.0.0:80", "", false},
		{"[::]:80", "", false},
		{"example.com:80", "", false},
		{"localhost.evil.com:80", "", false},
		{":80", "t", true},
		{"0.0.0.0:80", "t", true},
		{"example.com:80", "t", true},
		{"80", "t", false},
		{"a:b:80", "t", false},
		{"a:", "t", false},
		{"a:65536", "t", false},
		{"a:-1", "t", false},
		{"a/b:80", "t", false},
	} {
		src := "gateway: {listen: " + yamlQuote(c.listen) + ", auth_token: " + yamlQuote(c.token) + "}"
		_, err := config.Parse("goblin.yaml", []byte(src), env)
		require.Equal(t, c.ok, err == nil, "%s: %v", src, err)
		err = config.CheckListen(c.listen, c.token)
		require.Equal(t, c.ok, err == nil, "%s: %v", src, err)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, deny, yes, no []string
	}{
		{nil, nil, []string{"", "anything", "a/b"}, nil},
		{[]string{"read_*"}, nil, []string{"read_", "read_a/b"}, []string{"read", "xread_a", ""}},
		{[]string{"*"}, []string{"delete_*", "x"}, []string{"a", "xx"}, []string{"delete_a", "x"}},
		{[]string{"a", "b"}, []string{"a"}, []string{"b"}, []string{"a", "c"}},
		{[]string{"file:///*/c.txt"}, nil, []string{"file:///a/b/c.txt"}, []string{"file:///a/b/c.txt2"}},
		{[]string{"a*b*c"}, nil, []string{"abc", "aXbYbZc", "abcbc"}, []string{"acb", "ab", "abcx"}},
		{[]string{"?é?"}, nil, []string{"aéb", "üéü"}, []string{"é", "aéb1"}},
		{[]string{"[a-cx]1"}, nil, []string{"a1", "b1", "x1"}, []string{"d1", "1", "-1"}},
		{[]string{"[^a-c]"}, nil, []string{"d", "é"}, []string{"a", ""}},
		{[]string{"[]a-]"}, nil, []string{"]", "a", "-"}, []string{"b"}},
		{[]string{`\*\[x`}, nil, []string{"*[x"}, []string{"a[x"}},
		{[]string{"*a"}, nil, []string{"a", "aa", "\xffa"}, []string{"ab", ""}},
		{[]string{"**"}, nil, []string{"", "x"}, nil},
	} {
		f := config.Filter{Allow: c.allow, Deny: c.deny}
		for _, s := range c.yes {
			require.True(t, f.Match(s), "%v %q", f, s)
		}
		for _, s := range c.no {
			require.False(t, f.Match(s), "%v %q", f, s)
		}
	}
}

func BenchmarkFilterMatchWorstCase(b *testing.B) {
	f := config.Filter{Allow: []string{strings.Repeat("a*", 50) + "b"}}
	s := strings.Repeat("a", 2000)
	for b.Loop() {
		f.Match(s)
	}
}

func TestEnvironIsWhatTheServerNeedsOnly(t *testing.T) {
	t.Parallel()
	host := map[string]string{"HOME": "/h", "PATH": "/bin", "AWS_SECRET": "s", "LC_ALL": "C", "LANG": ""}
	lookup := func(k string) (string, bool) { v, ok := host[k]; return v, ok }
	all := []string{"HOME=/h", "PATH=/bin", "AWS_SECRET=s", "LC_ALL=C", "LANG=", "=C:=C:\\"}
	own := map[string]string{"PATH": "/own", "KEY": "a=b"}
	for _, c := range []struct {
		inherit config.InheritEnv
		want    []string
	}{
		{config.InheritEnv{}, []string{"HOME=/h", "KEY=a=b", "LANG=", "PATH=/own"}},
		{config.InheritEnv{Names: []string{"LC_ALL", "NONE"}}, []string{"HOME=/h", "KEY=a=b", "LANG=", "LC_ALL=C", "PATH=/own"}},
		{config.InheritEnv{All: true}, []string{"AWS_SECRET=s", "HOME=/h", "KEY=a=b", "LANG=", "LC_ALL=C", "PATH=/own"}},
	} {
		s := config.Server{Env: own, InheritEnv: c.inherit}
		require.Equal(t, c.want, s.Environ(lookup, all))
	}
}

// TestEqualLooksAtEveryField sets each field and compares.
func TestEqualLooksAtEveryField(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[config.Server]()
	for i := range typ.NumField() {
		if name := typ.Field(i).Name; name == "FromEnv" || name == "Variables" || name == "late" { // origin of a value, not a value
			continue
		}
		var a, b config.Server
		f := reflect.ValueOf(&b).Elem().Field(i)
		switch f.Interface().(type) {
		case bool:
			f.SetBool(true)
		case string, config.Type, config.Start, config.Isolation, config.RootsFrom, config.Era:
			f.SetString("x")
		case time.Duration, int64:
			f.SetInt(1)
		case []string:
			f.Set(reflect.ValueOf([]string{"x"}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"x": ""}))
		case config.InheritEnv:
			f.Set(reflect.ValueOf(config.InheritEnv{Names: []string{"x"}}))
		case config.OAuth:
			f.Set(reflect.ValueOf(config.OAuth{Scopes: []string{"x"}}))
		case config.Filter:
			f.Set(reflect.ValueOf(config.Filter{Deny: []string{"x"}}))
		case config.Build:
			f.Set(reflect.ValueOf(config.Build{Shell: "x"}))
		case *definition.Set:
			f.Set(reflect.ValueOf(&definition.Set{}))
		default:
			t.Fatalf("add the type of field %s to this test", typ.Field(i).Name)
		}
		name := typ.Field(i).Name
		require.Equal(t, name == "Tags" || name == "Overrides", a.Equal(&b), "%s: a change that only clients see must not restart the server", name)
		require.True(t, b.Equal(&b), typ.Field(i).Name)
	}
	require.True(t, (&config.Server{Args: []string{}}).Equal(&config.Server{}))
	require.True(t, (&config.Server{Problem: "c:1: x"}).Equal(&config.Server{Problem: "c:2: x"}))
}

func TestServersAreBuiltAndWatched(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", `servers:
  none: {command: x}
  line: {command: x, build: "npm run build && echo ${TOKEN}", watch: "src/**"}
  words: {command: x, build: [make, -j, 2], watch: [auto, "assets/*.{png,svg}", "!**/gen"]}
  remote: {url: "http://h", watch: [auto]}
`)
	none, line, words, remote := &cfg.Servers[0], &cfg.Servers[1], &cfg.Servers[2], &cfg.Servers[3]
	require.False(t, none.Rebuilt())
	require.Nil(t, none.Build.Command())
	require.Equal(t, []string{"sh", "-c", "npm run build && echo s3cr3t"}, line.Build.Command())
	require.Equal(t, []string{"make", "-j", "2"}, words.Build.Command())
	require.True(t, remote.Rebuilt())
	for s, files := range map[*config.Server][2]string{line: {"src/x.txt", "x.go"}, words: {"assets/a.svg", "assets/a.txt"}, remote: {"x.go", "x.txt"}} {
		globs, err := s.Globs()
		require.NoError(t, err)
		require.True(t, globs.Match(files[0]))
		require.False(t, globs.Match(files[1]))
	}
}

func TestMetaToolsHas(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{"true": true, "false": false, "[catalog_tools, execute_lua]": true, "[execute_lua]": false, "[]": false} {
		cfg := parse(t, "goblin.yaml", "gateway: {meta_tools: "+src+"}")
		require.Equal(t, want, cfg.Gateway.MetaTools.Has("catalog_tools"), src)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write := func(rel string) string {
		path := filepath.Join(dir, rel)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("servers: {}"), 0o600))
		return path
	}
	flag, variable := write("flag.yaml"), write("variable.yaml")
	xdg, home := write("xdg/goblin/config.yaml"), write("home/.config/goblin/config.yaml")
	link := filepath.Join(dir, "link", "goblin", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink("nowhere", link))
	write("cwd/goblin.yaml")
	write("cwd/config.yaml")
	write("cwd/goblin/config.yaml")
	write("cwd/.config/goblin/config.yaml")
	t.Chdir(filepath.Join(dir, "cwd"))
	missing := filepath.Join(dir, "missing.yaml")

	for _, c := range []struct {
		name, flag string
		env        map[string]string
		want, err  string
	}{
		{"the flag first", flag, map[string]string{"GOBLIN_CONFIG": variable, "HOME": dir}, flag, ""},
		{
			"a flag that leads nowhere", missing,
			map[string]string{"GOBLIN_CONFIG": variable},
			"",
			missing + ": cannot read the file that --config names: no such file or directory",
		},
		{"then the variable", "", map[string]string{"GOBLIN_CONFIG": variable, "XDG_CONFIG_HOME": dir + "/xdg"}, variable, ""},
		{
			"a variable that leads nowhere", "",
			map[string]string{"GOBLIN_CONFIG": missing, "XDG_CONFIG_HOME": dir + "/xdg"},
			"",
			missing + ": cannot read the file that $GOBLIN_CONFIG names: no such file or directory",
		},
		{"then the XDG folder", "", map[string]string{"XDG_CONFIG_HOME": dir + "/xdg", "HOME": dir + "/home"}, xdg, ""},
		{"not home, if the XDG folder has none", "", map[string]string{"XDG_CONFIG_HOME": dir, "HOME": dir + "/home"}, "", ""},
		{"then home", "", map[string]string{"HOME": dir + "/home"}, home, ""},
		{"a link that leads nowhere is a file", "", map[string]string{"XDG_CONFIG_HOME": dir + "/link"}, link, ""},
		{"an XDG folder in the working directory", "", map[string]string{"XDG_CONFIG_HOME": ".", "HOME": dir + "/home"}, home, ""},
		{"a home in the working directory", "", map[string]string{"HOME": "."}, "", ""},
		{"nothing: the demo, not the working directory", "", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := config.Find(c.flag, func(k string) string { return c.env[k] })
			require.Equal(t, c.want, got)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.err)
			var list *config.Errors
			require.ErrorAs(t, err, &list)
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	t.Setenv("GOBLIN_TEST_VALUE", "from the environment")
	require.NoError(t, os.WriteFile(path, []byte("servers: {a: {command: ./run, args: ['${GOBLIN_TEST_VALUE}']}}"), 0o600))
	t.Chdir(dir)
	cfg, err := config.Load("c.yaml")
	require.NoError(t, err)
	require.Equal(t, path, cfg.Path)
	require.False(t, cfg.Demo)
	require.Equal(t, filepath.Join(dir, "run"), cfg.Servers[0].Command)
	require.Equal(t, []string{"from the environment"}, cfg.Servers[0].Args)

	_, err = config.Load("none.yaml")
	require.EqualError(t, err, "none.yaml: cannot be read: no such file or directory")
	_, err = config.Load(dir)
	require.EqualError(t, err, dir+": cannot be read: is a directory")
	require.NoError(t, os.WriteFile(path, make([]byte, 5<<20), 0o600))
	_, err = config.Load("c.yaml")
	require.EqualError(t, err, "c.yaml: is larger than 4MiB")
}

func TestACopyOfTheDemoRunsThisProgram(t *testing.T) {
	t.Setenv("GOBLIN_EXECUTABLE", "")
	require.NoError(t, os.Unsetenv("GOBLIN_EXECUTABLE"))
	cfg, err := config.Load("demo.yaml")
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	require.Equal(t, program, cfg.Servers[0].Command)
}

func TestDemoRunsThisProgram(t *testing.T) {
	t.Setenv("GOBLIN_EXECUTABLE", "/bin/evil")
	cfg, err := config.Load("")
	require.NoError(t, err)
	require.True(t, cfg.Demo)
	require.Empty(t, cfg.Path)
	require.Empty(t, cfg.Warnings)
	program, err := os.Executable()
	require.NoError(t, err)
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
		require.Equal(t, program, s.Command)
		require.Equal(t, []string{"demo-server", s.Name}, s.Args)
		require.Empty(t, s.Problem)
	}
	require.Equal(t, []string{"notes", "clock", "library"}, names)
}

// A key of the config wins over the defaults of other actions, so that new defaults break
// no config.
func TestAKeyTakesTheDefaultOfAnotherAction(t *testing.T) {
	t.Parallel()
	cfg := parse(t, "goblin.yaml", "servers: {a: {command: x}}\ntui:\n  keys:\n    sort: [f5, s]\n    reload: R")
	var warned []string
	for _, w := range cfg.Warnings {
		warned = append(warned, w.String())
	}
	require.Equal(t, []string{
		`goblin.yaml:4: "sort" in tui.keys has the key "s", so "subscribe" has it no longer in Resources; give one of them another key`,
		`goblin.yaml:5: "reload" in tui.keys has the key "R", so "run-folder" has it no longer in Saved; give one of them another key`,
	}, warned)
	keys := keymap.Rebind(cfg.TUI.Keys)
	require.Equal(t, []string{"R"}, keys["reload"].Keys)
	require.Empty(t, keys["run-folder"].Keys)
	require.NotContains(t, keys["subscribe"].Keys, "s")
}

func TestConfigsThatAllUsersCanChangeAreWarnedOf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are for Unix")
	}
	path := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(path, []byte("servers: {a: {command: x}}\n"), 0o600))
	for mode, warnings := range map[os.FileMode]int{0o600: 0, 0o664: 0, 0o666: 1} {
		require.NoError(t, os.Chmod(path, mode))
		cfg, err := config.Load(path)
		require.NoError(t, err)
		require.Len(t, cfg.Warnings, warnings, mode)
	}
}
