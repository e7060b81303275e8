//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// npmServers is one config of the three servers. Every run has its own folders, so that
// runs don't affect each other.
type npmServers struct {
	dir   string // of the cache with node_modules
	files string // what the filesystem server serves
	node  string
}

func newNPM(t *testing.T) *npmServers {
	n := &npmServers{dir: npm(t), files: filepath.Join(t.TempDir(), "files")}
	n.node = nodeBinary(n.dir)
	real, err := filepath.EvalSymlinks(filepath.Dir(n.files)) // the server reports real paths
	require.NoError(t, err)
	n.files = filepath.Join(real, "files")
	require.NoError(t, os.MkdirAll(filepath.Join(n.files, "sub"), 0o700))
	for name, text := range map[string]string{"a.txt": "the text of a\n", "ü b.md": "# b\n", "sub/c.json": `{"c": [1.0]}`} {
		path := filepath.Join(n.files, filepath.FromSlash(name))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		when := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
		require.NoError(t, os.Chtimes(path, when, when))
	}
	return n
}

func (n *npmServers) script(pkg string) string {
	return filepath.Join(n.dir, "node_modules", "@modelcontextprotocol", pkg, "dist", "index.js")
}

// commands returns the servers by name, for direct use and for the config.
func (n *npmServers) commands(memory string) map[string]e2e.Obj {
	return map[string]e2e.Obj{
		"everything": {"command": n.node, "args": []string{n.script("server-everything"), "stdio"}, "env": e2e.Obj{}},
		"filesystem": {"command": n.node, "args": []string{n.script("server-filesystem"), n.files}, "env": e2e.Obj{}},
		"memory":     {"command": n.node, "args": []string{n.script("server-memory")}, "env": e2e.Obj{"MEMORY_FILE_PATH": memory}},
	}
}

func (n *npmServers) roots() []e2e.Obj {
	return []e2e.Obj{{"uri": "file://" + n.files, "name": "files"}}
}

// plan lists the client's actions with each server, in original names.
func (n *npmServers) plan(server string) plan {
	switch server {
	case "everything":
		return plan{
			Reads: []string{"demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/8", "demo://resource/dynamic/text/none"},
			Calls: []named{
				{"echo", e2e.Obj{"message": "grüße <&>"}},
				{"echo", e2e.Obj{"wrong": 1}},
				{"get-sum", e2e.Obj{"a": 2, "b": 40}},
				{"get-tiny-image", e2e.Obj{}},
				{"get-structured-content", e2e.Obj{"location": "New York"}},
				{"get-annotated-message", e2e.Obj{"messageType": "error", "includeImage": true}},
				{"get-resource-links", e2e.Obj{"count": 4}},
				{"get-resource-reference", e2e.Obj{"resourceType": "Blob", "resourceId": 3}},
				{"gzip-file-as-resource", e2e.Obj{"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"}},
				{"trigger-sampling-request", e2e.Obj{"prompt": "p", "maxTokens": 9}},
				{"trigger-elicitation-request", e2e.Obj{}},
			},
			Prompts: []named{
				{"simple-prompt", nil},
				{"args-prompt", e2e.Obj{"city": "Bern", "state": "BE"}},
				{"args-prompt", e2e.Obj{}},
				{"resource-prompt", e2e.Obj{"resourceType": "Text", "resourceId": "5"}},
			},
			Completions: []completion{
				{"ref/prompt", "completable-prompt", "department", "S", nil},
				{"ref/prompt", "completable-prompt", "name", "", e2e.Obj{"department": "Sales"}},
				{"ref/resource", "demo://resource/dynamic/text/{resourceId}", "resourceId", "12", nil},
			},
			Slow:   &named{"trigger-long-running-operation", e2e.Obj{"duration": 1.2, "steps": 4}},
			Watch:  "demo://resource/dynamic/text/1",
			Toggle: "toggle-subscriber-updates",
		}
	case "filesystem":
		return plan{Calls: []named{
			{"list_allowed_directories", e2e.Obj{}},
			{"read_text_file", e2e.Obj{"path": filepath.Join(n.files, "a.txt")}},
			{"read_multiple_files", e2e.Obj{"paths": []string{filepath.Join(n.files, "sub", "c.json"), filepath.Join(n.files, "none")}}},
			{"list_directory", e2e.Obj{"path": n.files}},
			{"directory_tree", e2e.Obj{"path": n.files}},
			{"search_files", e2e.Obj{"path": n.files, "pattern": "**/*.md"}},
			{"read_text_file", e2e.Obj{"path": "/etc/passwd"}},
		}}
	}
	return plan{Calls: []named{
		{"create_entities", e2e.Obj{"entities": []e2e.Obj{{"name": "Ada", "entityType": "person", "observations": []string{"writes"}}, {"name": "Bob", "entityType": "person", "observations": []string{}}}}},
		{"create_relations", e2e.Obj{"relations": []e2e.Obj{{"from": "Ada", "to": "Bob", "relationType": "knows"}}}},
		{"add_observations", e2e.Obj{"observations": []e2e.Obj{{"entityName": "Bob", "contents": []string{"reads", "ü"}}}}},
		{"search_nodes", e2e.Obj{"query": "read"}},
		{"open_nodes", e2e.Obj{"names": []string{"Ada"}}},
		{"read_graph", e2e.Obj{}},
	}}
}

