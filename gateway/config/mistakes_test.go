package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

// env is the environment of the tests. EMPTY is set to "".
func env(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME": "/home/me", "TOKEN": "s3cr3t", "EMPTY": "", "BREAK": "s3cr3t\nX-Evil: 1", "WAIT": "s3cr3t",
	}[name]
	return v, ok
}

func parse(t *testing.T, name, src string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(name, []byte(src), env)
	require.NoError(t, err)
	return cfg
}

// mistake is a text with all its mistakes. seen reports whether the schema refuses the
// text too.
type mistake struct {
	name, src string
	want      string
	seen      bool
}

var mistakes = []mistake{
	{
		"unknown key of a server", "servers:\n  files:\n    comand: npx\n    url: http://h",
		`goblin.yaml:3: unknown key "comand" in server "files"; did you mean "command"?`, true,
	},
	{
		"bound of results that is too small", "servers:\n  files:\n    command: npx\n    max_result: 100",
		`goblin.yaml:4: "max_result" in server "files" must be from 1KiB to 1024GiB`, true,
	},
	{
		"bound of results without a unit", "servers:\n  files:\n    command: npx\nprofiles:\n  p: {max_result: 64k}",
		`goblin.yaml:5: "max_result" in profile "p" must be a size such as "64KiB" or "128MiB", not "64k"`, true,
	},
	{
		"bound of results that is no size", "servers:\n  files:\n    command: npx\n    max_result: true",
		`goblin.yaml:4: "max_result" in server "files" must be a size such as "64KiB" or "128MiB", not true or false`, true,
	},
	{
		"glob without a closing bracket", "servers:\n  files:\n    command: npx\n    watch:\n      - src/**\n      - a[b",
		`goblin.yaml:6: "watch[1]" in server "files" is not valid: "[" needs a closing "]", and "\" a character after it`, false,
	},
	{
		"absolute glob", "servers:\n  files:\n    command: npx\n    watch: /src/**",
		`goblin.yaml:4: "watch" in server "files" must be relative to the server's folder`, false,
	},
	{
		"watch that is no glob", "servers:\n  files:\n    command: npx\n    watch: {a: b}",
		`goblin.yaml:4: "watch" in server "files" must be a glob or a list of globs, not a mapping`, true,
	},
	{
		"watch of nothing", "servers:\n  files:\n    command: npx\n    watch: []",
		`goblin.yaml:4: "watch" in server "files" is an empty list; write "auto" for source files, or remove the key`, true,
	},
	{
		"build without a program", "servers:\n  files:\n    command: npx\n    build: []",
		`goblin.yaml:4: "build" in server "files" needs a program as first item`, true,
	},
	{
		"empty build", "servers:\n  files:\n    command: npx\n    build: \"\"",
		`goblin.yaml:4: "build" in server "files" is empty`, false,
	},
	{
		"build of projects", "servers:\n  files:\n    command: npx\n    isolation: project\n    build: make",
		`goblin.yaml:5: "build" in server "files" has no folder with isolation: project; set isolation: shared or remove the key`, false,
	},
	{
		"embeddings by what is no URL", "servers: {a: {command: npx}}\nsearch:\n  embeddings: localhost:11434",
		`goblin.yaml:3: "embeddings" in search must begin with http:// or https://`, false,
	},
	{
		"embeddings by a URL with a query", "servers: {a: {command: npx}}\nsearch:\n  embeddings: http://h/v1?key=1",
		`goblin.yaml:3: "embeddings" in search must not have a "?" part`, false,
	},
	{
		"token with a reference where it is needed at once", "servers: {a: {command: npx}}\nsearch: {auth_token: \"${keyring:openai}\"}",
		`goblin.yaml:2: "auth_token" in search is needed before servers start and cannot contain ${keyring:openai}; references are allowed in command, args, env, cwd, url, headers, oauth.client_secret, gateway.auth_token and otel.headers`, false,
	},
	{
		"receiver of traces that is no URL", "servers: {a: {command: npx}}\notel:\n  endpoint: localhost:4317",
		`goblin.yaml:3: "endpoint" in otel must begin with http:// or https://`, false,
	},
	{
		"receiver of traces with a query", "servers: {a: {command: npx}}\notel:\n  endpoint: http://h?key=1",
		`goblin.yaml:3: "endpoint" in otel must not have a "?" part`, false,
	},
	{
		"traces over gRPC", "servers: {a: {command: npx}}\notel:\n  protocol: grpc",
		`goblin.yaml:3: "protocol" in otel must be http/protobuf, not "grpc"`, true,
	},
	{
		"share of traces above all", "servers: {a: {command: npx}}\notel:\n  sample: 10",
		`goblin.yaml:3: "sample" in otel must be from 0 to 1`, true,
	},
	{
		"share of traces that is text", "servers: {a: {command: npx}}\notel:\n  sample: all",
		`goblin.yaml:3: "sample" in otel must be a number from 0 to 1, not text`, true,
	},
	{
		"unknown key of traces", "servers: {a: {command: npx}}\notel:\n  header: {a: b}",
		`goblin.yaml:3: unknown key "header" in otel; did you mean "headers"?`, true,
	},
	{
		"traces by a word", "servers: {a: {command: npx}}\notel: yes please",
		`goblin.yaml:2: "otel" must be a mapping, true or false, not text`, true,
	},
	{
		"recordings by a word", "servers: {a: {command: npx}}\nrecord: /tmp/rec",
		`goblin.yaml:2: "record" must be a mapping, true or false, not text`, true,
	},
	{
		"recordings too small for their lists", "servers: {a: {command: npx}}\nrecord:\n  max: 10KiB",
		`goblin.yaml:3: "max" in record must be from 1MiB to 1024GiB`, false,
	},
	{
		"recordings that are removed at once", "servers: {a: {command: npx}}\nrecord:\n  days: 0",
		`goblin.yaml:3: "days" in record must be from 1 to 36500`, true,
	},
	{
		"misspelled key of recordings", "servers: {a: {command: npx}}\nrecord:\n  bodie: false",
		`goblin.yaml:3: unknown key "bodie" in record; did you mean "bodies"?`, true,
	},
	{
		"unknown key in another spelling", "servers:\n  files:\n    command: npx\n    startupTimeout: 3s",
		`goblin.yaml:4: unknown key "startupTimeout" in server "files"; did you mean "startup_timeout"?`, true,
	},
	{
		"unknown key known elsewhere", "servers:\n  files:\n    command: npx\n    environment: {}",
		`goblin.yaml:4: unknown key "environment" in server "files"; did you mean "env"?`, true,
	},
	{
		"no space after a key", "servers: {a: {command: npx}}\nrules: [{when:name:x, then: deny}]",
		`goblin.yaml:2: unknown key "when…" in rules[0]; write a space after "when:"`, true,
	},
	{
		"unknown key like no other", "log:\n  colour: red",
		`goblin.yaml:2: unknown key "colour" in log; known here: level, file`, true,
	},
	{
		"unknown key at the top", "server: {}",
		`goblin.yaml:1: unknown key "server" at the top level; did you mean "servers"?`, true,
	},
	{
		"key at the wrong level", "listen: 127.0.0.1:1",
		`goblin.yaml:1: unknown key "listen" at the top level; it belongs in "gateway"`, true,
	},
	{
		"unknown key deep inside", "servers:\n  files:\n    command: npx\n    tools: {alow: []}",
		`goblin.yaml:4: unknown key "alow" in tools of server "files"; did you mean "allow"?`, true,
	},
	{
		"key of other clients in YAML", "servers:\n  files:\n    command: npx\n    autoApprove: []",
		`goblin.yaml:4: unknown key "autoApprove" in server "files"; known here: command, args, env, cwd, inherit_env, url, type, headers, oauth, tags, disabled, timeout, call_timeout, startup_timeout, start, idle_timeout, isolation, era, roots, forward_meta, tools, prompts, resources, open_resources, overrides, max_result, watch, build`, true,
	},
	{
		"control characters in a key", "log:\n  \"\\e]0;x\\a\\u202e\": 1",
		`goblin.yaml:2: unknown key "\x1b]0;x\a\u202e" in log; known here: level, file`, true,
	},
	{
		"duplicate key", "log:\n  level: info\n  file: a\n  level: warn",
		`goblin.yaml:4: duplicate key "level" in log; first on line 2`, false,
	},
	{
		"duplicate server", "servers:\n  a: {command: x}\n  a: {command: y}",
		`goblin.yaml:3: duplicate key "a" in servers; first on line 2`, false,
	},
	{
		"duplicate section", "log: {}\nlog: {}",
		`goblin.yaml:2: duplicate key "log" at the top level; first on line 1`, false,
	},
	{
		"both names of the servers", "mcpServers: {}\nservers: {}",
		`goblin.yaml:2: "mcpServers" and "servers" are mutually exclusive; keep one of them`, true,
	},
	{
		"a key that is no text", "log:\n  ? [a]\n  : b",
		`goblin.yaml:2: a key of log must be text, not a list`, false,
	},
	{
		"an empty key", "log:\n  ~: b",
		`goblin.yaml:2: a key of log must be text, not empty`, false,
	},

	{"a file that is a list", "- a", `goblin.yaml:1: the file must be a mapping, not a list`, true},
	{"a file that is text", "hello", `goblin.yaml:1: the file must be a mapping, not text`, true},
	{"servers in a list", "servers: [a]", `goblin.yaml:1: "servers" must be a mapping, not a list`, true},
	{"a server that is text", "servers:\n  a: npx", `goblin.yaml:2: server "a" must be a mapping, not text`, true},
	{
		"text for a list", "servers: {a: {command: x, args: y}}",
		`goblin.yaml:1: "args" in server "a" must be a list, not text`, true,
	},
	{
		"a list for text", "servers: {a: {command: [x, y]}}",
		`goblin.yaml:1: "command" in server "a" must be text, not a list`, true,
	},
	{
		"a mapping in a list of text", "servers:\n  a:\n    command: x\n    args:\n      - b\n      - c: d",
		`goblin.yaml:6: "args[1]" in server "a" must be text, not a mapping`, true,
	},
	{
		"a number for text", "servers: {a: {command: 5}}",
		`goblin.yaml:1: "command" in server "a" must be text, not a number; put it in quotes`, true,
	},
	{
		"a boolean for text", "servers: {a: {command: x, cwd: true}}",
		`goblin.yaml:1: "cwd" in server "a" must be text, not true or false; put it in quotes`, true,
	},
	{
		"nothing for text", "servers:\n  a:\n    command:",
		`goblin.yaml:3: "command" in server "a" is empty; give it a value ("" for an empty text) or remove the key`, true,
	},
	{
		"nothing for a variable", "servers:\n  a:\n    command: x\n    env:\n      KEY:",
		`goblin.yaml:5: "KEY" in env of server "a" is empty; give it a value ("" for an empty text) or remove the key`, true,
	},
	{
		"a tag of one's own", "servers: {a: {command: !x y}}",
		`goblin.yaml:1: "command" in server "a" must be text, not a value with a tag; a text that begins with "!" needs quotes`, false,
	},
	{
		"text for a boolean", "servers: {a: {command: x, disabled: yes}}",
		`goblin.yaml:1: "disabled" in server "a" must be true or false, not text`, true,
	},
	{"text for a mapping", "gateway: none", `goblin.yaml:1: "gateway" must be a mapping, not text`, true},
	{
		"text for a number", "gateway: {page_size: many}",
		`goblin.yaml:1: "page_size" in gateway must be a whole number, not text`, true,
	},
	{
		"a fraction for a number", "gateway: {page_size: 1.5}",
		`goblin.yaml:1: "page_size" in gateway must be a whole number, not a fraction`, true,
	},
	{
		"a number out of range", "gateway: {page_size: 0}",
		`goblin.yaml:1: "page_size" in gateway must be from 1 to 1000000`, true,
	},
	{
		"text for a selection", "gateway: {meta_tools: all}",
		`goblin.yaml:1: "meta_tools" in gateway must be auto, true, false or a list of names, not text`, true,
	},
	{
		"fewer entries than none", "gateway:\n  meta_tools_above: -1",
		`goblin.yaml:2: "meta_tools_above" in gateway must be from 0 to 100000000`, true,
	},

	{
		"a duration without unit", "servers: {a: {command: x, timeout: 30}}",
		`goblin.yaml:1: "timeout" in server "a" must be a duration with a unit, such as "30s", not a number`, true,
	},
	{
		"a duration without unit, where there may be none", "servers: {a: {command: x, idle_timeout: 30}}",
		`goblin.yaml:1: "idle_timeout" in server "a" must be a duration with a unit, such as "30s", or off, not a number`, true,
	},
	{
		"days without unit", "gateway: {remember: 5}",
		`goblin.yaml:1: "remember" in gateway must be days such as "30d", or off, not "5"`, true,
	},
	{
		"no duration", "gateway: {linger: soon}",
		`goblin.yaml:1: "linger" in gateway must be a duration such as "500ms", "30s" or "5m", not "soon"`, true,
	},
	{
		"a negative duration", "gateway: {linger: -1s}",
		`goblin.yaml:1: "linger" in gateway must be a duration such as "500ms", "30s" or "5m", not "-1s"`, true,
	},
	{
		"a tool that Goblin does not have", "gateway: {meta_tools: [catalog_tools, serch_tools]}",
		`goblin.yaml:1: "meta_tools[1]" in gateway must be a known name, not "serch_tools"; did you mean "search_tools"?`, true,
	},
	{
		"a duration of nothing", "lua: {timeout: 0s}",
		`goblin.yaml:1: "timeout" in lua must be more than 0`, false,
	},
	{
		"a duration too long to count", "lua: {timeout: 99999999999h}",
		`goblin.yaml:1: "timeout" in lua must be a duration such as "500ms", "30s" or "5m", not "99999999999h"`, false,
	},
	{
		"no size", "lua: {memory: lots}",
		`goblin.yaml:1: "memory" in lua must be a size such as "64KiB" or "128MiB", not "lots"`, true,
	},
	{
		"a unit that is none", "lua: {memory: 64Mb}",
		`goblin.yaml:1: "memory" in lua must be a size such as "64KiB" or "128MiB", not "64Mb"`, true,
	},
	{
		"a fraction of a size", "lua: {memory: 1.5}",
		`goblin.yaml:1: "memory" in lua must be a size such as "64KiB" or "128MiB", not a fraction`, true,
	},
	{
		"a size too small", "gateway: {limits: {frame: 1}}",
		`goblin.yaml:1: "frame" in gateway.limits must be from 64KiB to 1024GiB`, true,
	},
	{
		"a size too large", "gateway: {limits: {frame: 9999999999GiB}}",
		`goblin.yaml:1: "frame" in gateway.limits must be a size such as "64KiB" or "128MiB", not "9999999999GiB"`, false,
	},
	{
		"a word that is none of few", "gateway: {pin: repot}",
		`goblin.yaml:1: "pin" in gateway must be off, report or strict, not "repot"; did you mean "report"?`, true,
	},
	{
		"a word like none of few", "tui: {theme: solarized}",
		`goblin.yaml:1: "theme" in tui must be auto, dark, light or none, not "solarized"`, true,
	},
	{
		"an unknown action", "tui:\n  keys: {reloda: R}",
		`goblin.yaml:2: unknown action "reloda" in tui.keys; did you mean "reload"?`, true,
	},
	{
		"an unknown key name", "tui:\n  keys:\n    reload: [R, alt+x]",
		`goblin.yaml:3: "reload" in tui.keys: "alt+x" uses Alt, which terminals send as Esc plus the key`, false,
	},
	{
		"a key that means something else", "tui: {keys: {sort: C-c}}",
		`goblin.yaml:1: "sort" in tui.keys: "C-c" always quits`, false,
	},
	{
		"two actions on one new key", "tui: {keys: {fold: f5, sort: f5}}",
		`goblin.yaml:1: "fold" in tui.keys has the key "f5", which "sort" already uses in Servers, Tools, Prompts, Resources, Logs, Usage, Saved and Home; choose another`, false,
	},
	{
		"an unknown action of forms", "tui:\n  keys: {form.submti: f5}",
		`goblin.yaml:2: unknown action "form.submti" in tui.keys; did you mean "form.submit"?`, false,
	},
	{
		"a letter where one types", "tui:\n  keys:\n    form.cancel: [f9, x]",
		`goblin.yaml:3: "form.cancel" in tui.keys: "x" types text in forms; use ctrl+ with a letter, or a key such as f5`, false,
	},
	{
		"a space where one types", "tui: {keys: {filter.keep: space}}",
		`goblin.yaml:1: "filter.keep" in tui.keys: "space" types text in the filter line; use ctrl+ with a letter, or a key such as f5`, false,
	},
	{
		"a key that moves in the text", "tui: {keys: {palette.run: right}}",
		`goblin.yaml:1: "palette.run" in tui.keys: "right" edits text in the palette; use ctrl+ with a letter, or a key such as f5`, false,
	},
	{
		"no key", "tui: {keys: {sort: ~}}",
		`goblin.yaml:1: "sort" in tui.keys is empty; write [] for no keys, or "~" for the key ~`, true,
	},
	{
		"a mapping for a key", "tui: {keys: {sort: [{}]}}",
		`goblin.yaml:1: "sort" in tui.keys must be a key or a list of keys, not a mapping`, true,
	},
	{
		"too many keys", "tui: {keys: {sort: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}",
		`goblin.yaml:1: "sort" in tui.keys has 9 keys; the maximum is 8`, true,
	},
	{
		"a boolean for a word", "gateway: {pin: false}",
		`goblin.yaml:1: "pin" in gateway must be off, report or strict, not true or false`, true,
	},

	{
		"neither command nor url", "servers:\n  a:\n    timeout: 3s",
		`goblin.yaml:2: server "a" needs "command" (a local program) or "url" (a remote server)`, true,
	},
	{
		"an empty server", "servers:\n  a:",
		`goblin.yaml:2: server "a" needs "command" (a local program) or "url" (a remote server)`, true,
	},
	{
		"both command and url", "servers:\n  a:\n    url: http://h\n    command: x",
		`goblin.yaml:4: server "a" has both "command" and "url"; keep one of them`, true,
	},
	{
		"an empty command", "servers: {a: {command: ' '}}",
		`goblin.yaml:1: "command" in server "a" is empty; name a program`, false,
	},
	{
		"type against url", "servers: {a: {url: http://h, type: stdio}}",
		`goblin.yaml:1: "type" in server "a" is stdio, but it has "url"; use http or sse`, true,
	},
	{
		"era against type", "servers: {a: {url: http://h, type: sse, era: modern}}",
		`goblin.yaml:1: "era" in server "a" is modern, but "type" is sse, which only older revisions have; use http or remove type`, false,
	},
	{
		"type against command", "servers: {a: {command: x, type: streamable-http}}",
		`goblin.yaml:1: "type" in server "a" is http, but it has "command"; use stdio or remove type`, true,
	},
	{
		"keys of a command with a url", "servers:\n  a:\n    url: http://h\n    args: []",
		`goblin.yaml:4: "args" in server "a" is for servers with "command"; this one has "url"`, true,
	},
	{
		"headers with a command", "servers:\n  a:\n    command: x\n    headers: {}",
		`goblin.yaml:4: "headers" in server "a" is for servers with "url"; this one has "command"`, true,
	},
	{
		"another scheme", "servers: {a: {url: 'ftp://s3cr3t@h'}}",
		`goblin.yaml:1: "url" in server "a" must begin with http:// or https://`, false,
	},
	{"no url", "servers: {a: {url: 'http://u:s3cr3t@h:p'}}", `goblin.yaml:1: "url" in server "a" is not a URL`, false},
	{"a url without host", "servers: {a: {url: 'http:///mcp'}}", `goblin.yaml:1: "url" in server "a" has no host`, false},
	{
		"a url with a fragment", "servers: {a: {url: 'http://h/#s3cr3t'}}",
		`goblin.yaml:1: "url" in server "a" must not have a "#" part`, false,
	},
	{
		"a url with a port beyond all", "servers: {a: {url: 'http://h:70000'}}",
		`goblin.yaml:1: "url" in server "a" has an invalid port; use 0 to 65535`, false,
	},
	{
		"a header name that is none", "servers:\n  a:\n    url: http://h\n    headers: {'a b': c}",
		`goblin.yaml:4: "a…" in headers of server "a" is not a valid HTTP header name`, false,
	},
	{
		"a header value with a line break", "servers:\n  a:\n    url: http://h\n    headers: {A: \"s3cr3t\\nB: c\"}",
		`goblin.yaml:4: "A" in headers of server "a" contains a line break or another control character`, false,
	},
	{
		"one header twice", "servers:\n  a:\n    url: http://h\n    headers: {x-key: a, X-Key: b}",
		`goblin.yaml:4: "headers" in server "a" has "X-Key" and "x-key", which are the same header`, false,
	},
	{
		"a variable name that is none", "servers: {a: {command: x, env: {A=B: c}}}",
		`goblin.yaml:1: "A…" in env of server "a" is not a valid environment variable name`, false,
	},
	{
		"a NUL", "servers: {a: {command: x, args: [\"a\\0\"]}}",
		`goblin.yaml:1: "args[0]" in server "a" contains a NUL character`, false,
	},
	{
		"a glob without end", "servers: {a: {command: x, tools: {deny: ['a[b']}}}",
		`goblin.yaml:1: "deny[0]" in tools of server "a" is not a valid pattern: "[" needs a closing "]", and "\" a character after it`, false,
	},
	{
		"an empty glob", "servers: {a: {command: x, tools: {deny: ['']}}}",
		`goblin.yaml:1: "deny[0]" in tools of server "a" is an empty pattern`, false,
	},

	{
		"an address without port", "gateway: {listen: localhost}",
		`goblin.yaml:1: "listen" in gateway must be host:port such as "127.0.0.1:7331"`, false,
	},
	{
		"only a port", "gateway: {listen: 7331}",
		`goblin.yaml:1: "listen" in gateway must be text, not a number; put it in quotes`, true,
	},
	{
		"a port that is none", "gateway: {listen: 'localhost:http'}",
		`goblin.yaml:1: "listen" in gateway has an invalid port; use 0 to 65535`, false,
	},
	{
		"all addresses without a token", "gateway:\n  listen: :7331",
		`goblin.yaml:2: "listen" in gateway can be reached from other machines, so gateway.auth_token is required; set it or listen on 127.0.0.1`, false,
	},
	{
		"an open address with an empty token", "gateway:\n  auth_token: ''\n  listen: 0.0.0.0:7331",
		`goblin.yaml:3: "listen" in gateway can be reached from other machines, so gateway.auth_token is required; set it or listen on 127.0.0.1`, false,
	},
	{
		"an open address with a bad token", "gateway:\n  auth_token: s3cr3t s3cr3t\n  listen: 0.0.0.0:7331",
		`goblin.yaml:2: "auth_token" in gateway must be visible ASCII characters without spaces`, false,
	},
	{
		"an origin with a path", "gateway: {allowed_origins: ['https://h/']}",
		`goblin.yaml:1: "allowed_origins[0]" in gateway must be an origin such as "https://app.example.com", without a path`, false,
	},
	{
		"any origin", "gateway: {allowed_origins: ['*']}",
		`goblin.yaml:1: "allowed_origins[0]" in gateway must be an origin such as "https://app.example.com", without a path`, false,
	},
	{
		"a root without uri", "gateway:\n  roots:\n    - name: x",
		`goblin.yaml:3: "roots[0]" in gateway needs "uri"`, true,
	},
	{
		"a root that is text", "gateway: {roots: [/srv]}",
		`goblin.yaml:1: "roots[0]" in gateway must be a mapping with "uri" and optionally "name", not text`, true,
	},
	{
		"a root that is no file", "gateway: {roots: [{uri: /srv}]}",
		`goblin.yaml:1: "uri" in gateway.roots[0] must be a URI such as "file:///home/me/project"`, false,
	},

	{
		"a variable without end", "servers: {a: {command: '${TOKEN'}}",
		`goblin.yaml:1: "command" in server "a" has "${" without "}"; write "$${" for a literal "${"`, false,
	},
	{
		"a variable of the shell", "servers: {a: {command: '${TOKEN%x}'}}",
		`goblin.yaml:1: "command" in server "a" has a "${…}" that is neither ${NAME} nor ${NAME:-default}; write "$${" for a literal "${"`, false,
	},
	{
		"a variable of editors", "servers: {a: {command: '${env:TOKEN}'}}",
		`goblin.yaml:1: "command" in server "a" has ${env:TOKEN}; write ${TOKEN}`, false,
	},
	{
		"endless defaults", "servers: {a: {command: '" + strings.Repeat("${A:-", 20) + strings.Repeat("}", 20) + "'}}",
		`goblin.yaml:1: "command" in server "a" has too deeply nested defaults`, false,
	},

	{
		"wrong indentation", "servers:\n  a:\n    command: x\n   args: []\n",
		`goblin.yaml:4: not valid YAML: did not find expected key; check the indentation`, false,
	},
	{
		"a tab", "servers:\n\ta: {}",
		`goblin.yaml:2: not valid YAML: a tab in the indentation; use spaces`, false,
	},
	{
		"an unclosed list", "log: {}\n\nlua: {}\nservers: {a: {command: x, args: [y}}\n",
		`goblin.yaml:4: not valid YAML: did not find expected ',' or ']'`, false,
	},
	{
		"a variable without quotes in a list", "servers: {a: {command: x, args: [${TOKEN}]}}",
		`goblin.yaml:1: not valid YAML: did not find expected ',' or ']'; inside [ ] and { }, quote a text with "${"`, false,
	},
	{
		"a broken first line", "servers: a: b",
		`goblin.yaml:1: not valid YAML: mapping values are not allowed in this context`, false,
	},
	{
		"an unknown alias", "log: {}\nservers: *nobody",
		`goblin.yaml:2: not valid YAML: unknown anchor; quote a text that begins with "*"`, false,
	},
	{"not text at all", "servers: \xff\xfe", `goblin.yaml:1: not valid YAML: invalid leading UTF-8 octet`, false},
	{
		"two documents", "log: {}\n---\nlua: {}",
		`goblin.yaml:2: a second YAML document begins here; a config is one document`, false,
	},
	{
		"an alias within itself", "servers: &a\n  b: *a",
		`goblin.yaml:2: the alias *a contains itself`, false,
	},
	{
		"a merge of text", "servers:\n  a:\n    <<: x\n    command: y",
		`goblin.yaml:3: "<<" in server "a" must be a mapping, not text`, false,
	},
}

