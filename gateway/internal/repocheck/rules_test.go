package repocheck

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

type row struct{ name, imports, why string }

// rules contains the internal packages that each package may import, and the reason. A
// row that ends in "/..." applies to all packages below it without their own row.
var rules = []row{
	{"main", "gateway/archive gateway/callstore gateway/cli gateway/command gateway/config gateway/config/reference gateway/daemon gateway/demo gateway/remoteui gateway/serve gateway/stack meta meta/lua meta/lua/worker tui tui/checklist tui/termquery tui/theme", "wires UI, meta tools and modes; no package imports it"},

	{"registry", "registry/cache registry/definition registry/names registry/rawjson registry/repair registry/suggest registry/termtext", "the catalog knows no transport, UI or gateway"},
	{"registry/cache", "", "a leaf: bounded collections of any values"},
	{"registry/candidate", "", "a leaf: describes servers for the gateway and the UI"},
	{"registry/report", "", "a leaf: types of reports, not how they are counted"},
	{"registry/definition", "registry/rawjson registry/suggest", "changes and compares definitions; knows no server"},
	{"registry/rawjson", "", "knows JSON only"},
	{"registry/keymap", "", "a leaf: names of keys, not what they do"},
	{"registry/recording", "registry registry/query registry/rawjson registry/termtext", "defines the files of recordings; writes none of them"},
	{"registry/query", "registry/suggest", "knows neither the rows it matches nor a terminal"},
	{"registry/export", "registry registry/names registry/rawjson registry/recording registry/termtext", "writes recorded traffic; reads only lines of recordings"},
	{"registry/rule", "registry registry/query registry/rawjson registry/recording registry/suggest registry/termtext", "defines rules about requests; applies none of them"},
	{"registry/compare", "registry registry/definition registry/rawjson registry/recording registry/termtext", "compares what others recorded; knows no client or UI"},
	{"registry/savedcall", "registry/compare registry/definition registry/rawjson registry/recording registry/suggest registry/termtext registry/yamltext", "defines saved calls and their checks; sends none and reads no file"},
	{"registry/names", "", "a leaf: maps names without the catalog"},
	{"registry/suggest", "", "a leaf"},
	{"registry/yamltext", "", "a leaf"},
	{"registry/repair", "registry/rawjson", "knows what SDKs accept; knows no server or client"},

	{"gateway", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/intercept gateway/jsonrpc gateway/mcpclient gateway/memlimit gateway/notify gateway/policy gateway/serverreq gateway/servers gateway/shape gateway/state gateway/tasks gateway/telemetry gateway/tracing gateway/upstream gateway/view registry registry/rawjson", "routes requests between clients and servers; knows no daemon, command or UI"},
	{"gateway/tasks", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/jsonrpc gateway/serverreq gateway/servers gateway/telemetry gateway/upstream gateway/upstream/wire gateway/view registry registry/rawjson", "follows tasks; the gateway resolves tools"},
	{"gateway/serverreq", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/jsonrpc gateway/oauth gateway/servers gateway/telemetry gateway/upstream registry registry/rawjson", "routes requests of servers; knows neither tasks nor notifications"},
	{"gateway/view", "gateway/config gateway/downstream gateway/jsonrpc gateway/policy gateway/serverreq gateway/servers gateway/state gateway/upstream registry registry/definition registry/rawjson registry/suggest", "decides what a client sees, not what its requests do"},
	{"gateway/policy", "gateway/config gateway/jsonrpc registry registry/definition registry/names registry/rawjson registry/suggest", "applies overrides to calls; the registry applies them to definitions"},
	{"gateway/shape", "registry/rawjson registry/repair", "checks the shape of results of any server; shares repairs with definitions"},
	{"gateway/notify", "gateway/config gateway/downstream gateway/inflight gateway/jsonrpc gateway/servers gateway/telemetry gateway/upstream gateway/view registry registry/rawjson", "notifies clients; knows neither requests of servers nor tasks"},
	{"gateway/inflight", "gateway/downstream gateway/jsonrpc gateway/telemetry gateway/tracing gateway/upstream gateway/upstream/wire registry registry/names registry/rawjson", "holds requests in flight, whatever their target"},
	{"gateway/servers", "gateway/childproc gateway/config gateway/downstream gateway/extensions gateway/jsonrpc gateway/memlimit gateway/oauth gateway/state gateway/telemetry gateway/upstream registry registry/rawjson registry/termtext", "starts and stops servers; knows no calls"},
	{"gateway/telemetry", "gateway/atomicfile gateway/config gateway/downstream gateway/jsonrpc gateway/state registry registry/rawjson registry/report", "records what others report"},
	{"gateway/intercept", "gateway/downstream gateway/jsonrpc gateway/state registry registry/rawjson registry/rule registry/termtext", "applies rules to requests; routes nothing"},
	{"gateway/recorder", "gateway/config gateway/telemetry registry registry/rawjson registry/recording", "a sink of telemetry: writes files of recordings"},
	{"gateway/tracing", "gateway/config gateway/downstream gateway/jsonrpc gateway/telemetry gateway/upstream gateway/upstream/wire registry registry/rawjson", "makes spans of requests and exports them; routes nothing"},
	{"gateway/upstream", "gateway/childproc gateway/config gateway/extensions gateway/jsonrpc gateway/memlimit gateway/oauth gateway/policy gateway/upstream/limiter gateway/upstream/stderr gateway/upstream/timing gateway/upstream/wire registry registry/rawjson registry/secrettext registry/termtext", "knows servers and no client"},
	{"gateway/upstream/timing", "registry/rawjson", "a leaf: timers and delays"},
	{"gateway/upstream/wire", "gateway/jsonrpc gateway/memlimit registry/rawjson", "reads streams; does not interpret their events"},
	{"gateway/childproc", "", "a leaf"},
	{"gateway/upstream/limiter", "", "a leaf"},
	{"gateway/upstream/stderr", "gateway/config", "explains stderr of a process by its config"},
	{"gateway/downstream", "gateway/jsonrpc gateway/memlimit registry/rawjson", "knows clients and no server"},
	{"gateway/jsonrpc", "gateway/memlimit registry/rawjson", "frames messages; does not interpret methods"},
	{"gateway/memlimit", "", "a leaf"},
	{"gateway/config/reference", "gateway/config registry/report", "describes the keys that the parser knows"},
	{"gateway/config", "gateway/filewatch gateway/state registry/definition registry/keymap registry/rawjson registry/rule registry/secrettext registry/suggest registry/termtext registry/yamltext", "parses and checks the config; applies none of it"},
	{"gateway/configedit", "gateway/atomicfile gateway/config gateway/state", "edits the text of the config for any caller"},
	{"gateway/serverentry", "gateway/clientconfig gateway/config gateway/configedit gateway/secrets registry/report registry/secrettext", "edits one entry of the config for a form; starts no server"},
	{"gateway/clientconfig", "gateway/atomicfile gateway/config gateway/configedit gateway/secrets gateway/state registry/secrettext registry/termtext", "knows the config files of clients and no command"},
	{"gateway/command", "gateway/archive gateway/atomicfile gateway/browser gateway/calltest gateway/childproc gateway/cli gateway/clientconfig gateway/config gateway/configedit gateway/daemon gateway/doctor gateway/jsonrpc gateway/mcpclient gateway/mcpregistry gateway/oauth gateway/policy gateway/recorder gateway/replay gateway/secrets gateway/servercheck gateway/servers gateway/stack gateway/state gateway/telemetry gateway/traffic gateway/view gateway/watcher registry registry/candidate registry/compare registry/definition registry/export registry/query registry/rawjson registry/recording registry/report registry/savedcall registry/termtext", "implements the commands; no package but main imports it"},
	{"gateway/calltest", "gateway/daemon gateway/jsonrpc gateway/mcpclient gateway/state registry registry/names registry/query registry/rawjson registry/report registry/savedcall registry/suggest registry/termtext", "runs saved calls; starts no gateway and prints nothing"},
	{"gateway/traffic", "registry registry/recording registry/termtext", "prints lines of any source; knows no daemon and no config"},
	{"gateway/doctor", "gateway/childproc gateway/config gateway/daemon gateway/extensions gateway/jsonrpc gateway/oauth gateway/policy gateway/state gateway/upstream gateway/upstream/stderr registry registry/definition registry/rawjson registry/report registry/termtext", "diagnoses servers with the code that connects to them"},
	{"gateway/servercheck", "gateway/childproc gateway/config gateway/doctor gateway/upstream gateway/upstream/stderr registry registry/names registry/rawjson registry/repair registry/report registry/termtext", "reads raw output of a server; asks doctor why it does not start"},
	{"gateway/mcpregistry", "gateway/atomicfile gateway/egress gateway/state registry/candidate registry/termtext", "turns entries of a registry into definitions; asks no user"},
	{"gateway/egress", "", "a leaf: which addresses a request may reach"},
	{"gateway/oauth", "gateway/atomicfile gateway/config gateway/egress gateway/secrets gateway/state registry/termtext", "gets and stores tokens; sends nothing else to servers"},
	{"gateway/state", "gateway/atomicfile registry registry/definition registry/rawjson", "reads and writes state files"},
	{"gateway/extensions", "registry/rawjson", "knows the extensions that both sides declare"},
	{"gateway/devloop", "gateway/childproc gateway/config gateway/filewatch gateway/state registry registry/termtext", "decides when to build and restart; does not know how servers start"},
	{"gateway/filewatch", "gateway/state", "watches files of any content"},
	{"registry/secrettext", "", "a leaf: one rule for masks, forms and the keyring"},
	{"registry/termtext", "", "a leaf: gateway and UI print the same safe text"},
	{"gateway/logs", "gateway/state registry/termtext", "writes log lines for terminals; rotates log files"},
	{"gateway/browser", "", "a leaf"},
	{"gateway/remoteui", "gateway/browser", "relays bytes of a terminal; does not know what the UI draws"},
	{"gateway/callstore", "registry/savedcall", "keeps saved calls in files; runs none"},
	{"gateway/daemon", "gateway/downstream gateway/jsonrpc gateway/logs gateway/state registry registry/recording registry/report registry/termtext", "defines the operations of a daemon, not how they are done"},
	{"gateway/secrets", "gateway/atomicfile gateway/state registry/termtext", "stores and fetches secrets for any caller"},
	{"gateway/atomicfile", "", "a leaf: replaces files of any content"},
	{"gateway/mcpclient", "gateway/jsonrpc registry/rawjson", "a client of a gateway; knows no daemon"},
	{"gateway/bridge", "gateway/jsonrpc gateway/mcpclient registry/rawjson", "knows the messages of a session, not where daemons are"},
	{"gateway/stack", "gateway gateway/callstore gateway/calltest gateway/childproc gateway/clientconfig gateway/config gateway/configedit gateway/daemon gateway/devloop gateway/doctor gateway/downstream gateway/filewatch gateway/jsonrpc gateway/logs gateway/mcpclient gateway/mcpregistry gateway/memlimit gateway/oauth gateway/policy gateway/recorder gateway/secrets gateway/serverentry gateway/servers gateway/state gateway/telemetry gateway/tracing gateway/upstream gateway/view registry registry/candidate registry/definition registry/rawjson registry/recording registry/report registry/rule registry/savedcall registry/termtext", "assembles a gateway"},
	{"gateway/serve", "gateway/archive gateway/atomicfile gateway/bridge gateway/childproc gateway/cli gateway/config gateway/daemon gateway/filewatch gateway/logs gateway/remoteui gateway/replay gateway/stack registry registry/rule registry/termtext", "the modes that serve run a stack"},
	{"gateway/cli", "gateway/config gateway/daemon gateway/logs gateway/oauth gateway/recorder gateway/secrets gateway/state gateway/telemetry registry/recording registry/suggest registry/termtext", "shared by all commands and modes; knows none of them"},
	{"gateway/watcher", "gateway/childproc gateway/jsonrpc gateway/mcpclient registry/rawjson registry/termtext", "reads resources as a client; opens no gateway"},
	{"gateway/archive", "gateway gateway/callstore gateway/config gateway/policy gateway/recorder gateway/telemetry gateway/view registry registry/candidate registry/rawjson registry/recording registry/report registry/savedcall registry/termtext", "shows recordings with the catalog's own code; starts no server"},
	{"gateway/demo", "", "a leaf: the demo servers"},
	{"gateway/replay", "gateway/config gateway/extensions gateway/jsonrpc gateway/oauth gateway/state gateway/upstream gateway/upstream/wire registry registry/compare registry/query registry/rawjson registry/recording registry/suggest registry/termtext", "replays recordings; knows no gateway and no command"},
	{"gateway/deploy/bundle", "", "a leaf: writes files of a release"},
	{"gateway/deploy/releasenotes", "", "a leaf: reads the changelog as text"},
	{"gateway/deploy/renamemodule", "", "a leaf: reads and writes the repository as text"},
	{"gateway/e2e", "", "tests the binary from outside"},
	{"gateway/e2e/...", "", "test the binary from outside"},
	{"gateway/internal/testserver", "", "a leaf: the server of tests and benchmarks"},
	{"gateway/bench", "registry/rawjson", "runs the binary and sends requests as clients do"},

	{"meta", "meta/embeddings meta/lua meta/search registry registry/rawjson", "defines the interface of the gateway that it calls"},
	{"meta/search", "registry registry/rawjson registry/suggest", "reads the catalog only"},
	{"meta/embeddings", "meta/search registry", "combines two ways to search the catalog"},
	{"meta/lua", "meta/lua/worker registry registry/rawjson", "scripts run in processes of their own: the interpreter is not in this one"},
	{"meta/lua/worker", "registry registry/rawjson registry/suggest", "both processes import it"},

	{"tui", "registry registry/export registry/keymap registry/query registry/report registry/suggest registry/termtext tui/activity tui/addserver tui/approve tui/breakpoints tui/compare tui/dialog tui/help tui/home tui/images tui/keys tui/list tui/palette tui/pane tui/paste tui/resourcehistory tui/saved tui/textfield tui/theme tui/uicontext tui/usage tui/viewer", "the UI defines the interfaces that it calls"},
	{"tui/checklist", "registry/termtext tui/list tui/theme", "a program of its own; knows no UI"},
	{"tui/help", "registry/keymap registry/termtext tui/keys tui/list tui/textfield tui/theme tui/uicontext tui/viewer", "shows the keys that the UI's root supplies"},
	{"tui/palette", "registry registry/keymap registry/query registry/report registry/suggest tui/dialog tui/keys tui/list tui/pane tui/textfield tui/theme tui/uicontext tui/viewer", "runs the commands that the UI's root supplies"},
	{"tui/uicontext", "registry registry/candidate registry/export registry/keymap registry/rawjson registry/recording registry/report registry/savedcall registry/termtext tui/keys tui/theme", "knows no pane and calls the UI through an interface"},
	{"tui/dialog", "registry registry/export registry/keymap registry/names registry/query registry/rawjson registry/report registry/savedcall registry/termtext tui/form tui/keys tui/list tui/textfield tui/theme tui/uicontext tui/viewer", "dialogs know no pane"},
	{"tui/pane", "registry registry/definition registry/keymap registry/query registry/rawjson registry/recording registry/report registry/termtext tui/activity tui/addserver tui/approve tui/build tui/compare tui/dialog tui/exchange tui/form tui/keys tui/list tui/resourcehistory tui/serverform tui/theme tui/timeline tui/uicontext tui/viewer", "panes do not know the UI's root"},
	{"tui/approve", "registry tui/keys tui/theme tui/uicontext tui/viewer", "approves tools for any pane; knows none"},
	{"tui/breakpoints", "registry registry/query registry/rawjson registry/rule registry/termtext tui/dialog tui/form tui/keys tui/list tui/theme tui/uicontext tui/viewer", "decides about requests for any pane; knows none"},
	{"tui/exchange", "registry registry/rawjson registry/recording registry/termtext tui/theme tui/timeline tui/uicontext tui/viewer", "describes records for any pane; knows none"},
	{"tui/serverform", "registry/rawjson registry/report registry/secrettext tui/dialog tui/form tui/keys tui/uicontext", "edits a server's entry for any pane; knows none"},
	{"tui/compare", "registry registry/compare tui/dialog tui/keys tui/theme tui/uicontext", "compares for any pane; knows none"},
	{"tui/home", "registry registry/keymap registry/recording registry/report registry/termtext tui/activity tui/approve tui/breakpoints tui/dialog tui/keys tui/list tui/pane tui/theme tui/timeline tui/uicontext", "a pane of its own; tui/pane does not know it"},
	{"tui/saved", "registry registry/export registry/keymap registry/rawjson registry/savedcall registry/suggest registry/termtext tui/compare tui/dialog tui/form tui/keys tui/list tui/pane tui/theme tui/uicontext tui/viewer", "a pane of its own; tui/pane does not know it"},
	{"tui/usage", "registry registry/keymap registry/report registry/termtext tui/chart tui/dialog tui/keys tui/list tui/pane tui/theme tui/uicontext tui/viewer", "a pane of its own; tui/pane does not know it"},
	{"tui/addserver", "registry/candidate registry/secrettext registry/termtext tui/dialog tui/form tui/keys tui/list tui/textfield tui/theme tui/uicontext", "adds servers for any pane; knows none"},
	{"tui/build", "registry registry/termtext tui/theme tui/viewer", "draws builds of servers; knows no pane"},
	{"tui/activity", "registry registry/report registry/termtext tui/chart tui/theme tui/uicontext tui/viewer", "counts and draws requests; knows no pane"},
	{"tui/resourcehistory", "registry registry/compare registry/rawjson registry/termtext tui/chart tui/compare tui/dialog tui/keys tui/list tui/theme tui/uicontext tui/viewer", "shows the history of any resource; knows no pane"},
	{"tui/chart", "registry/report registry/termtext tui/theme", "draws numbers of any source"},
	{"tui/viewer", "registry/rawjson registry/termtext tui/images tui/theme", "shows text of any source"},
	{"tui/timeline", "registry registry/rawjson registry/recording registry/termtext tui/list tui/theme", "draws records of any source"},
	{"tui/list", "registry/query registry/termtext tui/keys tui/theme", "draws any rows"},
	{"tui/textfield", "registry/termtext tui/theme", "edits text for any dialog"},
	{"tui/form", "registry/definition registry/keymap registry/rawjson registry/termtext tui/keys tui/textfield tui/theme", "edits values of any schema"},
	{"tui/paste", "registry/termtext", "a leaf: reads input, not what is done with it"},
	{"tui/keys", "registry/keymap", "binds keys to handlers"},
	{"tui/images", "", "a leaf: draws decoded pixels"},
	{"tui/termquery", "", "a leaf: must be initialised before Bubble Tea, so it imports next to nothing"},
	{"tui/theme", "registry/termtext tui/images", "knows the terminal's abilities, not what is drawn"},

	{"gateway/internal/repocheck", "", "reads the code as text"},
}

// sides are folders that must not import each other, not even in tests, with exceptions.
var sides = map[string]string{"registry": "", "gateway": "registry", "meta": "registry", "tui": "registry"}

func TestImportsAreAllowed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range load(t) {
		name := p.name
		row := rule(name)
		if row.name == "" {
			t.Errorf("%s is missing from rules in gateway/internal/repocheck/rules_test.go", name)
			continue
		}
		seen[row.name] = true
		for _, other := range ours(p.Imports) {
			if !slices.Contains(strings.Fields(row.imports), other) {
				t.Errorf("%s must not import %s: %s", name, other, row.why)
			}
		}
		side, _, _ := strings.Cut(name, "/")
		also, bound := sides[side]
		for _, other := range ours(slices.Concat(p.TestImports, p.XTestImports)) {
			if bound && !under(other, side) && !slices.ContainsFunc(strings.Fields(also), func(s string) bool { return under(other, s) }) {
				t.Errorf("tests of %s must not import %s: this side may only import %q", name, other, also)
			}
		}
	}
	for _, row := range rules {
		if !seen[row.name] && !strings.HasSuffix(row.name, "/...") {
			t.Errorf("rules contains %s, which is not a package", row.name)
		}
	}
}

// rule returns the row for a package.
func rule(name string) (found row) {
	for _, r := range rules {
		if r.name == name {
			return r
		}
		if above, below := strings.CutSuffix(r.name, "/..."); below && under(name, above) {
			found = r
		}
	}
	return found
}

func under(name, above string) bool { return name == above || strings.HasPrefix(name, above+"/") }

// bounds are line limits for packages that differ from maxLines. gateway/command has one
// file per command.
var bounds = map[string]int{"gateway": 3_800, "tui": 3_800, "gateway/command": 9_400, "gateway/config": 7_900, "registry": 7_300, "tui/pane": 6_900}

const (
	maxLines          = 6_800
	maxGatewayMethods = 45
)

func TestPackagesAreSmallEnough(t *testing.T) {
	for _, p := range load(t) {
		limit, bound := bounds[p.name]
		if !bound {
			limit = maxLines
		}
		if p.lines > limit {
			t.Errorf("%s has %d lines, limit %d", p.name, p.lines, limit)
		}
	}
}

func TestGatewayHasFewMethods(t *testing.T) {
	if n := methods(t, filepath.Join(root, "gateway"), "Gateway"); n > maxGatewayMethods {
		t.Errorf("Gateway has %d methods, limit %d; move some to a smaller type", n, maxGatewayMethods)
	}
}

// Every bridge, script and command is a process that runs all package initializers.
func TestNothingIsCompiledBeforeMain(t *testing.T) {
	for _, p := range load(t) {
		if under(p.name, tests) || under(p.name, "gateway/deploy") {
			continue
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range f.Decls {
				if vars, ok := d.(*ast.GenDecl); ok && compiles(vars) {
					t.Errorf("a variable in %s compiles a regexp at each start; use sync.OnceValue", path)
				}
			}
		}
	}
}

// compiles reports whether a declaration compiles a regexp at start. A function that is
// called later doesn't count.
func compiles(d *ast.GenDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "MustCompile" {
			found = true
		}
		_, later := n.(*ast.FuncLit)
		return !later
	})
	return found
}

