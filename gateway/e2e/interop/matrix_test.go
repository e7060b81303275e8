//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The matrix: clients of four revisions in front of six kinds of servers, both ends real
// SDKs. testdata/matrix holds a client and a server for each SDK. Every client does all
// steps in one session. MATRIX.md contains the results.

var update = flag.Bool("update", false, "write MATRIX.md")

// peer is a client or a server of the matrix.
type peer struct {
	revision string // of clients
	kind     string // of servers
	sdk      string
	way      string // of servers: stdio or HTTP; of clients: the only front they can use
	args     []string
}

func (p peer) String() string { return strings.TrimSpace(p.revision + p.kind + " " + p.sdk) }

const (
	ts1  = "TypeScript SDK 1.32"
	ts2  = "TypeScript SDK 2.4"
	goes = "Go SDK 1.8"
)

// Clients of one revision are placed so that their indexes differ in parity, see
// matrixRuns.
var matrixClients = []peer{
	{revision: "2024-11-05", sdk: "TypeScript SDK 1.9", way: "stdio", args: []string{"client-v1.mjs", "sdk-2024-11-05"}},
	{revision: "2024-11-05", sdk: goes},
	{revision: "2025-06-18", sdk: "TypeScript SDK 1.22", args: []string{"client-v1.mjs", "sdk-2025-06-18"}},
	{revision: "2025-06-18", sdk: goes},
	{revision: "2025-11-25", sdk: ts1, args: []string{"client-v1.mjs", "@modelcontextprotocol/sdk"}},
	{revision: "2025-11-25", sdk: goes},
	{revision: "2026-07-28", sdk: ts2, args: []string{"client-v2.mjs", ""}},
	{revision: "2026-07-28", sdk: goes},
	{revision: "2025-11-25", sdk: ts2, args: []string{"client-v2.mjs", ""}},
}

var matrixKinds = []string{"legacy stdio", "legacy HTTP", "modern stdio", "modern HTTP", "dual stdio", "dual HTTP"}

var matrixServers = []peer{
	{kind: "legacy stdio", sdk: ts1, way: "stdio", args: []string{"server-v1.mjs", "stdio"}},
	{kind: "legacy stdio", sdk: goes, way: "stdio", args: []string{"server", "stdio", "legacy"}},
	{kind: "legacy HTTP", sdk: ts1, way: "HTTP", args: []string{"server-v1.mjs", "http"}},
	{kind: "legacy HTTP", sdk: goes, way: "HTTP", args: []string{"server", "http", "legacy"}},
	{kind: "modern stdio", sdk: ts2, way: "stdio", args: []string{"server-v2.mjs", "stdio", "modern"}},
	{kind: "modern stdio", sdk: goes, way: "stdio", args: []string{"server", "stdio", "modern"}},
	{kind: "modern HTTP", sdk: ts2, way: "HTTP", args: []string{"server-v2.mjs", "http", "modern"}},
	{kind: "modern HTTP", sdk: goes, way: "HTTP", args: []string{"server", "http", "modern"}},
	{kind: "dual stdio", sdk: ts2, way: "stdio", args: []string{"server-v2.mjs", "stdio", "dual"}},
	{kind: "dual stdio", sdk: goes, way: "stdio", args: []string{"server", "stdio", "dual"}},
	{kind: "dual HTTP", sdk: ts2, way: "HTTP", args: []string{"server-v2.mjs", "http", "dual"}},
	{kind: "dual HTTP", sdk: goes, way: "HTTP", args: []string{"server", "http", "dual"}},
}

// matrixRun is a session of a client with one server behind Goblin.
type matrixRun struct {
	client, server peer
	front          string // stdio or HTTP
}

func (r matrixRun) String() string {
	return fmt.Sprintf("%s over %s to %s", r.client, r.front, r.server)
}

