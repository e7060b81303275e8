//go:build e2e

package inputs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// patient is a world with one server in its config, called "it".
type patient struct {
	*e2e.World
	entry  []string // lines of the entry
	json   bool     // the config is a JSON file
	linger string   // of the daemon; "0s" by default
	before string   // lines of the config before the servers
}

func newPatient(t *testing.T, json bool, entry ...string) *patient {
	t.Helper()
	p := &patient{World: e2e.NewWorld(t), entry: entry, json: json}
	p.Written = true
	if json {
		p.Config = filepath.Join(p.Dir, "goblin.json")
	}
	script := e2e.Marshal(e2e.Obj{"name": "it", "tools": []e2e.Obj{e2e.Tool("stat")}})
	require.NoError(t, os.WriteFile(p.script(), script, 0o600))
	p.save()
	return p
}

func (p *patient) script() string { return filepath.Join(p.Dir, "script.json") }

// save writes the config. $SERVER stands for the command line of a working server.
func (p *patient) save() {
	p.T.Helper()
	text := p.before + "servers:\n  it:\n    " + strings.Join(p.entry, "\n    ") + "\ngateway: {startup_wait: 20s, linger: " + cmp.Or(p.linger, "0s") + "}\n"
	if p.json {
		text = `{"mcpServers": {"it": {` + strings.Join(p.entry, ", ") + `}}}`
	}
	text = strings.ReplaceAll(text, "$SERVER", e2e.TestServer+" "+p.script())
	require.NoError(p.T, os.WriteFile(p.Config, []byte(text), 0o600))
}

// set replaces the line of a key, or adds one.
func (p *patient) set(line string) {
	p.T.Helper()
	key, _, ok := strings.Cut(line, ":")
	require.True(p.T, ok, line)
	kept := p.entry[:0:0]
	for _, l := range p.entry {
		if !strings.HasPrefix(l, key+":") {
			kept = append(kept, l)
		}
	}
	p.entry = append(kept, line)
	p.save()
}

// finding is the doctor's report about the server.
type finding struct {
	State  string
	Checks []struct {
		Name, State, Text, Fix string
		Lines                  []string
	}
}

func (p *patient) doctor() finding {
	p.T.Helper()
	out := p.Run("doctor", "--json", "it")
	var all struct{ Servers []finding }
	require.NoError(p.T, json.Unmarshal([]byte(out.Stdout), &all), "%s%s", out.Stdout, out.Stderr)
	require.Len(p.T, all.Servers, 1)
	return all.Servers[0]
}

// worst returns the last complaint, which stops the server.
func (f finding) worst(t *testing.T) (text, fix string, lines []string) {
	t.Helper()
	for i := len(f.Checks) - 1; i >= 0; i-- {
		if c := f.Checks[i]; c.State != "ok" {
			return c.Text, c.Fix, c.Lines
		}
	}
	t.Fatalf("no complaint: %+v", f)
	return "", "", nil
}

// needs returns an entry whose server exits with a text on stderr unless a condition of
// sh holds.
func needs(condition, text string) []string {
	line := fmt.Sprintf("%s || { printf '%%b\\n' %s >&2; exit 1; }; exec $SERVER", condition, shellQuoted(text))
	return []string{"command: sh", "args: [\"-c\", " + string(e2e.Marshal(line)) + "]"}
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// added matches the fix that adds an entry to the config of the server.
var added = regexp.MustCompile(`add to "it": (.+)$`)

func TestAVariableThatIsNotPassedOnIsNamedWithTheEntryThatPassesIt(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"required":           "Error: MY_API_KEY is required\n    at main (/srv/x.js:1:2)\n    at a (/srv/x.js:1:2)\n    at b (/srv/x.js:1:2)\n    at c (/srv/x.js:1:2)",
		"missing":            "Missing environment variable: MY_API_KEY",
		"not set":            "MY_API_KEY not set",
		"must be set":        "fatal: MY_API_KEY must be set",
		"please":             "Please set MY_API_KEY before you start this server",
		"the option":         "Error: Environment variable MY_API_KEY is not defined",
		"python":             "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    os.environ['MY_API_KEY']\nKeyError: 'MY_API_KEY'",
		"node":               "/srv/x.js:3\n  throw new Error('x')\n  ^\n\nError: process.env.MY_API_KEY is undefined\n    at x (y:1:2)\n\nNode.js v22.1.0",
		"go":                 `env: required environment variable "MY_API_KEY" is not set`,
		"sh":                 "sh: 1: MY_API_KEY: parameter not set",
		"zod":                "ZodError: [\n  {\n    \"path\": [\n      \"MY_API_KEY\"\n    ],\n    \"message\": \"Required\"\n  }\n]",
		"pydantic":           "pydantic_core.ValidationError: 1 validation error for Settings\nmy_api_key\n  Field required [type=missing]",
		"in a log":           "2026-01-02T03:04:05Z ERROR config: MY_API_KEY missing",
		"without a sentence": "no credentials, see MY_API_KEY",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false, needs(`[ -n "$MY_API_KEY" ]`, text)...)
			p.Env = append(p.Env, "MY_API_KEY=secret-12345")
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, "MY_API_KEY is set in your shell, but Goblin does not pass it on")
			require.NotContains(t, cause+fix, "secret-12345")
			entry := added.FindStringSubmatch(fix)
			require.NotNil(t, entry, fix)
			require.Equal(t, `env: {MY_API_KEY: "${MY_API_KEY}"}`, entry[1])
			p.set(entry[1])
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

