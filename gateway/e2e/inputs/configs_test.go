//go:build e2e

package inputs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// put writes a file below the folder of a world.
func put(t *testing.T, w *e2e.World, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(w.Dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// jsonWorld returns a world whose config is a JSON file of another client. The entry
// "good" starts a server with the tools move and stat. FAKE and FILE in the text are its
// program and argument.
func jsonWorld(t *testing.T, entries string) *e2e.World {
	t.Helper()
	w := e2e.NewWorld(t)
	_, file := w.Fake("good", e2e.Filesystem())
	w.Written = true
	replaceRunners(t, w, file)
	text := fmt.Sprintf("{\n\"mcpServers\": {\n\"good\": {\"command\": \"FAKE\", \"args\": [\"FILE\"]},\n%s\n}}\n", entries)
	w.Config = put(t, w, "client.json", strings.NewReplacer("FAKE", e2e.TestServer, "FILE", file).Replace(text))
	return w
}

// replaceRunners puts an npx and a uvx first in PATH that start the test server with a
// script file. The real ones would download a package, which may take any time.
func replaceRunners(t *testing.T, w *e2e.World, file string) {
	t.Helper()
	bin := filepath.Join(w.Dir, "runners")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, name := range []string{"npx", "uvx"} {
		e2e.WriteProgram(t, filepath.Join(bin, name), fmt.Sprintf("#!/bin/sh\nexec %q %q\n", e2e.TestServer, file))
	}
	w.Env = append(w.Env, "PATH="+bin+":"+os.Getenv("PATH"))
}

// oddEntries are entries of other clients' files, each on line 4 of its file.
var oddEntries = map[string]struct {
	entry  string
	state  string // of the server "odd" in the table of validate; empty if it is not in it
	warned string // part of a warning
	reason string // why it cannot start
}{
	"unknown keys":                  {`"odd": {"command": "x", "watchPaths": ["a"], "headersHelper": "h", "sandboxEnabled": true}`, "enabled", `unknown key "watchPaths" in server "odd" is ignored`, ""},
	"a typo of a key":               {`"odd": {"command": "x", "arg": ["a"]}`, "enabled", `unknown key "arg" in server "odd" is ignored; did you mean "args"?`, ""},
	"a typo of the only key":        {`"odd": {"comand": "x"}`, "cannot start", `did you mean "command"?`, `server "odd" needs "command"`},
	"nulls":                         {`"odd": {"command": "x", "url": null, "cwd": null, "headers": null, "type": null, "args": [null, "a"], "env": {"X": null}}`, "enabled", "", ""},
	"a null for all of env":         {`"odd": {"command": "x", "env": null, "args": null, "disabled": null}`, "enabled", "", ""},
	"a null for an entry":           {`"odd": null`, "", `"odd" in mcpServers is null and is ignored`, ""},
	"comments":                      {`"//": "about it", "odd": {"//": "mine", "command": "x"}`, "enabled", `"//" in server "odd" is a comment and is ignored`, ""},
	"numbers and truth as text":     {`"odd": {"command": "x", "args": ["-p", 3000, true], "env": {"PORT": 3000, "ON": true, "F": 1.50}}`, "enabled", "", ""},
	"requestInit":                   {`"odd": {"url": "http://127.0.0.1:1/", "requestInit": {"headers": {"A": "b"}}}`, "enabled", "", ""},
	"baseUrl and isActive":          {`"odd": {"baseUrl": "http://127.0.0.1:1/", "isActive": true, "command": ""}`, "enabled", "", ""},
	"isActive false":                {`"odd": {"baseUrl": "http://127.0.0.1:1/", "isActive": false}`, "disabled", "", ""},
	"enabled as a text":             {`"odd": {"command": "x", "enabled": "false"}`, "disabled", "", ""},
	"type local":                    {`"odd": {"type": "local", "command": "x"}`, "enabled", "", ""},
	"type remote":                   {`"odd": {"type": "remote", "url": "http://127.0.0.1:1/"}`, "enabled", "", ""},
	"type streamable":               {`"odd": {"type": "streamable", "url": "http://127.0.0.1:1/"}`, "enabled", "", ""},
	"a type in capitals":            {`"odd": {"type": "SSE", "url": "http://127.0.0.1:1/"}`, "enabled", "", ""},
	"a type that does not fit":      {`"odd": {"type": "stdio", "url": "http://127.0.0.1:1/"}`, "enabled", "", ""},
	"the type of a transport":       {`"odd": {"transport": "streamable-http", "serverUrl": "http://127.0.0.1:1/"}`, "enabled", "", ""},
	"a nested transport":            {`"odd": {"transport": {"type": "stdio", "command": "x", "args": ["a"]}}`, "enabled", "", ""},
	"approvals":                     {`"odd": {"command": "x", "autoApprove": ["*"], "alwaysAllow": ["a"]}`, "enabled", `"autoApprove" in server "odd" is a key of another client and is ignored`, ""},
	"a command line":                {`"odd": {"command": "npx -y pkg --flag 'a b'"}`, "enabled", `"command" in server "odd" contains a space`, ""},
	"a program of Windows":          {`"odd": {"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["-y"]}`, "enabled", "", ""},
	"a command that needs a shell":  {`"odd": {"command": "cd /x && npx y"}`, "cannot start", "needs a shell", `write command: sh and args: ["-c", "…"]`},
	"a command as a list":           {`"odd": {"command": ["npx", "-y", "x"]}`, "enabled", "", ""},
	"a command that is a number":    {`"odd": {"command": 7}`, "cannot start", "must be text", `"command" in server "odd" must be text, not a number`},
	"a duplicate key":               {`"odd": {"command": "x", "command": "y"}`, "enabled", `server "odd" has "command" twice; the last one is used`, ""},
	"a filter that is not clear":    {`"odd": {"command": "x", "tools": {"alow": ["y"]}}`, "cannot start", `did you mean "allow"?`, `unknown key "alow" in tools`},
	"WebSocket":                     {`"odd": {"type": "ws", "url": "ws://h"}`, "cannot start", "uses WebSocket", "uses WebSocket"},
	"a text for an entry":           {`"odd": "npx x"`, "cannot start", "must be a mapping", `server "odd" must be a mapping, not text`},
	"neither command nor URL":       {`"odd": {"args": ["x"]}`, "cannot start", `needs "command"`, `needs "command"`},
	"a timeout without a unit":      {`"odd": {"command": "x", "timeout": 60, "startup_timeout": "soon"}`, "enabled", `"startup_timeout" in server "odd" is not a duration and is ignored`, ""},
	"headers that are not pairs":    {`"odd": {"url": "http://127.0.0.1:1/", "headers": [{"name": "A", "value": "b"}, 7]}`, "enabled", `has an entry in "headers" that is neither`, ""},
	"an env that is a list of text": {`"odd": {"command": "x", "env": ["A=b", {"name": "C", "value": "d"}]}`, "enabled", "", ""},
}

func TestAnOddEntryOfAnotherClientIsWarnedOfOrDisabledAlone(t *testing.T) {
	t.Parallel()
	for name, test := range oddEntries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jsonWorld(t, test.entry)
			out := w.Run("validate")
			require.Zero(t, out.Code, out.Stderr)
			require.Regexp(t, `(?m)^good +stdio +enabled`, out.Stdout)
			if test.state == "" {
				require.NotContains(t, out.Stdout, "odd")
			} else {
				require.Regexp(t, `(?m)^odd +\w+ +`+test.state, out.Stdout)
			}
			if test.reason != "" {
				require.Contains(t, out.Stdout, test.reason)
			}
			if test.warned == "" {
				require.Empty(t, out.Stderr)
				return
			}
			require.Contains(t, out.Stderr, test.warned)
			for line := range strings.Lines(out.Stderr) {
				require.Contains(t, line, "client.json:4: warning: ")
			}
		})
	}
}

