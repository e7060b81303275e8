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

// rules has a row for each package: which of ours it may import, and why those and no
// others. A row that ends in "/..." stands for all packages below that have none.
var rules = []row{
	{"main", "gateway/cli gateway/command gateway/config gateway/daemon gateway/demo gateway/remoteui gateway/serve gateway/stack meta meta/lua meta/lua/worker tui tui/theme", "puts screens, meta tools and modes together; nobody imports it"},

	{"registry", "registry/cache registry/definition registry/names registry/rawjson registry/repair registry/suggest", "the catalog knows neither transports nor screens nor anybody who uses it"},
	{"registry/cache", "", "a leaf: bounded collections, whatever is in them"},
	{"registry/report", "", "a leaf: what people see of costs, not how they are counted"},
	{"registry/definition", "registry/rawjson registry/suggest", "changes and compares definitions, whosever they are"},
	{"registry/rawjson", "", "knows JSON only"},
	{"registry/keymap", "", "a leaf: which keys there are, not what they do"},
	{"registry/names", "", "a leaf: how things are listed, whatever they are"},
	{"registry/suggest", "", "a leaf"},
	{"registry/repair", "registry/rawjson", "knows what SDKs accept, and no server or client"},

	{"gateway", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/jsonrpc gateway/mcpclient gateway/memlimit gateway/notify gateway/policy gateway/serverreq gateway/servers gateway/shape gateway/state gateway/tasks gateway/telemetry gateway/upstream gateway/view registry registry/rawjson", "joins clients and servers, and knows no daemon, command or screen"},
	{"gateway/tasks", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/jsonrpc gateway/serverreq gateway/servers gateway/telemetry gateway/upstream gateway/upstream/wire gateway/view registry registry/rawjson", "follows tasks; how a tool is found is the root's"},
	{"gateway/serverreq", "gateway/config gateway/downstream gateway/extensions gateway/inflight gateway/jsonrpc gateway/oauth gateway/servers gateway/telemetry gateway/upstream registry registry/rawjson", "asks clients, and knows neither tasks nor news"},
	{"gateway/view", "gateway/config gateway/downstream gateway/jsonrpc gateway/policy gateway/serverreq gateway/servers gateway/state gateway/upstream registry registry/definition registry/rawjson registry/suggest", "says what a client sees, and not what it does there"},
	{"gateway/policy", "gateway/config gateway/jsonrpc registry registry/definition registry/names registry/rawjson registry/suggest", "what overrides do to calls; what they make of definitions is the registry's"},
	{"gateway/shape", "registry/rawjson registry/repair", "the shape of results, whichever server sent them; members that definitions have, too, are repaired as there"},
	{"gateway/notify", "gateway/config gateway/downstream gateway/inflight gateway/jsonrpc gateway/servers gateway/telemetry gateway/upstream gateway/view registry registry/rawjson", "tells clients, and knows neither questions nor tasks"},
	{"gateway/inflight", "gateway/downstream gateway/jsonrpc gateway/telemetry gateway/upstream gateway/upstream/wire registry registry/names registry/rawjson", "what is under way, wherever it goes"},
	{"gateway/servers", "gateway/childproc gateway/config gateway/downstream gateway/extensions gateway/jsonrpc gateway/memlimit gateway/oauth gateway/state gateway/telemetry gateway/upstream registry registry/rawjson registry/termtext", "runs servers, and knows no calls"},
	{"gateway/telemetry", "gateway/atomicfile gateway/config gateway/downstream gateway/jsonrpc gateway/state registry registry/rawjson registry/report", "records what others say happened"},
	{"gateway/upstream", "gateway/childproc gateway/config gateway/extensions gateway/jsonrpc gateway/memlimit gateway/oauth gateway/policy gateway/upstream/limiter gateway/upstream/stderr gateway/upstream/timing gateway/upstream/wire registry registry/rawjson registry/termtext", "knows servers, and no client"},
	{"gateway/upstream/timing", "registry/rawjson", "a leaf: how long to wait, for whatever"},
	{"gateway/upstream/wire", "gateway/jsonrpc gateway/memlimit registry/rawjson", "reads a stream, whatever its events say"},
	{"gateway/childproc", "", "a leaf"},
	{"gateway/upstream/limiter", "", "a leaf"},
	{"gateway/upstream/stderr", "gateway/config", "texts of any process, and the config that explains them"},
	{"gateway/downstream", "gateway/jsonrpc gateway/memlimit registry/rawjson", "knows clients, and no server"},
	{"gateway/jsonrpc", "gateway/memlimit registry/rawjson", "frames, whatever they say"},
	{"gateway/memlimit", "", "a leaf"},
	{"gateway/config", "gateway/state registry/definition registry/keymap registry/rawjson registry/suggest", "knows what may be written, not what becomes of it"},
	{"gateway/configedit", "gateway/atomicfile gateway/config gateway/state", "changes the config's text, for whomever"},
	{"gateway/clientconfig", "gateway/atomicfile gateway/config gateway/configedit gateway/secrets gateway/state", "knows the files of other programs, and no command"},
	{"gateway/command", "gateway/browser gateway/childproc gateway/cli gateway/clientconfig gateway/config gateway/configedit gateway/daemon gateway/doctor gateway/jsonrpc gateway/mcpclient gateway/mcpregistry gateway/oauth gateway/policy gateway/secrets gateway/servers gateway/stack gateway/state gateway/telemetry gateway/view registry registry/definition registry/rawjson registry/report registry/termtext", "finds things by their names, whatever becomes of them"},
	{"gateway/doctor", "gateway/childproc gateway/config gateway/daemon gateway/extensions gateway/jsonrpc gateway/oauth gateway/policy gateway/state gateway/upstream gateway/upstream/stderr registry registry/definition registry/rawjson registry/report registry/termtext", "looks at servers as the fleet does, for whomever"},
	{"gateway/mcpregistry", "gateway/atomicfile gateway/egress gateway/state registry/termtext", "makes definitions of what a registry says, and asks no user"},
	{"gateway/egress", "", "a leaf: which addresses a request may go to, whatever it asks for"},
	{"gateway/oauth", "gateway/atomicfile gateway/config gateway/egress gateway/secrets gateway/state registry/termtext", "gets and keeps tokens, and sends nothing else to servers"},
	{"gateway/state", "gateway/atomicfile registry registry/rawjson", "a leaf: keeps bytes, whatever they list"},
	{"gateway/extensions", "registry/rawjson", "what both sides declare, whoever asks"},
	{"gateway/filewatch", "gateway/state", "looks at files, whatever is in them"},
	{"registry/termtext", "", "a leaf, and the only part of the gateway that screens may import"},
	{"gateway/logs", "gateway/state registry/termtext", "log lines are shown in terminals; a full log is read to keep its end"},
	{"gateway/browser", "", "a leaf"},
	{"gateway/remoteui", "gateway/browser", "bytes of a terminal over a connection, whatever is drawn"},
	{"gateway/daemon", "gateway/downstream gateway/jsonrpc gateway/logs gateway/state registry registry/report registry/termtext", "what can be asked of a gateway, by whomever; not how it is done"},
	{"gateway/secrets", "gateway/atomicfile gateway/state registry/termtext", "keeps and fetches texts, whoever needs them"},
	{"gateway/atomicfile", "", "a leaf: knows nothing of what is in a file"},
	{"gateway/mcpclient", "gateway/jsonrpc registry/rawjson", "a leaf: knows nobody who hangs"},
	{"gateway/bridge", "gateway/jsonrpc gateway/mcpclient registry/rawjson", "knows the messages of a session, not where daemons are"},
	{"gateway/stack", "gateway gateway/childproc gateway/config gateway/configedit gateway/daemon gateway/doctor gateway/downstream gateway/filewatch gateway/jsonrpc gateway/logs gateway/mcpclient gateway/memlimit gateway/oauth gateway/policy gateway/servers gateway/state gateway/telemetry gateway/upstream gateway/view registry registry/definition registry/report registry/termtext", "puts a gateway together"},
	{"gateway/serve", "gateway/bridge gateway/childproc gateway/cli gateway/config gateway/daemon gateway/logs gateway/remoteui gateway/stack", "the modes that serve run an instance"},
	{"gateway/cli", "gateway/config gateway/daemon gateway/logs gateway/oauth gateway/secrets gateway/state gateway/telemetry registry/suggest registry/termtext", "what all commands and modes say alike; none of them"},
	{"gateway/demo", "", "a leaf: servers of their own"},
	{"gateway/deploy/bundle", "", "a leaf: makes files of a release"},
	{"gateway/e2e", "", "sees the binary from outside"},
	{"gateway/e2e/...", "", "see the binary from outside"},
	{"gateway/internal/testserver", "", "a server of its own"},
	{"gateway/bench", "registry/rawjson", "runs the binary, and asks it as clients do"},

	{"meta", "meta/embeddings meta/lua meta/search registry registry/rawjson", "defines the interface of the gateway that it calls"},
	{"meta/search", "registry registry/rawjson registry/suggest", "reads the catalog only"},
	{"meta/embeddings", "meta/search registry", "joins two ways to search the catalog"},
	{"meta/lua", "meta/lua/worker registry registry/rawjson", "scripts run in processes of their own: the interpreter is not in this one"},
	{"meta/lua/worker", "registry registry/rawjson registry/suggest", "both processes import it"},

	{"tui", "registry registry/keymap registry/suggest registry/termtext tui/dialog tui/images tui/keys tui/list tui/pane tui/textfield tui/theme tui/uicontext tui/usage tui/viewer", "the screen defines the interfaces that it calls"},
	{"tui/uicontext", "registry registry/keymap registry/report registry/termtext tui/keys tui/theme", "knows no pane: what it asks of the screen is an interface"},
	{"tui/dialog", "registry registry/keymap registry/names registry/rawjson registry/termtext tui/form tui/keys tui/list tui/textfield tui/theme tui/uicontext tui/viewer", "asks by dialogs, and knows no pane"},
	{"tui/pane", "registry registry/definition registry/keymap registry/rawjson registry/report registry/termtext tui/dialog tui/form tui/keys tui/list tui/theme tui/uicontext tui/viewer", "knows no app"},
	{"tui/usage", "registry registry/keymap registry/report registry/termtext tui/dialog tui/keys tui/list tui/pane tui/theme tui/uicontext tui/viewer", "is a pane like those of tui/pane, which do not know it"},
	{"tui/viewer", "registry/rawjson registry/termtext tui/images tui/theme", "shows text, wherever it is from"},
	{"tui/list", "registry/termtext tui/keys tui/theme", "a leaf"},
	{"tui/textfield", "registry/termtext tui/theme", "holds text, wherever it is typed"},
	{"tui/form", "registry/keymap registry/rawjson registry/termtext tui/keys tui/textfield tui/theme", "asks for values, whatever they are for"},
	{"tui/keys", "registry/keymap", "finds keys, whatever they do"},
	{"tui/images", "", "a leaf: draws pixels, whoever decoded them"},
	{"tui/theme", "tui/images", "what a terminal can show, whatever that is"},

	{"gateway/internal/repocheck", "", "reads the code as text"},
}

// sides do not import each other, not even in tests, but for what is said.
var sides = map[string]string{"registry": "", "gateway": "registry", "meta": "registry", "tui": "registry registry/termtext"}

func TestImportsAreAllowed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range load(t) {
		name := p.name
		row := rule(name)
		if row.name == "" {
			t.Errorf("%s has no row in rules of gateway/internal/repocheck/rules_test.go", name)
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
				t.Errorf("tests of %s must not import %s: this side may import %q only", name, other, also)
			}
		}
	}
	for _, row := range rules {
		if !seen[row.name] && !strings.HasSuffix(row.name, "/...") {
			t.Errorf("rules have a row for %s, which is no package", row.name)
		}
	}
}