func TestEveryMistakeIsToldWithItsLine(t *testing.T) {
	t.Parallel()
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("goblin.yaml", []byte(m.src), env)
			require.Nil(t, cfg)
			var list *config.Errors
			require.ErrorAs(t, err, &list)
			require.Equal(t, m.want, err.Error())
			require.NotContains(t, err.Error(), "s3cr3t")
		})
	}
}

func TestJSONMayHaveCommentsAndCommasBehindTheLast(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("c.json", []byte("\ufeff// mine\n{\"mcpServers\": {\n  /* the first */ \"a\": {\"command\": \"x\", \"args\": [\"// no comment\",],},\n},}\n"), env)
	require.NoError(t, err)
	require.Equal(t, []string{"// no comment"}, cfg.Servers[0].Args)

	_, err = config.Parse("c.json", []byte("// mine\n{\"gateway\": {\n  \"linger\": \"x\", // a mistake\n}}"), env)
	require.ErrorContains(t, err, `c.json:3: "linger" in gateway must be a duration`)
}

func TestMistakesOfAJSONFile(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{
			"syntax", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" x}\n  }\n}",
			`c.json:3: not valid JSON: invalid character 'x' after object value (expecting ',' or '}')`, false,
		},
		{"a bracket too many", "{\"mcpServers\": ]\n}", `c.json:1: not valid JSON: invalid character ']' at start of value`, false},
		{"cut off", "{\"mcpServers\": {\n\"a\":\n", `c.json:2: not valid JSON: unexpected end of file`, false},
		{"something after it", "{}\n{}", `c.json:2: not valid JSON: invalid character '{' after top-level value`, false},
		{"a list", "[]", `c.json:1: the file must be a mapping, not a list`, false},
		{
			"unknown key of a section", "{\"gateway\": {\"lsten\": \"x\"}}",
			`c.json:1: unknown key "lsten" in gateway; did you mean "listen"?`, false,
		},
		{"too deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `c.json:1: not valid JSON: nested too deeply`, false},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("c.json", []byte(m.src), env)
			require.EqualError(t, err, m.want)
		})
	}
}