func TestTheFixOfAMissingVariableFitsTheConfig(t *testing.T) {
	t.Parallel()
	condition := `[ -n "$MY_API_KEY" ]`
	yaml := needs(condition, "MY_API_KEY is required")
	for name, tt := range map[string]struct {
		json  bool
		entry []string
		env   []string
		cause string
		fix   string
	}{
		"JSON": {
			true,
			[]string{`"command": "sh"`, `"args": ["-c", "[ -n \"$MY_API_KEY\" ] || { echo MY_API_KEY is required >&2; exit 1; }; exec $SERVER"]`},
			[]string{"MY_API_KEY=secret-12345"},
			"is set in your shell", `add to "it": "env": {"MY_API_KEY": "${MY_API_KEY}"}`,
		},
		"other variables":      {false, append(yaml, "env: {A: b}"), []string{"MY_API_KEY=secret-12345"}, "is set in your shell", `add to env of "it": MY_API_KEY: "${MY_API_KEY}"`},
		"set nowhere":          {false, yaml, nil, "MY_API_KEY is not set", `set MY_API_KEY, then add to "it": env: {MY_API_KEY: "${MY_API_KEY}"}`},
		"passed, but empty":    {false, append(yaml, `env: {MY_API_KEY: "${OTHER:-}"}`), nil, "MY_API_KEY is empty", `give MY_API_KEY a value in env of "it"`},
		"inherited, but unset": {false, append(yaml, "inherit_env: [MY_API_KEY]"), nil, "MY_API_KEY is not set", "set MY_API_KEY"},
		"all are inherited":    {false, append(yaml, "inherit_env: true"), nil, "MY_API_KEY is not set", "set MY_API_KEY"},
		"in a container": {
			false,
			[]string{"command: ./docker", "args: [run, -i, image]"},
			[]string{"MY_API_KEY=secret-12345"},
			"is set in your shell", `add to "it": env: {MY_API_KEY: "${MY_API_KEY}"}, and to args, before the image: "-e", "MY_API_KEY"`,
		},
		"outside of a container": {
			false,
			[]string{"command: ./docker", "args: [run, -i, image]", "env: {MY_API_KEY: x}"},
			nil,
			"MY_API_KEY is passed to docker, but not into the container", `add to args of "it", before the image: "-e", "MY_API_KEY"`,
		},
		"two": {
			false, needs(condition, "A_TOKEN and MY_API_KEY must be set"),
			[]string{"MY_API_KEY=secret-12345"},
			"MY_API_KEY is set in your shell, but Goblin does not pass it on, and A_TOKEN is not set",
			`set A_TOKEN, then add to "it": env: {MY_API_KEY: "${MY_API_KEY}", A_TOKEN: "${A_TOKEN}"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, tt.json, tt.entry...)
			p.Env = append(p.Env, tt.env...)
			e2e.WriteProgram(t, filepath.Join(p.Dir, "docker"), "#!/bin/sh\necho 'Error: MY_API_KEY is required' >&2\nexit 1\n")
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.Equal(t, tt.fix, fix)
		})
	}
}

// The reason is determined when the server starts, so calls and the status contain it,
// too.
func TestCallsAndTheStatusNameTheMissingVariable(t *testing.T) {
	t.Parallel()
	p := newPatient(t, false, needs("false", "MY_API_KEY is required")...)
	p.Env = append(p.Env, "MY_API_KEY=secret-12345")
	p.linger, p.AllowDaemon = "60s", true
	p.save()
	const cause, fix = "MY_API_KEY is set in your shell, but Goblin does not pass it on", `add to "it": env: {MY_API_KEY: "${MY_API_KEY}"}`
	out := p.Run("call", "it_stat")
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, cause)
	require.Contains(t, out.Stderr, fix)

	c := p.Bridged()
	c.Names("tools")
	status := p.Succeeds("status")
	require.Contains(t, status, cause)
	require.Contains(t, status, fix)
}

func TestPrintedCommandsHaveTheServersEnvironmentAndNoSecret(t *testing.T) {
	t.Parallel()
	p := newPatient(t, false,
		"command: sh", `args: ["-c", 'echo "it'"'"'s broken"; env | grep -v "^_=\|^PWD=\|^SHLVL=" >&2; echo "$1" >&2; exit 3', sh, "${GIVEN}"]`,
		`env: {MY_API_KEY: "${GIVEN}", LITERAL: "a b$c", NODE_ENV: production}`, "inherit_env: [LC_ALL]")
	p.Env = append(p.Env, "GIVEN=secret-12345", "OTHER_TOKEN=secret-67890", "LC_ALL=C")
	p.entry[1] = "args: [\"-c\", " + string(e2e.Marshal(`env | grep -v "^_=\|^PWD=\|^SHLVL=\|^OLDPWD=" | sort >&2; echo "it's $1" >&2; exit 3`)) + ", sh, \"${GIVEN}\"]"
	p.save()
	_, fix, lines := p.doctor().worst(t)
	_, command, ok := strings.Cut(fix, "run it yourself to see the full error: ")
	require.True(t, ok, fix)
	require.NotContains(t, fix, "secret-")
	cmd := exec.Command("sh", "-c", command)
	cmd.Env, cmd.Dir = p.Environ(), p.Dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.ErrorContains(t, cmd.Run(), "exit status 3")
	said := stderr.String()
	require.Contains(t, said, "it's secret-12345\n")
	require.NotContains(t, said, "secret-67890")
	require.Contains(t, said, "LITERAL=a b$c\n")
	require.ElementsMatch(t, lines, strings.Split(strings.TrimSpace(strings.ReplaceAll(said, "secret-12345", "[hidden]")), "\n"))
}

func TestTheLinesThatNameTheErrorComeFirst(t *testing.T) {
	t.Parallel()
	frames := strings.Repeat("    at f (node:internal/x:1:2)\n", 30)
	p := newPatient(t, false, needs("false", "starting\nnode:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/x.js'\n"+frames+"\nNode.js v22.1.0")...)
	out := p.Run("doctor", "it")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Regexp(t, `(?m)^  broken  runs     the process exited: exit status 1; output: Error: Cannot find module '/srv/x.js'\n +\| Error: Cannot find module '/srv/x.js'$`, out.Stdout)
	require.LessOrEqual(t, strings.Count(out.Stdout, "| "), 20)
	require.Contains(t, out.Stdout, "fix: correct the path in args")
}

func TestAProgramThatIsNoServerOverStdioIsExplained(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		cause  string
		fix    string
	}{
		"it serves HTTP":       {"echo 'INFO: Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)' >&2; exec sleep 60", "did not answer initialize within 1s", "it serves HTTP at http://127.0.0.1:8000; add its flag for stdio to args"},
		"it waits for a key":   {"echo 'MY_API_KEY not set, waiting for one' >&2; exec sleep 60", "MY_API_KEY is set in your shell", `add to "it": env: {MY_API_KEY: "${MY_API_KEY}"}`},
		"it refuses for a key": {`read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"MY_API_KEY is required"}}'; exec cat >/dev/null`, "MY_API_KEY is set in your shell", `add to "it": env: {MY_API_KEY: "${MY_API_KEY}"}`},
		"its port is taken":    {"echo 'Error: listen EADDRINUSE: address already in use :::3000' >&2; exit 1", "EADDRINUSE", "stop the program that uses the port"},
		"it prints its help":   {"echo 'usage: x [-h] --root ROOT'; exit 2", "output: usage: x [-h] --root ROOT", "run it yourself to see the full error: env -i "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false, "command: sh", "args: [\"-c\", "+string(e2e.Marshal(tt.script))+"]", "era: legacy")
			if strings.Contains(tt.script, "sleep") {
				p.set("startup_timeout: 1s")
			}
			p.Env = append(p.Env, "MY_API_KEY=secret-12345")
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.Contains(t, fix, tt.fix)
		})
	}
}