// rule is the row for a package.
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

// bounds are the lines that packages may have, but for maxLines.
var bounds = map[string]int{"gateway": 3_800, "tui": 3_800, "gateway/command": 7_000}

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
			t.Errorf("%s has %d lines, and may have %d", p.name, p.lines, limit)
		}
	}
}

func TestGatewayHasFewMethods(t *testing.T) {
	if n := methods(t, filepath.Join(root, "gateway"), "Gateway"); n > maxGatewayMethods {
		t.Errorf("Gateway has %d methods, and may have %d: give them to a type with less to look after", n, maxGatewayMethods)
	}
}

// Every bridge, script and command is a process that begins with all of this.
func TestNothingIsCompiledBeforeMain(t *testing.T) {
	for _, p := range load(t) {
		if under(p.name, tests) {
			continue
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range f.Decls {
				if vars, ok := d.(*ast.GenDecl); ok && compiles(vars) {
					t.Errorf("a variable in %s is a regexp that is compiled at each start: make it a sync.OnceValue", path)
				}
			}
		}
	}
}

// compiles says whether a declaration compiles an expression, and not only a function
// of it that is called later.
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

// methods counts those of a type.
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
var update = flag.Bool("update", false, "write the table of CONTRIBUTING.md anew")

const layoutBegins, layoutEnds = "<!-- Written by go generate ./gateway/internal/repocheck. -->\n", "<!-- End of the table. -->\n"