type plan struct {
	Reads       []string
	Calls       []named
	Prompts     []named
	Completions []completion
	Slow        *named
	Watch       string
	Toggle      string
}

type named struct {
	Name      string
	Arguments e2e.Obj
}

type completion struct {
	kind, ref, argument, value string
	arguments                  e2e.Obj
}

// spec returns the plan for the script, with names changed by the functions.
func (p plan) spec(tool, prompt, uri func(string) string) e2e.Obj {
	all := func(list []named, rename func(string) string) []e2e.Obj {
		out := []e2e.Obj{}
		for _, n := range list {
			o := e2e.Obj{"name": rename(n.Name)}
			if n.Arguments != nil {
				o["arguments"] = n.Arguments
			}
			out = append(out, o)
		}
		return out
	}
	spec := e2e.Obj{"calls": all(p.Calls, tool), "prompts": all(p.Prompts, prompt)}
	var reads []string
	for _, r := range p.Reads {
		reads = append(reads, uri(r))
	}
	spec["reads"] = reads
	var completions []e2e.Obj
	for _, c := range p.Completions {
		ref := e2e.Obj{"type": c.kind}
		if c.kind == "ref/prompt" {
			ref["name"] = prompt(c.ref)
		} else {
			ref["uri"] = uri(c.ref)
		}
		o := e2e.Obj{"ref": ref, "argument": e2e.Obj{"name": c.argument, "value": c.value}}
		if c.arguments != nil {
			o["context"] = e2e.Obj{"arguments": c.arguments}
		}
		completions = append(completions, o)
	}
	spec["completions"] = completions
	if p.Slow != nil {
		spec["slow"] = all([]named{*p.Slow}, tool)[0]
	}
	if p.Watch != "" {
		spec["subscription"] = e2e.Obj{"uri": uri(p.Watch), "trigger": e2e.Obj{"name": tool(p.Toggle), "arguments": e2e.Obj{}}}
	}
	return spec
}

// document is the script's output.
type document struct {
	Tools, Prompts, Resources, Templates []json.RawMessage
	Reads                                map[string]json.RawMessage
	Calls, Prompt, Completions           []json.RawMessage
	Updates                              []string
	Progress                             []json.RawMessage
	Slow                                 json.RawMessage
	Asked                                []json.RawMessage
}