func TestAllMistakesAreToldInOneRunByLine(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("goblin.yaml", []byte(`
gateway:
  pin: maybe
  listen: 0.0.0.0:1
servers:
  a: {comand: x}
  b: {command: x, timeout: 5, args: y}
tu: {}
`), env)
	require.EqualError(t, err, `goblin.yaml:3: "pin" in gateway must be off, report or strict, not "maybe"
goblin.yaml:4: "listen" in gateway can be reached from other machines, so gateway.auth_token is required; set it or listen on 127.0.0.1
goblin.yaml:6: unknown key "comand" in server "a"; did you mean "command"?
goblin.yaml:7: "timeout" in server "b" must be a duration with a unit, such as "30s", not a number
goblin.yaml:7: "args" in server "b" must be a list, not text
goblin.yaml:8: unknown key "tu" at the top level; did you mean "tui"?`)
}

func TestMistakesAreBounded(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	for i := range 5000 {
		src.WriteString("x" + strings.Repeat("y", i%7) + strings.Repeat("z", i/7) + ": 1\n")
	}
	_, err := config.Parse("goblin.yaml", []byte(src.String()), env)
	var list *config.Errors
	require.ErrorAs(t, err, &list)
	require.Len(t, list.Problems, 201)
	require.Equal(t, "too many mistakes; the rest is not shown", list.Problems[200].Text)
}