func TestFixesOfACommandThatCannotRunWork(t *testing.T) {
	t.Parallel()
	t.Run("it is not executable", func(t *testing.T) {
		t.Parallel()
		p := newPatient(t, false, "command: ./my server")
		program := filepath.Join(p.Dir, "my server")
		e2e.WriteProgram(t, program, "#!/bin/sh\nexec "+e2e.TestServer+" "+p.script()+"\n")
		require.NoError(t, os.Chmod(program, 0o600))
		_, fix, _ := p.doctor().worst(t)
		command, ok := strings.CutPrefix(fix, "run: ")
		require.True(t, ok, fix)
		require.NoError(t, exec.Command("sh", "-c", command).Run())
		require.Equal(t, "ok", p.doctor().State)
	})
	for _, json := range []bool{false, true} {
		t.Run(fmt.Sprintf("it is in a folder that is not in PATH, JSON: %v", json), func(t *testing.T) {
			t.Parallel()
			entry := "command: only-here"
			if json {
				entry = `"command": "only-here"`
			}
			p := newPatient(t, json, entry)
			bin := filepath.Join(p.Dir, "home/.local/bin")
			require.NoError(t, os.MkdirAll(bin, 0o700))
			e2e.WriteProgram(t, filepath.Join(bin, "only-here"), "#!/bin/sh\nexec "+e2e.TestServer+" "+p.script()+"\n")
			_, fix, _ := p.doctor().worst(t)
			line := added.FindStringSubmatch(fix)
			require.NotNil(t, line, fix)
			p.set(line[1])
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

// peers are servers of both transports at their usual paths.
func peers() http.Handler {
	s := mcpserver.NewMCPServer("peer", "1", mcpserver.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("stat"), nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpserver.NewStreamableHTTPServer(s))
	mux.Handle("/old/", mcpserver.NewSSEServer(s, mcpserver.WithStaticBasePath("/old")))
	mux.Handle("/deep/mcp", mcpserver.NewStreamableHTTPServer(s))
	mux.Handle("/slash/", mcpserver.NewStreamableHTTPServer(s))
	mux.HandleFunc("/slash", http.NotFound)
	mux.HandleFunc("/docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html>docs</html>")
	})
	return mux
}

// setting matches a fix that sets a key of the server.
var setting = regexp.MustCompile(`set ((?:type|url): \S+) in "it"`)

func TestAWrongTypeOrPathIsFoundAndTheFixWorks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path  string
		more  string
		cause string
		fix   string
	}{
		"SSE, called http":       {"/old/sse", "type: http", "the server uses SSE, the transport of 2024-11-05, but type is http", "type: sse"},
		"HTTP, called sse":       {"/mcp", "type: sse", "the server uses Streamable HTTP, but type is sse", "type: http"},
		"no path":                {"", "", "HTTP 404 Not Found", "url: %s/mcp"},
		"the wrong end":          {"/deep/sse", "", "HTTP 404 Not Found", "url: %s/deep/mcp"},
		"without its end":        {"/deep", "", "HTTP 404 Not Found", "url: %s/deep/mcp"},
		"a slash too much":       {"/mcp/", "", "HTTP 404 Not Found", "url: %s/mcp"},
		"a slash too little":     {"/slash", "", "HTTP 404 Not Found", "url: %s/slash/"},
		"the path of a web page": {"/docs", "", "web page", "url: %s/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(peers())
			t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
			p := newPatient(t, false, "url: "+web.URL+tt.path)
			if tt.more == "type: sse" {
				p.set("startup_timeout: 3s") // the stream stays open without a message
			}
			if tt.more != "" {
				p.set(tt.more)
			}
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			entry := setting.FindStringSubmatch(fix)
			require.NotNil(t, entry, fix)
			want := tt.fix
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, web.URL)
			}
			require.Equal(t, want, entry[1])
			p.set(entry[1])
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

func answers(code int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestTheCauseOfAnHTTPErrorIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		cause  string
		fix    string
	}{
		"not found":           {answers(404, "Content-Type: text/plain", "Not Found"), "HTTP 404 Not Found", "fix the path in url"},
		"its own words":       {answers(403, "Content-Type: application/json", `{"error": {"message": "no rights for team x"}}`), "HTTP 403 Forbidden: no rights for team x", "permissions"},
		"in plain text":       {answers(400, "Content-Type: text/plain", "X-Team is missing\n"), "HTTP 400 Bad Request: X-Team is missing", "url"},
		"too many requests":   {answers(429, "Retry-After: 60", ""), "HTTP 429 Too Many Requests", "try again in 60"},
		"is failing":          {answers(503, "", ""), "HTTP 503 Service Unavailable", "is failing"},
		"a page of the proxy": {answers(502, "Content-Type: text/html", "<html>x</html>"), "HTTP 502 Bad Gateway", "is failing"},
		"to a login page":     {answers(302, "Location: https://accounts.example/login?next=x", ""), "HTTP 302 Found to https://accounts.example/login; Goblin doesn't follow it, because headers and logins are for", "login page"},
		"not a message":       {answers(200, "Content-Type: application/json", "nothing"), `sent no JSON-RPC answer: "nothing"`, "check that url is the address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(tt.answer)
			t.Cleanup(web.Close)
			p := newPatient(t, false, "url: "+web.URL+"/mcp")
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.Equal(t, 1, strings.Count(cause, strings.Fields(tt.cause)[0]), cause)
			require.Contains(t, fix, tt.fix)
		})
	}
}