// methods counts the methods of a type.
func methods(t *testing.T, dir, of string) (n int) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || strings.HasSuffix(path, "_test.go") {
				continue
			}
			recv := fn.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if id, ok := recv.(*ast.Ident); ok && id.Name == of {
				n++
			}
		}
	}
	return n
}

//go:generate go test -run ^TestLayoutIsCurrent$ . -update
var update = flag.Bool("update", false, "update the table of CONTRIBUTING.md")

const layoutBegins, layoutEnds = "<!-- Written by go generate ./gateway/internal/repocheck. -->\n", "<!-- End of the table. -->\n"

func TestLayoutIsCurrent(t *testing.T) {
	var table bytes.Buffer
	table.WriteString("\n| package | what it does |\n|---|---|\n")
	for _, p := range load(t) {
		if len(p.GoFiles) == 0 {
			continue // only tests
		}
		what := strings.TrimSuffix(p.Doc, ".")
		for _, kind := range []string{"Package ", "Command "} {
			what = strings.TrimPrefix(what, kind+p.name[strings.LastIndex(p.name, "/")+1:]+" ")
		}
		require.NotEmpty(t, what, "%s has no doc comment", p.name)
		require.LessOrEqual(t, len(what), 110, "the first sentence of the doc comment of %s is too long for the table", p.name)
		fmt.Fprintf(&table, "| `%s` | %s |\n", p.name, strings.ReplaceAll(what, "|", `\|`))
	}
	table.WriteString("\n")

	path := filepath.Join(root, "CONTRIBUTING.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), layoutBegins)
	_, after, ends := strings.Cut(rest, layoutEnds)
	require.True(t, begins && ends, "CONTRIBUTING.md lacks the markers of the table")
	current := before + layoutBegins + table.String() + layoutEnds + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(current), 0o644))
		return
	}
	require.True(t, current == string(text), "the table in CONTRIBUTING.md is stale; run go generate ./gateway/internal/repocheck")
}

func TestContributingNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	written, rest, _ := bytes.Cut(text, []byte(layoutBegins))
	_, after, _ := bytes.Cut(rest, []byte(layoutEnds))
	require.LessOrEqual(t, bytes.Count(written, []byte("\n"))+bytes.Count(after, []byte("\n")), 100, "CONTRIBUTING.md must be at most one page, without the table of packages")
	path := regexp.MustCompile("`((?:gateway|registry|tui|meta)/[a-z0-9/_.]+|[a-z.]+\\.(?:go|yaml|example))`")
	names := path.FindAllSubmatch(text, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		file, _, _ := strings.Cut(string(name[1]), ".Backend")
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("CONTRIBUTING.md refers to %s, which does not exist", name[1])
		}
	}
}

func load(t *testing.T) []source {
	t.Helper()
	all, err := packages(root)
	require.NoError(t, err)
	return all
}

// ours returns the internal packages among imports.
func ours(imports []string) (names []string) {
	for _, path := range imports {
		if name := within(path); name != "" {
			names = append(names, name)
		}
	}
	return names
}