func TestExcessIsRefused(t *testing.T) {
	t.Parallel()
	bomb := "servers:\n  s: &a0 {command: x}\n"
	for i := range 12 {
		prev := "*a" + string(rune('0'+i))
		if i >= 9 {
			prev = "*b" + string(rune('0'+i-9))
		}
		name := "&a" + string(rune('0'+i+1))
		if i+1 >= 9 {
			name = "&b" + string(rune('0'+i+1-9))
		}
		bomb += "  s" + strings.Repeat("x", i+1) + ": " + name + " [" + strings.Repeat(prev+", ", 9) + prev + "]\n"
	}
	long := "servers:\n  a:\n    command: x\n    args:\n      - &v " + strings.Repeat("v", 1<<20) + "\n" +
		strings.Repeat("      - *v\n", 100)
	for name, c := range map[string]struct {
		src  string
		env  func(string) (string, bool)
		want string
	}{
		"a large file":   {strings.Repeat("#", 4<<20+1), env, "goblin.yaml: is larger than 4MiB"},
		"an alias bomb":  {bomb, env, "goblin.yaml:7: the file's aliases expand to too much text; use fewer"},
		"copied text":    {long, env, "goblin.yaml:22: the file's aliases expand to too much text; use fewer"},
		"deep YAML":      {"servers: " + strings.Repeat("[", 100_000), env, "goblin.yaml:1: not valid YAML: exceeded max depth of 10000"},
		"a long value":   {"log: {file: '" + strings.Repeat("${V}", 20) + "'}", huge, `goblin.yaml:1: "file" in log is longer than 1 MiB with its variables expanded`},
		"many variables": {"gateway: {allowed_origins: [" + strings.Repeat("'x${V}',", 200) + "]}", huge, "brings the file's expanded variables above 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("goblin.yaml", []byte(c.src), c.env)
			var list *config.Errors
			require.ErrorAs(t, err, &list)
			require.Contains(t, list.Problems[len(list.Problems)-1].String()+list.Error(), c.want)
			require.Less(t, len(err.Error()), 100_000)
		})
	}
}