func TestA401WithoutAChallengeAsksForAKeyFirst(t *testing.T) {
	t.Parallel()
	inner := peers()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-12345" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	p := newPatient(t, false, "url: "+web.URL+"/mcp")
	cause, fix, _ := p.doctor().worst(t)
	require.Contains(t, cause, "HTTP 401 Unauthorized without WWW-Authenticate")
	key := regexp.MustCompile(`headers: \{Authorization: "Bearer \$\{(\w+)\}"\}`).FindStringSubmatch(fix)
	require.NotNil(t, key, fix)
	login := strings.Index(fix, "goblin login it")
	require.Greater(t, login, strings.Index(fix, key[0]), "the login is the second line")
	p.Env = append(p.Env, key[1]+"=secret-12345")
	p.set(key[0])
	require.Equal(t, "ok", p.doctor().State)

	p.Env[len(p.Env)-1] = key[1] + "=secret-67890"
	cause, fix, _ = p.doctor().worst(t)
	require.Contains(t, cause, "the config's Authorization header was refused: HTTP 401 Unauthorized")
	require.Contains(t, fix, "headers: Authorization")

	p.set(strings.Replace(key[0], "Authorization", "X-Api-Key", 1))
	cause, fix, _ = p.doctor().worst(t)
	require.Contains(t, cause, "the configured X-Api-Key header was refused (HTTP 401)")
	require.Contains(t, fix, "headers: X-Api-Key")
}