func (n *npmServers) use(t *testing.T, env []string, spec e2e.Obj) document {
	t.Helper()
	spec["modules"], spec["roots"] = n.dir, n.roots()
	file := filepath.Join(t.TempDir(), "spec.json")
	require.NoError(t, os.WriteFile(file, e2e.Marshal(spec), 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "interop.mjs"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.node, script, file)
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	var doc document
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &doc))
	return doc
}

func same(s string) string { return s }

var notInToolNames = regexp.MustCompile(`[^A-Za-z0-9_-]`)

func toolName(server string) func(string) string {
	return func(name string) string { return notInToolNames.ReplaceAllString(server+"_"+name, "_") }
}

func TestInteropTypeScriptClientSeesTheSameThroughGoblin(t *testing.T) {
	t.Parallel()
	n := newNPM(t)
	direct := map[string]document{}
	for server, command := range n.commands(filepath.Join(t.TempDir(), "direct.jsonl")) {
		spec := n.plan(server).spec(same, same, same)
		command["env"] = e2e.Merge(command["env"].(e2e.Obj), []e2e.Obj{{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}})
		spec["transport"] = command
		direct[server] = n.use(t, os.Environ(), spec)
	}
	require.NotEmpty(t, direct["everything"].Resources)
	require.Equal(t, []string{"demo://resource/dynamic/text/1"}, direct["everything"].Updates)
	require.GreaterOrEqual(t, len(direct["everything"].Progress), 3)
	for _, way := range []string{"standalone", "bridged", "http"} {
		t.Run(way, func(t *testing.T) {
			w := e2e.NewWorld(t)
			for server, command := range n.commands(filepath.Join(w.Dir, "memory.jsonl")) {
				b, _ := w.Fake(server, e2e.Obj{})
				b.Conf = command
			}
			sort.Slice(w.Backends, func(i, j int) bool { return w.Backends[i].Name < w.Backends[j].Name })
			var roots []any
			for _, r := range n.roots() {
				roots = append(roots, r)
			}
			w.Gateway["roots"] = roots
			w.Gateway["linger"] = "20s"
			w.Write()
			var transport e2e.Obj
			env := e2e.Obj{}
			for _, kv := range w.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			switch way {
			case "standalone":
				transport = e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env}
			case "bridged":
				w.AllowDaemon = true
				transport = e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio"}, "env": env}
			case "http":
				transport = e2e.Obj{"url": w.Serve().Base + "/mcp"}
			}
			for server, want := range direct {
				spec := n.plan(server).spec(toolName(server), func(p string) string { return server + "/" + p }, func(u string) string { return e2e.In(server, u) })
				spec["transport"] = transport
				got := n.use(t, os.Environ(), spec)
				compare(t, server, want, got)
			}
		})
	}
}