func huge(string) (string, bool) { return strings.Repeat("v", 128<<10), true }

func TestNoMistakeHoldsASecret(t *testing.T) {
	t.Parallel()
	values := []string{"'${TOKEN}'", "'s3cr3t ${'", "'${TOKEN-s3cr3t}'", "'${BREAK}'", `"\0s3cr3t"`, "'s3cr3t ${NONE}'", "[s3cr3t]"}
	places := []string{
		"servers: {a: {command: %, tools: {allow: [%]}}}",
		"servers: {a: {command: x, args: [%], env: {K: %}, cwd: %}}",
		"servers: {a: {url: %, headers: {K: %}}}",
		"servers: {a: {url: 'http://u:s3cr3t@h:x/', headers: {K: %}}}",
		"servers: {a: {command: x, timeout: '${TOKEN}', type: '${TOKEN}'}}",
		"gateway: {auth_token: %, listen: %}",
		"gateway: {allowed_origins: [%], roots: [{uri: %}]}",
		"log: {file: %}",
	}
	told := func(src string) (text string, mistaken bool) {
		cfg, err := config.Parse("goblin.yaml", []byte(src), env)
		var list *config.Errors
		if errors.As(err, &list) {
			for _, w := range list.Warnings {
				text += w.String()
			}
			return text + err.Error(), true
		}
		for _, w := range cfg.Warnings {
			text += w.String()
		}
		for _, s := range cfg.Servers {
			text += s.Problem
		}
		return text, false
	}
	for _, at := range places {
		for _, v := range values {
			src := strings.ReplaceAll(at, "%", v)
			text, _ := told(src)
			require.NotContains(t, text, "s3cr3t", src)
		}
	}
	for _, src := range []string{ // YAML or Goblin could read them differently
		"servers: {a: {url: 'http://h/', headers: s3cr3t}}",
		"servers: {a: {url: 'http://h/', headers: {Authorization: [s3cr3t]}}}",
		"servers: {a: {command: x, env: s3cr3t}}",
		"servers: {a: {command: x, env: {KEY: [s3cr3t]}}}",
		"servers: {a: {url: 'http://u:s3cr3t@/mcp'}}",
		"servers: {a: {url: 'ftp://u:s3cr3t@h/mcp'}}",
		"servers: {a: {url: 'http://u:s3cr3t@h:port/%zz'}}",
		"gateway: {auth_token: *s3cr3t}",
		"gateway: {auth_token: !s3cr3t x}",
		"servers: {a: {command: x, env: {KEY: !!s3cr3t}}}",
		"servers: {a: {command: x, env: {KEY=s3cr3t}}}",
		"servers: {a: {url: 'http://h/', headers: {Authorization, Bearer s3cr3t}}}",
		"servers: {a: {url: 'http://h/', headers: {'Authorization: Bearer s3cr3t'}}}",
		"gateway: {auth_token s3cr3t}",
		"servers: {a: {command: x, env: {ghp_16C7e42F292c6912E7710cs3cr3t}}}",
		`servers: {a: {url: 'http://h/', headers: {X: "s3cr3t\nY"}}}`,
		`servers: {a: {url: 'http://h/', headers: {X: "s3cr3t\x7f"}}}`,
	} {
		text, mistaken := told(src)
		require.True(t, mistaken, src)
		require.NotContains(t, text, "s3cr3t", src)
	}
}