// All odd entries in one file, and the server beside them still answers.
func TestOddEntriesCostNoOtherServer(t *testing.T) {
	t.Parallel()
	var entries []string
	for _, test := range oddEntries {
		if !strings.HasPrefix(test.entry, `"//"`) {
			entries = append(entries, strings.Replace(test.entry, `"odd"`, fmt.Sprintf(`"odd%d"`, len(entries)), 1))
		}
	}
	w := jsonWorld(t, strings.Join(entries, ",\n"))
	require.Contains(t, w.Succeeds("list", "tools", "--server", "good"), "good_stat")
	out := w.Run("list", "servers")
	require.Regexp(t, `(?m)^good +ready`, out.Stdout)
	require.Contains(t, out.Stdout, "uses WebSocket")
}

// Every form of the command line starts the server.
func TestCommandsInOtherWordsStart(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"a line":                   `{"command": "FAKE FILE"}`,
		"a line with quotes":       `{"command": "'FAKE' \"FILE\""}`,
		"a line and arguments":     `{"command": "FAKE FILE", "args": ["--ignored"]}`,
		"a line with a variable":   `{"command": "A=b FAKE FILE"}`,
		"a list":                   `{"type": "local", "command": ["FAKE", "FILE"]}`,
		"a mapping":                `{"command": {"path": "FAKE", "args": ["FILE"], "env": {"A": "b"}}}`,
		"arguments in a text":      `{"command": "FAKE", "args": "FILE"}`,
		"cmd and arguments":        `{"cmd": "FAKE", "arguments": ["FILE"], "environment": {"A": 1}}`,
		"a nested transport":       `{"transport": {"type": "stdio", "command": "FAKE", "args": ["FILE"]}}`,
		"an empty URL beside it":   `{"command": "FAKE", "args": ["FILE"], "url": "", "headers": {}}`,
		"an unknown type":          `{"type": "carrier-pigeon", "command": "FAKE", "args": ["FILE"]}`,
		"the type of the other":    `{"type": "http", "command": "FAKE", "args": ["FILE"]}`,
		"env as a list":            `{"command": "FAKE", "args": ["FILE"], "env": ["A=b", {"key": "C", "value": 1}]}`,
		"stdio beside a URL":       `{"type": "stdio", "command": "FAKE", "args": ["FILE"], "url": "http://127.0.0.1:1/"}`,
		"keys in another spelling": `{"Command": "FAKE", "ARGS": ["FILE"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jsonWorld(t, `"odd": `+entry)
			require.Contains(t, w.Succeeds("list", "tools", "--server", "odd"), "odd_stat")
		})
	}
}

// A program in a folder with a space is no command line.
func TestAProgramWithSpacesInItsPathIsNotDivided(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	_, file := w.Fake("good", e2e.Filesystem())
	program := filepath.Join(w.Dir, "My Tools", "run it")
	require.NoError(t, os.MkdirAll(filepath.Dir(program), 0o700))
	require.NoError(t, os.Symlink(e2e.TestServer, program))
	w.Written = true
	for _, entry := range []e2e.Obj{{"command": program, "args": []string{file}}, {"command": program + " " + file}} {
		w.Config = put(t, w, "c.json", string(e2e.Marshal(e2e.Obj{"mcpServers": e2e.Obj{"a": entry}})))
		require.Contains(t, w.Succeeds("list", "tools"), "a_stat")
	}
	client := put(t, w, "home/.cursor/mcp.json", string(e2e.Marshal(e2e.Obj{"mcpServers": e2e.Obj{"a": e2e.Obj{"command": program + " " + file}}})))
	w.Config = filepath.Join(w.Dir, "new.yaml")
	w.Succeeds("init", "--from", client)
	require.Contains(t, contents(t, w.Config), "command: "+program+"\n")
}

// Headers reach the server in whatever form a client writes them.
func TestHeadersOfEveryFormReachTheServer(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]string{
		"a mapping":                `{"url": "URL", "headers": {"Authorization": "Bearer k"}}`,
		"a list of mappings":       `{"url": "URL", "headers": [{"name": "Authorization", "value": "Bearer k"}]}`,
		"a list with keys":         `{"url": "URL", "headers": [{"key": "Authorization", "value": "Bearer k"}]}`,
		"a list of texts":          `{"url": "URL", "headers": ["Authorization: Bearer k"]}`,
		"requestInit":              `{"url": "URL", "requestInit": {"headers": {"Authorization": "Bearer k"}}}`,
		"requestInit with a list":  `{"url": "URL", "requestInit": {"headers": [{"name": "Authorization", "value": "Bearer k"}]}}`,
		"requestOptions":           `{"url": "URL", "requestOptions": {"headers": {"Authorization": "Bearer k"}}}`,
		"http_headers":             `{"url": "URL", "http_headers": {"Authorization": "Bearer k"}}`,
		"a nested transport":       `{"transport": {"type": "streamable-http", "url": "URL", "headers": {"Authorization": "Bearer k"}}}`,
		"serverUrl":                `{"serverUrl": "URL", "headers": {"Authorization": "Bearer k"}}`,
		"httpUrl":                  `{"httpUrl": "URL", "headers": {"Authorization": "Bearer k"}}`,
		"baseUrl, streamable":      `{"type": "streamable", "baseUrl": "URL", "isActive": true, "headers": {"Authorization": "Bearer k"}}`,
		"streamableHttp with null": `{"type": "streamableHttp", "url": "URL", "command": null, "headers": {"Authorization": "Bearer k", "X": null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			seen := map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
				mu.Lock()
				seen[req.Header.Get("Authorization")] = true
				mu.Unlock()
				http.Error(res, "gone", http.StatusGone)
			}))
			defer server.Close()
			entry := strings.ReplaceAll(entry, "URL", server.URL+"/mcp")
			direct := jsonWorld(t, `"odd": `+entry)
			direct.Run("list", "tools", "--server", "odd")
			mu.Lock()
			require.True(t, seen["Bearer k"] && !seen[""], "in a config: %v", seen)
			mu.Unlock()

			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			put(t, w, "home/.cursor/mcp.json", `{"mcpServers": {"odd": `+entry+`}}`)
			w.Succeeds("init")
			require.Contains(t, contents(t, w.Config), "Authorization: Bearer k\n")
			require.Contains(t, contents(t, w.Config), "url: "+server.URL+"/mcp\n")
			w.Succeeds("install", "cursor", "--replace")
			require.NotContains(t, contents(t, filepath.Join(w.Dir, "home/.cursor/mcp.json")), "odd", "all of it was imported")
		})
	}
}

func TestInitReadsAnyFileWithServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text string
		code       int
		has        string // in the config, or on stderr if there is a code
	}{
		"a bare mapping":             {"x.json", `{"files": {"command": "npx", "args": ["-y"]}}`, 0, "  files:\n    command: npx\n    args: [-y]\n"},
		"without the outer braces":   {"x.json", `"files": {"command": "npx"}`, 0, "  files:\n    command: npx\n"},
		"with a comment and a comma": {"x.txt", "// mine\n\"files\": {\n  \"command\": \"npx\", // one\n},\n", 0, "  files:\n    command: npx\n"},
		"a section without braces":   {"x.json", `"mcpServers": {"files": {"url": "https://h/"}}`, 0, "  files:\n    url: https://h/\n"},
		"one entry":                  {"files.json", `{"command": "npx", "args": ["x"]}`, 0, "  files:\n    command: npx\n"},
		"a list of entries":          {"x.json", `[{"name": "files", "command": "npx"}]`, 0, "  files:\n    command: npx\n"},
		"a list in its section":      {"x.json", `{"mcpServers": [{"name": "files", "command": "npx"}]}`, 0, "  files:\n    command: npx\n"},
		"a section that is deeper":   {"x.json", `{"settings": {"mcpServers": {"files": {"command": "npx"}}}}`, 0, "  files:\n    command: npx\n"},
		"a byte order mark":          {"x.json", "\ufeff\"files\": {\"command\": \"npx\"}", 0, "  files:\n    command: npx\n"},
		"YAML":                       {"x.yaml", "files:\n  command: npx\n", 0, "  files:\n    command: npx\n"},
		"YAML with servers":          {"x.yml", "servers:\n  files: {command: npx}\n", 0, "  files:\n    command: npx\n"},
		"TOML":                       {"x.toml", "[files]\ncommand = 'npx'\n", 0, "  files:\n    command: npx\n"},
		"a section without servers":  {"x.json", `{"mcpServers": {}}`, 0, ""},
		"no section":                 {"x.json", `{"name": "pkg", "version": "1"}`, e2e.ExitNotFound, "x.json has no servers"},
		"nothing":                    {"x.json", "", e2e.ExitNotFound, "x.json has no servers"},
		"YAML without a section":     {"x.yaml", "a: 1\n", e2e.ExitNotFound, "x.yaml has no servers"},
		"broken":                     {"x.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" \"args\": []}\n  }\n}", e2e.ExitConfig, "x.json cannot be read: not valid JSON (line 3)"},
		"broken, without braces":     {"x.json", "\"a\": {\n  \"command\" \"x\"}", e2e.ExitConfig, "(line 2)"},
		"cut off":                    {"x.json", "{\"mcpServers\": {\n\"a\": {\n", e2e.ExitConfig, "x.json cannot be read: not valid JSON (line"},
		"broken YAML":                {"x.yaml", "a: 1\nb: [\n", e2e.ExitConfig, "x.yaml cannot be read: not valid YAML (line"},
		"broken TOML":                {"x.toml", "a = 1\nb = \n", e2e.ExitConfig, "x.toml cannot be read: not valid TOML (line 2)"},
		"no such file":               {"", "", e2e.ExitNotFound, "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			file := filepath.Join(w.Dir, "none.json")
			if test.file != "" {
				file = put(t, w, test.file, test.text)
			}
			out := w.Run("init", "--from", file)
			require.Equal(t, test.code, out.Code, out.Stderr)
			switch {
			case test.code != 0:
				require.Contains(t, out.Stderr, test.has)
				require.NoFileExists(t, w.Config)
			case test.has != "":
				require.Contains(t, contents(t, w.Config), test.has)
			}
		})
	}
}