// matrixRuns returns a run of each client with each kind of server. The server of a kind
// and the front change from run to run. So every two of client, server and front meet at
// least once.
func matrixRuns() (runs []matrixRun) {
	for i, client := range matrixClients {
		for j, kind := range matrixKinds {
			servers := slices.DeleteFunc(slices.Clone(matrixServers), func(p peer) bool { return p.kind != kind })
			r := matrixRun{client: client, server: servers[(i+i/2+j)%2], front: []string{"stdio", "HTTP"}[(i+j)%2]}
			if client.way != "" {
				r.front = client.way
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// The result of each step through Goblin, which calls the server m.
var matrixSteps = []struct{ step, saw string }{
	{"list", `{"tools": ["m_both", "m_cancelled", "m_change", "m_echo", "m_elicit", "m_era", "m_log", "m_progress", "m_roots", "m_sample", "m_touch", "m_wait"],
		"prompts": ["m/ask", "m/greet"], "resources": ["goblin://servers", "mcp://m/matrix://asking", "mcp://m/matrix://text", "mcp://m/matrix://watched"], "templates": ["mcp://m/matrix://item/{id}"]}`},
	{"read", `{"contents": [["mcp://m/matrix://text", "the text"], ["mcp://m/matrix://item/7", "item 7"]]}`},
	{"call", `{"text": "echo: grüße <&>", "prompt": "Hello, Ada"}`},
	{"subscribe/updated", `{"updated": "mcp://m/matrix://watched"}`},
	{"list_changed", `{"added": true}`},
	{"progress", `{"text": "done", "progress": [["p", 1, 3, "step 1"], ["p", 2, 3, "step 2"], ["p", 3, 3, "step 3"]]}`},
	{"cancel", `{"call": "given up", "server": "cancelled"}`},
	{"log", `{"text": "logged", "log": [["info", "for you"]]}`},
	{"completion", `{"prompt": ["Ada", "Alan"], "template": ["1", "10"]}`},
	{"sampling", `{"text": "model: 4", "asked": "2+2?"}`},
	{"elicitation", `{"text": "accept Ada", "asked": "Your name?"}`},
	{"roots", `{"text": "file:///matrix/root"}`},
	{"several questions", `{"text": "file:///matrix/root 4"}`},
	{"other requests that ask", `{"prompt": "Hello, file:///matrix/root", "read": "read for file:///matrix/root"}`},
	{"era", ""}, // of the server, see eraOf
}

// eraOf returns the era in which Goblin should speak to a server: the client's era if the
// server speaks it.
func eraOf(r matrixRun) string {
	kind, _, _ := strings.Cut(r.server.kind, " ")
	switch {
	case kind != "dual":
		return kind
	case r.client.revision >= e2e.ModernRevision:
		return "modern"
	}
	return "legacy"
}

// spokenIn returns the era in which Goblin speaks to a server. It differs from the
// client's if the server doesn't declare that era.
func spokenIn(r matrixRun) string {
	if r.server.kind == "dual HTTP" && r.server.sdk == ts2 {
		return "modern"
	}
	return eraOf(r)
}

// wants returns the expected result of a run's step, and whether that is an exception.
func (r matrixRun) wants(step int) (saw string, exception bool) {
	s := matrixSteps[step]
	if n := exceptionOf(r, s.step); n >= 0 {
		return matrixExceptions[n].answer, true
	}
	if s.step == "era" {
		return fmt.Sprintf(`{"text": %q}`, eraOf(r)), false
	}
	return s.saw, false
}

// matrixException is a cell with another answer, and the reason.
type matrixException struct {
	step   string
	in     func(matrixRun) bool
	answer string
	why    string
	direct bool // without Goblin too
}

// elicitationUnknown selects the runs of clients whose revision has no elicitation. The
// servers have the given SDK and are spoken to in the given era.
func elicitationUnknown(sdk, era string) func(matrixRun) bool {
	return func(r matrixRun) bool {
		return r.client.revision < "2025-06-18" && r.server.sdk == sdk && spokenIn(r) == era
	}
}

// unreadableRoots is the exception for roots requests from TypeScript SDK servers to Go
// SDK clients in their common revision.
func unreadableRoots(step, method string) matrixException {
	return matrixException{
		step: step,
		in: func(r matrixRun) bool {
			return r.client.sdk == goes && r.client.revision >= e2e.ModernRevision && r.server.sdk == ts2 && spokenIn(r) == "modern"
		},
		answer: fmt.Sprintf(`{"error": {"code": 0, "message": "calling \"%s\": unexpected end of JSON input"}}`, method),
		why:    "the " + goes + " cannot parse a roots request without params. The " + ts2 + " sends one, also without Goblin",
		direct: true,
	}
}

const noElicitation = "this client's revision has no elicitation, which was added in 2025-06-18. "

var matrixExceptions = []matrixException{
	{
		step: "elicitation", in: elicitationUnknown(ts1, "legacy"),
		answer: `{"text": "MCP error -32602: the client that made the call did not declare elicitation (an error)", "asked": null}`,
		why:    noElicitation + "The server gets error -32602, which its " + ts1 + " returns as a result",
	},
	{
		step: "elicitation", in: elicitationUnknown(ts2, "legacy"),
		answer: `{"text": "Fulfilling input required by 'tools/call' failed: the client that made the call did not declare elicitation (an error)", "asked": null}`,
		why:    noElicitation + "The server gets error -32602, which its " + ts2 + " returns as a result",
	},
	{
		step: "elicitation", in: elicitationUnknown(goes, "legacy"),
		answer: `{"text": "calling \"elicitation/create\": the client that made the call did not declare elicitation (an error)", "asked": null}`,
		why:    noElicitation + "The server gets error -32602, which its " + goes + " returns as a result",
	},
	{
		step: "elicitation", in: elicitationUnknown(ts2, "modern"),
		answer: `{"error": {"code": -32603, "message": "server \"m\" needs capabilities that the client did not declare: elicitation (Cannot request input 'question' (elicitation/create): the request's client capabilities do not declare the required capability)"}}`,
		why:    noElicitation + "The server, with its " + ts2 + ", refuses the call with -32021, which the client does not know",
	},
	{
		step: "elicitation", in: elicitationUnknown(goes, "modern"),
		answer: `{"error": {"code": -32603, "message": "server \"m\" needs elicitation for this call (elicitation/create): the client that made the call did not declare elicitation"}}`,
		why:    noElicitation + "The server, with its " + goes + ", sends the request nevertheless, and Goblin fails the call",
	},
	unreadableRoots("roots", "tools/call"),
	unreadableRoots("several questions", "tools/call"),
	unreadableRoots("other requests that ask", "prompts/get"),
	{
		step: "era", in: func(r matrixRun) bool { return spokenIn(r) != eraOf(r) },
		answer: `{"text": "modern"}`,
		why:    "servers of the " + ts2 + " declare only 2026-07-28 (server/discover), and Goblin believes that over HTTP",
	},
}

func exceptionOf(r matrixRun, step string) int {
	return slices.IndexFunc(matrixExceptions, func(e matrixException) bool { return e.step == step && e.in(r) })
}

// matrixPrograms are the SDKs' programs, ready to run.
type matrixPrograms struct {
	node    string
	scripts string // folder
	golang  string
}

func newMatrixPrograms(t *testing.T) *matrixPrograms {
	t.Helper()
	modules := npm(t)
	p := &matrixPrograms{node: nodeBinary(modules), scripts: t.TempDir()}
	// Beside a node_modules, so that the scripts import packages by name.
	require.NoError(t, os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(p.scripts, "node_modules")))
	files, err := filepath.Glob(filepath.Join("testdata", "matrix", "*.mjs"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(p.scripts, filepath.Base(file)), text, 0o600))
	}
	p.golang = filepath.Join(p.scripts, "matrix")
	build := exec.Command("go", "build", "-o", p.golang, ".")
	build.Dir = filepath.Join("testdata", "matrix")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return p
}

// command returns a program and its arguments.
func (p *matrixPrograms) command(args []string) []string {
	if strings.HasSuffix(args[0], ".mjs") {
		return append([]string{p.node, filepath.Join(p.scripts, args[0])}, args[1:]...)
	}
	return append([]string{p.golang}, args...)
}

// serve starts a server over HTTP and returns its URL.
func (p *matrixPrograms) serve(t *testing.T, args []string, env []string) string {
	t.Helper()
	line := p.command(args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = env
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	url, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(url)
}

// use runs a client until it exits and returns its results by step.
func (p *matrixPrograms) use(t *testing.T, c peer, transport e2e.Obj, prefix bool) map[string]json.RawMessage {
	t.Helper()
	spec := e2e.Obj{"revision": c.revision, "transport": transport, "tool": "", "prompt": "", "uri": ""}
	if prefix {
		spec["tool"], spec["prompt"], spec["uri"] = "m_", "m/", "mcp://m/"
	}
	line := p.command([]string{"client"})
	if c.args != nil {
		line = p.command(c.args[:1])
		spec["sdk"] = c.args[1]
	}
	file := filepath.Join(t.TempDir(), "spec.json")
	require.NoError(t, os.WriteFile(file, e2e.Marshal(spec), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], append(line[1:], file)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = e2e.Patience // Goblin, its child, may still be exiting
	require.NoError(t, cmd.Run(), "%s%s", stdout.String(), stderr.String())
	saw := map[string]json.RawMessage{}
	for line := range strings.Lines(stdout.String()) {
		var got struct {
			Step       string
			Saw, Error json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &got), "%s", line)
		saw[got.Step] = got.Saw
		if got.Error != nil {
			saw[got.Step] = e2e.Marshal(e2e.Obj{"error": got.Error})
		}
	}
	require.Contains(t, saw, "end", "%s", stderr.String())
	return saw
}

// run is one session through Goblin.
func (p *matrixPrograms) run(t *testing.T, r matrixRun) map[string]json.RawMessage {
	t.Helper()
	w := e2e.NewWorld(t)
	b, _ := w.Fake("m", e2e.Obj{})
	if r.server.way == "stdio" {
		line := p.command(r.server.args)
		b.Conf["command"], b.Conf["args"], b.Conf["era"] = line[0], line[1:], "both"
	} else {
		b.Conf["url"] = p.serve(t, r.server.args, w.Environ())
	}
	w.Write()
	if r.front == "HTTP" {
		return p.use(t, r.client, e2e.Obj{"url": w.Serve().Base + "/mcp"}, true)
	}
	env := e2e.Obj{}
	for _, kv := range w.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return p.use(t, r.client, e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env}, true)
}

func sameJSON(t *testing.T, want string, got json.RawMessage) bool {
	t.Helper()
	if got == nil {
		return false
	}
	return string(e2e.Marshal(decode(t, json.RawMessage(want)))) == string(e2e.Marshal(decode(t, got)))
}

func TestInteropMatrixOfRevisionsAndBackends(t *testing.T) {
	p := newMatrixPrograms(t)
	runs := matrixRuns()
	var mu sync.Mutex
	failed := map[string]bool{} // cells
	t.Run("runs", func(t *testing.T) {
		for _, r := range runs {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel()
				saw := p.run(t, r)
				for i, s := range matrixSteps {
					want, _ := r.wants(i)
					if !sameJSON(t, want, saw[s.step]) {
						t.Errorf("%s\n want %s\n  got %s", s.step, want, saw[s.step])
						mu.Lock()
						failed[cell(r.client.revision, r.server.kind, s.step)] = true
						mu.Unlock()
					}
				}
			})
		}
	})
	table := matrixTable(runs, failed)
	t.Logf("\n%s", table)
	if *update {
		require.NoError(t, os.WriteFile("MATRIX.md", []byte(matrixDocument(runs, table)), 0o600))
	}
	doc, err := os.ReadFile("MATRIX.md")
	require.NoError(t, err)
	require.Equal(t, matrixDocument(runs, table), string(doc), "run again with -update")
}