// compare checks that got equals want except for the documented renames. The list of got
// contains other servers, too.
func compare(t *testing.T, server string, want, got document) {
	t.Helper()
	rename := toolName(server)
	lists := []struct {
		kind      string
		want, got []json.RawMessage
		key       string
		listed    func(string) string
		mine      func(string) bool
	}{
		{"tools", want.Tools, got.Tools, "name", rename, func(s string) bool { return strings.HasPrefix(s, server+"_") }},
		{"prompts", want.Prompts, got.Prompts, "name", func(s string) string { return server + "/" + s }, func(s string) bool { return strings.HasPrefix(s, server+"/") }},
		{"resources", want.Resources, got.Resources, "uri", func(s string) string { return e2e.In(server, s) }, func(s string) bool { return strings.HasPrefix(s, e2e.In(server, "")) }},
		{"templates", want.Templates, got.Templates, "uriTemplate", func(s string) string { return e2e.In(server, s) }, func(s string) bool { return strings.HasPrefix(s, e2e.In(server, "")) }},
	}
	for _, l := range lists {
		expected := map[string]any{}
		for _, e := range l.want {
			o := decode(t, e).(e2e.Obj)
			name := l.listed(o[l.key].(string))
			o[l.key] = name
			expected[name] = renamed(server, o)
		}
		seen := map[string]any{}
		for _, e := range l.got {
			if o := decode(t, e).(e2e.Obj); l.mine(o[l.key].(string)) {
				seen[o[l.key].(string)] = o
			}
		}
		requireSame(t, server+" "+l.kind, expected, seen)
	}
	for uri, result := range want.Reads {
		through, ok := got.Reads[e2e.In(server, uri)]
		require.True(t, ok, "%s was not read", e2e.In(server, uri))
		if o, ok := decode(t, result).(e2e.Obj); ok && o["error"] != nil {
			require.NotNil(t, e2e.At(through, "error"), "%s: %s", uri, through)
			continue
		}
		requireSame(t, server+" read "+uri, renamed(server, decode(t, result)), decode(t, through))
	}
	for _, pair := range []struct {
		kind      string
		want, got []json.RawMessage
	}{
		{"call", want.Calls, got.Calls},
		{"prompt", want.Prompt, got.Prompt},
		{"completion", want.Completions, got.Completions},
		{"progress", firstThree(want.Progress), firstThree(got.Progress)},
		{"asked", want.Asked, got.Asked},
		{"slow", []json.RawMessage{want.Slow}, []json.RawMessage{got.Slow}},
	} {
		require.Len(t, pair.got, len(pair.want), pair.kind)
		for i := range pair.want {
			requireSame(t, fmt.Sprint(server, " ", pair.kind, " ", i), renamed(server, decode(t, pair.want[i])), decode(t, pair.got[i]))
		}
	}
	for i, uri := range want.Updates {
		require.Equal(t, e2e.In(server, uri), got.Updates[i])
	}
}

// firstThree drops the last of four: the SDK loses a progress message that arrives
// together with the response.
func firstThree(all []json.RawMessage) []json.RawMessage { return all[:min(3, len(all))] }

func requireSame(t *testing.T, what string, want, got any) {
	t.Helper()
	require.JSONEq(t, timeless(string(e2e.Marshal(want))), timeless(string(e2e.Marshal(got))), what)
}

func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&v), "%s", raw)
	return v
}

// renamed changes the fields of results that Goblin documents to rewrite.
func renamed(server string, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = renamed(server, v[i])
		}
	case e2e.Obj:
		for _, list := range []string{"contents", "content", "messages"} {
			all, _ := v[list].([]any)
			for _, c := range all {
				renameContent(server, c)
			}
		}
		if result, ok := v["result"].(e2e.Obj); ok {
			v["result"] = renamed(server, result)
		}
	}
	return v
}

func renameContent(server string, v any) {
	c, ok := v.(e2e.Obj)
	if !ok {
		return
	}
	if uri, ok := c["uri"].(string); ok {
		c["uri"] = e2e.In(server, uri)
	}
	renameContent(server, c["resource"])
	renameContent(server, c["content"])
}

var (
	clock   = regexp.MustCompile(`\d{1,2}:\d\d:\d\d [AP]M`)
	base64d = regexp.MustCompile(`"blob":"([A-Za-z0-9+/=]+)"`)
)

// timeless removes the time of day from the everything server's resources.
func timeless(s string) string {
	s = base64d.ReplaceAllStringFunc(s, func(m string) string {
		text, err := base64.StdEncoding.DecodeString(base64d.FindStringSubmatch(m)[1])
		if err != nil || !clock.Match(text) {
			return m
		}
		return `"blob":` + string(e2e.Marshal(clock.ReplaceAllString(string(text), "NOW")))
	})
	return clock.ReplaceAllString(s, "NOW")
}

// inspector runs the command line of MCP Inspector, pinned to one server.
type inspector struct {
	t      *testing.T
	n      *npmServers
	env    []string // of the server, when it is a command
	target []string // command and arguments, or a URL
	tools  []json.RawMessage
}