func TestWhatAShellWouldExpandIsReportedWithWhatToWrite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		line string // in the entry of a server that prints its arguments and variables
		what string
		fix  string
		want string // what the server gets with the fix
	}{
		"a home":                 {`args: ["~/notes"]`, "~", "${HOME}/notes", "$HOME/notes"},
		"a home behind a flag":   {`args: ["--root=~/notes"]`, "~", "${HOME}/notes", "$HOME/notes"},
		"the variable":           {`args: ["$HOME/notes"]`, "$HOME", "${HOME}/notes", "$HOME/notes"},
		"that of Windows":        {`args: ['%USERPROFILE%\notes']`, "%USERPROFILE%", `${USERPROFILE}\\notes`, ""},
		"in env":                 {`env: {ROOT: "~/notes"}`, "~", "${HOME}/notes", "$HOME/notes"},
		"a variable in env":      {`env: {ROOT: $USER_ROOT}`, "$USER_ROOT", "${USER_ROOT}", "/data"},
		"a path in a list":       {`env: {ROOT: "/bin:~/notes"}`, "~", "${HOME}/notes", "$HOME/notes"},
		"in a header":            {"headers: {X-Key: $USER_ROOT}", "$USER_ROOT", "${USER_ROOT}", ""},
		"the volume of a docker": {`args: [-v, "~/notes:/notes"]`, "~", "${HOME}/notes", "$HOME/notes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := "command: ./show"
			if strings.HasPrefix(tt.line, "headers") {
				start = "url: http://127.0.0.1:1/mcp"
			}
			p := newPatient(t, false, start, tt.line)
			p.Env = append(p.Env, "USER_ROOT=/data")
			e2e.WriteProgram(t, filepath.Join(p.Dir, "show"), "#!/bin/sh\necho \"got $* $ROOT\" >&2\nexec "+e2e.TestServer+" "+p.script()+"\n")
			warning := p.Run("validate")
			require.Zero(t, warning.Code)
			require.Regexp(t, `goblin\.yaml:4: warning: .*`+regexp.QuoteMeta(fmt.Sprintf(`%q is not expanded; write "%s"`, tt.what, tt.fix)), warning.Stderr)
			var found bool
			for _, c := range p.doctor().Checks {
				if strings.Contains(c.Text, fmt.Sprintf("%q is not expanded", tt.what)) {
					require.Equal(t, "warning", c.State)
					require.Equal(t, `write "`+tt.fix+`"`, c.Fix)
					found = true
				}
			}
			require.True(t, found)
			if tt.want == "" {
				return
			}
			wrong := strings.Split(tt.fix, "}")[1]
			p.entry[1] = strings.Replace(p.entry[1], tt.what+wrong, tt.fix, 1)
			p.entry[1] = strings.Replace(p.entry[1], "ROOT: ${USER_ROOT}", `ROOT: "${USER_ROOT}"`, 1)
			p.save()
			require.Equal(t, "ok", p.doctor().State, p.entry)
		})
	}
}