// The same programs without Goblin, if they understand each other. The matrix expects the
// same results with Goblin.
func TestInteropMatrixProgramsAgreeWithoutGoblin(t *testing.T) {
	p := newMatrixPrograms(t)
	plain := strings.NewReplacer(`"goblin://servers", `, "", `"m_`, `"`, `"m/`, `"`, `"mcp://m/`, `"`)
	for _, r := range matrixRuns() {
		if eraOf(r) == "modern" != (r.client.revision >= e2e.ModernRevision) || r.client.way == "stdio" && r.server.way == "HTTP" {
			continue
		}
		t.Run(fmt.Sprintf("%s to %s", r.client, r.server), func(t *testing.T) {
			t.Parallel()
			line := p.command(r.server.args)
			transport := e2e.Obj{"command": line[0], "args": line[1:], "env": e2e.Obj{}}
			if r.server.way == "HTTP" {
				transport = e2e.Obj{"url": p.serve(t, r.server.args, os.Environ())}
			}
			saw := p.use(t, r.client, transport, false)
			for i, s := range matrixSteps {
				want, exception := r.wants(i)
				if exception && !matrixExceptions[exceptionOf(r, s.step)].direct {
					continue
				}
				if want = plain.Replace(want); !sameJSON(t, want, saw[s.step]) {
					t.Errorf("%s\n want %s\n  got %s", s.step, want, saw[s.step])
				}
			}
		})
	}
}

func cell(revision, kind, step string) string { return revision + " | " + kind + " | " + step }
