//go:build e2e

package inputs

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// withEnvFile adds an env_file with one variable to the config.
func (p *patient) withEnvFile() {
	p.T.Helper()
	require.NoError(p.T, os.WriteFile(filepath.Join(p.Dir, "vars.env"), []byte("MY_API_KEY=secret-12345\nEMPTY=\n"), 0o600))
	p.before = "env_file: vars.env\n"
	p.save()
}

func TestAVariableOfTheEnvFileIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"reported missing": "MY_API_KEY is required",
		"mentioned":        "no credentials, see MY_API_KEY",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false, needs(`[ -n "$MY_API_KEY" ]`, text)...)
			p.withEnvFile()
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, "MY_API_KEY is set in env_file, but Goblin does not pass it on")
			require.NotContains(t, cause+fix, "secret-12345")
			require.Contains(t, p.Run("call", "it_stat").Stderr, "MY_API_KEY is set in env_file")
			entry := added.FindStringSubmatch(fix)
			require.NotNil(t, entry, fix)
			p.set(entry[1])
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

// The printed command refers to secret values, and names the variables that the user has
// to set before.
func TestPrintedCommandsReferToVariablesOfTheEnvFile(t *testing.T) {
	t.Parallel()
	p := newPatient(t, false, "command: sh", `args: ["-c", 'echo "got $MY_API_KEY $1"; exit 3', sh, "${MY_API_KEY}"]`, "inherit_env: [MY_API_KEY]")
	p.withEnvFile()
	_, fix, _ := p.doctor().worst(t)
	where, command, ok := strings.Cut(fix, ": ")
	require.True(t, ok, fix)
	require.Equal(t, "run it yourself to see the full error, with MY_API_KEY set", where)
	require.NotContains(t, command, "hidden")
	require.Equal(t, "got secret-12345 secret-12345\n", pasted(t, p, "sh", command, "MY_API_KEY=secret-12345"))
}

// A word of several lines is printed so that dash reads it, too.
func TestPrintedCommandsOfSeveralLinesWorkInEveryShell(t *testing.T) {
	t.Parallel()
	p := newPatient(t, false, "command: sh", `args: ["-c", "printf '%s.' \"$1\" \"100% of $0\"\necho \"$LINES_OF\"\nexit 3", sh, "a\\b\n\tc'"]`, `env: {LINES_OF: "x\ny"}`)
	_, fix, _ := p.doctor().worst(t)
	_, command, ok := strings.Cut(fix, "run it yourself to see the full error: ")
	require.True(t, ok, fix)
	for _, shell := range []string{"sh", "bash", "dash"} {
		if _, err := exec.LookPath(shell); err == nil {
			require.Equal(t, "a\\b\n\tc'.100% of sh.x\ny\n", pasted(t, p, shell, command), shell)
		}
	}
}

// pasted returns what a printed command, which ends with status 3, writes in a shell.
func pasted(t *testing.T, p *patient, shell, command string, more ...string) string {
	t.Helper()
	cmd := exec.Command(shell, "-c", command)
	cmd.Env, cmd.Dir = append(p.Environ(), more...), p.Dir
	out, err := cmd.Output()
	require.ErrorContains(t, err, "exit status 3", command)
	return string(out)
}

// Before a server is in the config, a fix that changes its entry would have nothing to change.
func TestTheFixOfAServerThatWasNotAddedIsAFlagOfAdd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, "MY_API_KEY=secret-12345")
	script := filepath.Join(w.Dir, "script.json")
	require.NoError(t, os.WriteFile(script, e2e.Marshal(e2e.Obj{"tools": []e2e.Obj{e2e.Tool("stat")}}), 0o600))
	server := []string{"--", "sh", "-c", `[ -n "$MY_API_KEY" ] || { echo MY_API_KEY is required >&2; exit 1; }; exec ` + e2e.TestServer + " " + script}
	out := w.Run(append([]string{"add", "it"}, server...)...)
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "write in front of --: --env 'MY_API_KEY=${MY_API_KEY}'")
	require.NotContains(t, out.Stderr, `add to "it"`)
	w.Succeeds(append([]string{"add", "it", "--env", "MY_API_KEY=${MY_API_KEY}"}, server...)...)
}

func TestTheDoctorNamesTheCauseInTracesOfOtherLanguages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, cause, fix string }{
		"a panic of Rust":      {"thread 'main' panicked at src/main.rs:5:10:\nno config at /etc/x\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace", "output: no config at /etc/x", "run it yourself"},
		"a gem of Ruby":        {"<internal:rubygems/core_ext/kernel_require.rb>:136:in 'Kernel#require': cannot load such file -- mcp (LoadError)\n\tfrom server.rb:1:in '<main>'", "cannot load such file -- mcp", "install what is missing"},
		"a module of Perl":     {"Can't locate MCP/Server.pm in @INC (you may need to install it) at x.pl line 1.\nBEGIN failed--compilation aborted at x.pl line 1.", "output: Can't locate MCP/Server.pm", "install what is missing"},
		"an old Java":          {"Error: LinkageError occurred while loading main class Main\n\tjava.lang.UnsupportedClassVersionError: Main has been compiled by a more recent version of the Java Runtime\n\tat x.y(Z.java:1)", "UnsupportedClassVersionError", "install the version of Java that it requires"},
		"a fatal error of PHP": {"PHP Fatal error:  Uncaught Exception: no licence in /x.php:3\nStack trace:\n#0 {main}\n  thrown in /x.php on line 3", "Uncaught Exception: no licence", "run it yourself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause, fix, _ := newPatient(t, false, needs("false", tt.text)...).doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.Contains(t, fix, tt.fix)
		})
	}
}