func TestLayoutIsCurrent(t *testing.T) {
	var table bytes.Buffer
	table.WriteString("\n| package | what it does |\n|---|---|\n")
	for _, p := range load(t) {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		what := strings.TrimSuffix(p.Doc, ".")
		for _, kind := range []string{"Package ", "Command "} {
			what = strings.TrimPrefix(what, kind+p.name[strings.LastIndex(p.name, "/")+1:]+" ")
		}
		require.NotEmpty(t, what, "%s has no doc comment", p.name)
		require.LessOrEqual(t, len(what), 110, "the first sentence of the doc of %s is too long for the table", p.name)
		fmt.Fprintf(&table, "| `%s` | %s |\n", p.name, strings.ReplaceAll(what, "|", `\|`))
	}
	table.WriteString("\n")

	path := filepath.Join(root, "CONTRIBUTING.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), layoutBegins)
	_, after, ends := strings.Cut(rest, layoutEnds)
	require.True(t, begins && ends, "CONTRIBUTING.md has no place for the table")
	current := before + layoutBegins + table.String() + layoutEnds + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(current), 0o644))
		return
	}
	require.True(t, current == string(text), "the table of CONTRIBUTING.md is not current: run go generate ./gateway/internal/repocheck")
}

// A path in backticks in CONTRIBUTING.md leads somewhere.
func TestContributingNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 200, "CONTRIBUTING.md is one page")
	path := regexp.MustCompile("`((?:gateway|registry|tui|meta)/[a-z0-9/_.]+|[a-z.]+\\.(?:go|yaml|example))`")
	names := path.FindAllSubmatch(text, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		file, _, _ := strings.Cut(string(name[1]), ".Backend")
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Errorf("CONTRIBUTING.md names %s, which does not exist", name[1])
		}
	}
}

func load(t *testing.T) []source {
	t.Helper()
	all, err := packages(root)
	require.NoError(t, err)
	return all
}

// ours are the packages of this module among imports.
func ours(imports []string) (names []string) {
	for _, path := range imports {
		if name := within(path); name != "" {
			names = append(names, name)
		}
	}
	return names
}