func (i *inspector) ask(args ...string) json.RawMessage {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	launcher := filepath.Join(i.n.dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	full := []string{launcher, "--cli"}
	for _, kv := range i.env { // it passes on only a few variables
		full = append(full, "-e", kv)
	}
	cmd := exec.CommandContext(ctx, i.n.node, append(append(full, i.target...), args...)...)
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(i.t, cmd.Run(), "%v: %s%s", args, stdout.String(), stderr.String())
	return stdout.Bytes()
}

// survey lists everything, reads one resource and calls one tool.
func (i *inspector) survey(server string, tool, uri func(string) string) (d document) {
	i.t.Helper()
	if i.tools == nil { // the same for all servers behind Goblin, and each request starts a Node
		i.tools = e2e.Each(i.ask("--method", "tools/list"), "tools")
	}
	d.Tools = slices.Clone(i.tools)
	call := map[string][]string{
		"everything": {"echo", "message=hello"},
		"filesystem": {"list_allowed_directories"},
		"memory":     {"read_graph"},
	}[server]
	args := []string{"--method", "tools/call", "--tool-name", tool(call[0])}
	for _, a := range call[1:] {
		args = append(args, "--tool-arg", a)
	}
	d.Calls = []json.RawMessage{i.ask(args...)}
	if server != "everything" { // the others only have tools
		return d
	}
	d.Prompts = e2e.Each(i.ask("--method", "prompts/list"), "prompts")
	d.Resources = e2e.Each(i.ask("--method", "resources/list"), "resources")
	d.Templates = e2e.Each(i.ask("--method", "resources/templates/list"), "resourceTemplates")
	const static = "demo://resource/static/document/features.md"
	d.Reads = map[string]json.RawMessage{uri(static): i.ask("--method", "resources/read", "--uri", uri(static))}
	return d
}

// forCapable are tools that a server offers only to clients that accept requests. Goblin
// does; the Inspector's command line does not.
var forCapable = regexp.MustCompile(`elicitation|sampling|roots`)

func TestInteropInspectorSeesTheSameThroughGoblin(t *testing.T) {
	t.Parallel()
	n := newNPM(t)
	direct := map[string]document{}
	for server, command := range n.commands(filepath.Join(t.TempDir(), "direct.jsonl")) {
		i := inspector{t: t, n: n, target: []string{command["command"].(string)}}
		for k, v := range command["env"].(e2e.Obj) {
			i.env = append(i.env, fmt.Sprintf("%s=%v", k, v))
		}
		i.target = append(i.target, command["args"].([]string)...)
		direct[server] = i.survey(server, same, same)
	}
	require.NotEmpty(t, direct["everything"].Resources)
	for _, way := range []string{"bridged", "http"} { // alone it starts each server for each request
		t.Run(way, func(t *testing.T) {
			w := e2e.NewWorld(t)
			for server, command := range n.commands(filepath.Join(w.Dir, "memory.jsonl")) {
				b, _ := w.Fake(server, e2e.Obj{})
				b.Conf = command
			}
			w.Gateway["linger"] = "20s"
			w.Write()
			i := inspector{t: t, n: n, env: w.Environ()}
			switch way {
			case "bridged":
				w.AllowDaemon = true
				i.target = []string{e2e.Goblin, "stdio"}
			case "http":
				i.env, i.target = nil, []string{w.Serve().Base + "/mcp", "--transport", "http"}
			}
			for server, want := range direct {
				got := i.survey(server, toolName(server), func(u string) string { return e2e.In(server, u) })
				got.Tools = slices.DeleteFunc(got.Tools, func(tool json.RawMessage) bool {
					return forCapable.MatchString(e2e.Str(tool, "name")) && !slices.ContainsFunc(want.Tools, func(w json.RawMessage) bool {
						return toolName(server)(e2e.Str(w, "name")) == e2e.Str(tool, "name")
					})
				})
				compare(t, server, want, got)
			}
		})
	}
}