func TestRefusalsOverHTTPAskForWhatHelps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code         int
		header, body string
		cause, fix   string
	}{
		"a key that is missing":  {403, "", "API key required", "HTTP 403 Forbidden: API key required", `add its API key as a header: headers: {Authorization: "Bearer ${IT_TOKEN}"}`},
		"a password":             {401, `WWW-Authenticate: Basic realm="x"`, "", "login required: HTTP 401", `headers: {Authorization: "Basic ${IT_TOKEN}"}`},
		"a login":                {401, "WWW-Authenticate: Bearer", "", "login required: HTTP 401", "goblin login it"},
		"the status in its body": {404, "", "404 page not found\n", "HTTP 404 Not Found", "fix the path in url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(answers(tt.code, tt.header, tt.body))
			t.Cleanup(web.Close)
			p := newPatient(t, false, "url: "+web.URL+"/mcp")
			cause, fix, _ := p.doctor().worst(t)
			require.Contains(t, cause, tt.cause)
			require.NotContains(t, cause, "page")
			require.Contains(t, fix, tt.fix)
		})
	}
}

// Without --config, a pasted command would ask about another config.
func TestFixesNameTheConfigThatTheDoctorWasGiven(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(answers(401, "WWW-Authenticate: Bearer", ""))
	t.Cleanup(web.Close)
	p := newPatient(t, false, "url: "+web.URL+"/mcp")
	require.Contains(t, p.Run("doctor", "--config", p.Config).Stdout, "fix: goblin login --config "+p.Config+" it")
	require.Contains(t, p.Run("doctor").Stdout, "fix: goblin login it")
}

func TestInitKeepsOneCopyOfTheConfig(t *testing.T) {
	t.Parallel()
	p := newPatient(t, false, "command: sh")
	for _, name := range []string{"one", "two", "three"} {
		file := filepath.Join(p.Dir, "of.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {"`+name+`": {"command": "`+name+`"}}}`), 0o600))
		before, err := os.ReadFile(p.Config)
		require.NoError(t, err)
		p.Succeeds("init", "--from", file)
		copies, err := filepath.Glob(p.Config + ".goblin-*")
		require.NoError(t, err)
		require.Len(t, copies, 1)
		kept, err := os.ReadFile(copies[0])
		require.NoError(t, err)
		require.Equal(t, string(before), string(kept))
	}
}

func TestUsageLeavesOutGoblinsToolsThatNoListHas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		profiles e2e.Obj
		above    int
		counted  bool
	}{
		"few entries":               {nil, 60, false},
		"many entries":              {nil, 0, true},
		"a profile that lists them": {e2e.Obj{"p": e2e.Obj{"meta_tools": true}}, 60, true},
		"most are hidden from all":  {e2e.Obj{"default": e2e.Obj{"tools": e2e.Obj{"allow": []string{"one"}}}}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["meta_tools"], w.Gateway["meta_tools_above"] = "auto", tt.above
			w.Profiles = tt.profiles
			w.Backend("it", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("one"), e2e.Tool("two")}})
			c := w.Bridged()
			c.WaitListed("tools", "it_one", true)
			require.Equal(t, tt.counted, strings.Contains(w.Succeeds("usage", "--all"), "search_tools"))
		})
	}
}

func TestAnArgumentThatIsTheFolderOfNothingIsNamed(t *testing.T) {
	t.Parallel()
	for name, arg := range map[string]string{"an argument": "$DIR/my notes", "behind a flag": "--root=$DIR/my notes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, false)
			missing := filepath.Join(p.Dir, "my notes")
			p.entry = []string{"command: sh", "args: [\"-c\", " +
				string(e2e.Marshal(`d=$(echo "$1" | sed s/--root=//); [ -d "$d" ] || { echo "Error: none of the folders works" >&2; echo "Warning: cannot access $d" >&2; exit 1; }; exec $SERVER`)) +
				", sh, " + string(e2e.Marshal(strings.ReplaceAll(arg, "$DIR", p.Dir))) + "]"}
			p.save()
			_, fix, _ := p.doctor().worst(t)
			require.Contains(t, fix, "fix "+missing+" in args, which doesn't exist")
			_, command, ok := strings.Cut(fix, "run: ")
			require.True(t, ok, fix)
			require.NoError(t, exec.Command("sh", "-c", command).Run())
			require.Equal(t, "ok", p.doctor().State)
		})
	}
}

// The error of a list may come from a service that the server needs.
func TestTheErrorOfAListLeadsToItsCause(t *testing.T) {
	t.Parallel()
	script := `while read -r line; do id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); case $line in
		*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
		*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"connect ECONNREFUSED 127.0.0.1:5432"}}';;
		*'"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}';;
	esac; done`
	p := newPatient(t, false, "command: sh", "args: [\"-c\", "+string(e2e.Marshal(script))+"]", "era: legacy")
	cause, fix, _ := p.doctor().worst(t)
	require.Contains(t, cause, "tools/list failed: connect ECONNREFUSED 127.0.0.1:5432")
	require.Equal(t, "start the service that it connects to, or correct its address in env or args", fix)
}

func TestInstallWithReplaceNeedsAConfig(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	out := w.Run("install", "cursor", "--replace", "--dry-run")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, "has no servers; import them with \"goblin init\" first")
	require.NotContains(t, out.Stderr, "cannot be read")
}