func TestABrokenFileOfOneClientStopsNoOther(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
	broken := put(t, w, "home/.cursor/mcp.json", "{\n  \"mcpServers\": {\n    oops\n  }\n}")
	put(t, w, "home/.kiro/settings/mcp.json", `{"mcpServers": {"files": {"command": "npx"}}}`)
	for _, args := range [][]string{{"init"}, {"init", "--from", "cursor", "--from", "kiro"}, {"init", "--json"}} {
		out := w.Run(args...)
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stderr, broken+" cannot be read: not valid JSON (line 3)")
		require.Contains(t, contents(t, w.Config), "  files:\n    command: npx\n")
		require.NoError(t, os.Remove(w.Config))
	}
}

// What Goblin cannot import is reported, and such a server stays in its client.
func TestAServerThatIsNotImportedAsAWholeStaysInItsClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ entry, told string }{
		"a helper for headers":       {`{"url": "https://h/", "headersHelper": "get-token"}`, "headersHelper"},
		"a key of the client":        {`{"command": "x", "watchPaths": ["a"]}`, `"watchPaths", which is unknown and ignored`},
		"a sandbox":                  {`{"command": "x", "sandboxEnabled": true}`, "runs in a sandbox"},
		"a header in an odd form":    {`{"url": "https://h/", "headers": [{"name": "A", "value": "b"}, "odd"]}`, `an entry in "headers"`},
		"a header that is a list":    {`{"url": "https://h/", "headers": {"A": ["b"]}}`, `"A" in "headers"`},
		"options beside headers":     {`{"url": "https://h/", "requestInit": {"headers": {"A": "b"}, "credentials": "include"}}`, `"credentials"`},
		"variables of the editor":    {`{"command": "x", "args": ["${selectedText}"]}`, "${selectedText}"},
		"a name that is there twice": {`{"command": "x", "env": {"A": {"b": 1}}}`, `"A" in "env"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			file := put(t, w, "home/.cursor/mcp.json", "{\"mcpServers\": {\n  \"part\": "+test.entry+",\n  \"whole\": {\"command\": \"y\"}\n}}\n")
			before := contents(t, file)
			require.Contains(t, w.Succeeds("init"), test.told)
			out := w.Succeeds("install", "cursor", "--replace")
			require.Contains(t, out, "removed (now run by Goblin): whole\n")
			require.Contains(t, out, "kept (only imported in part, see goblin init): part\n")
			require.Contains(t, contents(t, file), `"part": `+test.entry)
			w.Succeeds("uninstall", "cursor")
			require.Equal(t, before, contents(t, file))
		})
	}
}

// commentless returns JSON without the comment and the comma that a test inserted.
func commentless(text string) []byte {
	return []byte(strings.NewReplacer("// mine\n", "", ",\n}", "\n}").Replace(text))
}

// copiesOf returns the backups that Goblin has made of a file.
func copiesOf(t *testing.T, file string) []string {
	t.Helper()
	list, err := filepath.Glob(file + ".goblin-*")
	require.NoError(t, err)
	return list
}

func TestThereIsOneCopyOfAClientsFileAsLongAsGoblinIsInIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, put(t, w, "one.yaml", "servers: {z: {command: z}}\n")
	const before = `{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "sk-1234567890abcdef"}}}}`
	file := put(t, w, "home/.cursor/mcp.json", before)
	require.NoError(t, os.Chmod(file, 0o644))
	// Backups of earlier versions: the file before Goblin, with Goblin in it, and a
	// different one.
	put(t, w, "home/.cursor/mcp.json.goblin-20250101-120000", before)
	put(t, w, "home/.cursor/mcp.json.goblin-20250101-120000-2", strings.Replace(before, `{"a"`, `{"goblin": {"command": "/bin/goblin", "args": ["stdio"]}, "a"`, 1))
	other := put(t, w, "home/.cursor/mcp.json.goblin-20250102-120000", `{"mcpServers": {"b": {"command": "y"}}}`)
	mine := put(t, w, "home/.cursor/mcp.json.goblin-mine", "kept")

	out := w.Succeeds("install", "cursor")
	require.Contains(t, out, "the backup has 1 secret in plain text; goblin uninstall cursor deletes it")
	require.NotContains(t, out, "sk-1234567890abcdef")
	list := copiesOf(t, file)
	require.Len(t, list, 3, "the backup, the different one, and a file of the user")
	require.Subset(t, list, []string{other, mine})
	require.NoError(t, os.Remove(other))
	list = copiesOf(t, file)
	require.Equal(t, before, contents(t, list[0]))
	info, err := os.Stat(list[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	for _, config := range []string{"two.yaml", "three.yaml", "three.yaml"} { // another entry each time
		w.Config = put(t, w, config, "servers: {z: {command: z}}\n")
		w.Succeeds("install", "cursor")
		require.Equal(t, list, copiesOf(t, file))
		require.Equal(t, before, contents(t, list[0]))
	}
	w.Succeeds("uninstall", "cursor")
	require.Equal(t, before, contents(t, file))
	require.Equal(t, []string{mine}, copiesOf(t, file), "the bytes are restored")

	// The user changes the file meanwhile: the backup stays, and the next one replaces
	// it.
	w.Succeeds("install", "cursor")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(contents(t, file), `"a":`, `"added": {"command": "y"}, "a":`, 1)), 0o600))
	out = w.Succeeds("uninstall", "cursor")
	require.Contains(t, out, "backup kept, because the file changed after the install: "+file+".goblin-2")
	require.Contains(t, out, "1 secret in plain text; delete it")
	require.Contains(t, contents(t, file), "added")
	list = copiesOf(t, file)
	require.Len(t, list, 2)
	require.Equal(t, before, contents(t, list[0]))
	w.Succeeds("install", "cursor")
	list = copiesOf(t, file)
	require.Len(t, list, 2)
	require.Contains(t, contents(t, list[0]), "added")
	w.Succeeds("uninstall", "cursor")
	require.Equal(t, []string{mine}, copiesOf(t, file))
}

// The same odd values in every client's file are imported. The server is replaced, and
// uninstall restores the bytes.
func TestOddWordsAreUnderstoodInTheFileOfEveryClient(t *testing.T) {
	t.Parallel()
	const (
		remote = `"remote": {"type": "streamable-http", "baseUrl": "https://127.0.0.1:1/mcp", "isActive": true, "url": null, "//": "c", "requestInit": {"headers": [{"name": "Authorization", "value": "Bearer k"}]}}`
		local  = `"local": {"command": "npx -y pkg 'a b'", "cwd": null, "env": [{"name": "PORT", "value": 3000}, "A=b"], "autoApprove": ["*"]}`
		nested = `"nested": {"transport": {"type": "stdio", "command": "uvx", "args": ["x", 1]}}`
	)
	entries := remote + ", " + local + ", " + nested
	in := func(section string) string { return `{"` + section + `": {` + entries + "}}\n" }
	yamlOf := func(indent, lead string) string { // of Continue and goose
		return lead + "\n" + strings.NewReplacer("@", indent).Replace(
			"@remote:\n@  type: streamable_http\n@  uri: https://127.0.0.1:1/mcp\n@  url: null\n@  headers: [{name: Authorization, value: Bearer k}]\n"+
				"@local:\n@  cmd: npx -y pkg 'a b'\n@  envs: [{name: PORT, value: 3000}, A=b]\n"+
				"@nested:\n@  transport: {type: stdio, command: uvx, args: [x, 1]}\n")
	}
	for client, file := range map[string]struct{ path, text string }{
		"claude-desktop": {"cfg/Claude/claude_desktop_config.json", in("mcpServers")},
		"claude-code":    {"home/.claude.json", in("mcpServers")},
		"cursor":         {"home/.cursor/mcp.json", in("mcpServers")},
		"vscode":         {"cfg/Code/User/mcp.json", in("servers")},
		"windsurf":       {"home/.codeium/windsurf/mcp_config.json", in("mcpServers")},
		"gemini":         {"home/.gemini/settings.json", in("mcpServers")},
		"opencode":       {"cfg/opencode/opencode.json", in("mcp")},
		"zed":            {"cfg/zed/settings.json", in("context_servers")},
		"cline":          {"cfg/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", in("mcpServers")},
		"kiro":           {"home/.kiro/settings/mcp.json", in("mcpServers")},
		"amazon-q":       {"home/.aws/amazonq/mcp.json", in("mcpServers")},
		"lm-studio":      {"home/.lmstudio/mcp.json", in("mcpServers")},
		"junie":          {"home/.junie/mcp/mcp.json", in("mcpServers")},
		"copilot":        {"home/.copilot/mcp-config.json", in("mcpServers")},
		"kilo":           {"cfg/kilo/kilo.jsonc", in("mcp")},
		"goose":          {"cfg/goose/config.yaml", yamlOf("  ", "extensions:")},
		"continue": {"home/.continue/config.yaml", "mcpServers:\n" +
			"  - name: remote\n    type: streamable-http\n    url: https://127.0.0.1:1/mcp\n    requestOptions: {headers: [{name: Authorization, value: Bearer k}]}\n" +
			"  - name: local\n    command: npx -y pkg 'a b'\n    env: [{name: PORT, value: 3000}, A=b]\n" +
			"  - name: nested\n    transport: {type: stdio, command: uvx, args: [x, 1]}\n"},
		"codex": {"home/.codex/config.toml", "[mcp_servers.remote]\nurl = \"https://127.0.0.1:1/mcp\"\nheaders = [\"Authorization: Bearer k\"]\n\n" +
			"[mcp_servers.local]\ncommand = \"npx -y pkg 'a b'\"\nenv = [\"PORT=3000\", \"A=b\"]\n\n" +
			"[mcp_servers.nested]\ntransport = { type = \"stdio\", command = \"uvx\", args = [\"x\", 1] }\n"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			_, script := w.Fake("runners", e2e.Filesystem())
			replaceRunners(t, w, script)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			path := put(t, w, file.path, file.text)
			w.Succeeds("init")
			for _, part := range []string{
				"    command: npx\n    args: [-y, pkg, a b]\n    env:\n      A: b\n      PORT: \"3000\"\n", "    command: uvx\n    args: [x, \"1\"]\n",
				"    url: https://127.0.0.1:1/mcp\n", "    headers:\n      Authorization: Bearer k\n",
			} {
				require.Contains(t, contents(t, w.Config), part)
			}
			require.NotContains(t, contents(t, w.Config), "autoApprove")
			out := w.Succeeds("install", client, "--replace")
			for _, name := range []string{"local", "nested", "remote"} {
				require.Regexp(t, `removed \(now run by Goblin\): .*`+name, out)
			}
			require.NotContains(t, contents(t, path), "uvx")
			require.Contains(t, contents(t, path), "goblin")
			w.Succeeds("uninstall", client)
			require.Equal(t, file.text, contents(t, path))
			require.Empty(t, copiesOf(t, path))
		})
	}
}