func TestNothingIsReportedWhereAShellOrAnotherMachineExpands(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"a script":        `["-c", "ls ~/x $HOME/y; exec $SERVER"]`,
		"another machine": `["-c", "exec $SERVER", "me@host:~/x"]`,
		"a price":         `["-c", "exec $SERVER", "costs $5", "a~b", "100%", "$"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false, "command: sh", "args: "+args)
			require.NotContains(t, p.Run("validate").Stderr, "not expanded")
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

func TestEachMissingValueIsAComplaintOfItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("secrets", func(t *testing.T) {
		t.Parallel()
		p := newPatient(t, false, "command: sh", `args: ["-c", "exec $SERVER"]`, `env: {A: "${keyring:one}", B: "${keyring:two}"}`)
		validated := p.Run("validate")
		require.Zero(t, validated.Code)
		found := p.doctor()
		require.Len(t, found.Checks, 2)
		for i, name := range []string{"one", "two"} {
			require.Contains(t, validated.Stderr, fmt.Sprintf("goblin.yaml:5: warning: server \"it\": ${keyring:%s} is not set; run: goblin secret set %s\n", name, name))
			require.Contains(t, found.Checks[i].Text, "${keyring:"+name+"}")
			require.Equal(t, "run: goblin secret set "+name, found.Checks[i].Fix)
			out := p.RunInput("secret-12345\n", strings.Fields(strings.TrimPrefix(found.Checks[i].Fix, "run: goblin "))...)
			require.Zero(t, out.Code, out.Stderr)
		}
		require.NotContains(t, p.Run("validate").Stderr, "keyring")
		require.Equal(t, "ok", p.doctor().State)
	})
	t.Run("variables", func(t *testing.T) {
		t.Parallel()
		p := newPatient(t, false, "command: sh", `args: ["-c", "exec $SERVER"]`, `env: {A: "${ONE}", B: "${TWO}"}`)
		validated := p.Run("validate")
		found := p.doctor()
		require.Len(t, found.Checks, 2)
		for i, name := range []string{"ONE", "TWO"} {
			require.Contains(t, validated.Stderr, "${"+name+"} is not set")
			require.Contains(t, found.Checks[i].Text, "${"+name+"} is not set")
			require.Equal(t, "set it or write ${"+name+":-default}", found.Checks[i].Fix)
			p.Env = append(p.Env, name+"=x")
		}
		require.Equal(t, "ok", p.doctor().State)
	})
}
