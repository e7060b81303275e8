package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// values are packages of text and numbers that all others use: to look into one is
// not a step of a walk. The demo servers are not on this side of the wire.
var values = []string{
	"gateway/config", "gateway/demo", "registry/termtext", "gateway/jsonrpc", "gateway/logs",
	"gateway/memlimit", "gateway/telemetry", "registry/rawjson", "registry/rawjson",
}

// visits is added to Goblin when it is built for a walk: each function says its
// package, and that of the function that called it.
const visits = `// Package visits records which functions are called, and from where.
package visits

import (
	"os"
	"runtime"
	"strings"
)

var out = func() *os.File {
	f, _ := os.OpenFile(os.Getenv("GOBLIN_VISITS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return f
}()

// At records a visit to a package.
func At(name string) {
	from := "-" // a goroutine's first function
	var stack [16]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])])
	for more := true; more && from == "-"; {
		var f runtime.Frame
		f, more = frames.Next()
		if rest, ours := strings.CutPrefix(f.Function, "%s/"); ours {
			last := strings.LastIndexByte(rest, '/') + 1
			rest = rest[:last+strings.IndexByte(rest[last:], '.')]
			if !strings.Contains(" %s ", " "+rest+" ") {
				from = rest
			}
		}
	}
	out.WriteString(from + ">" + name + "\n")
}
`

// instrumented builds Goblin with a record of visits into dir, and returns its path.
func instrumented(root, dir string, all map[string]built) (binary string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	replace := make(map[string]string)
	add := func(where, text string) error {
		file := filepath.Join(dir, fmt.Sprintf("f%d.go", len(replace)))
		replace[where] = file
		return os.WriteFile(file, []byte(text), 0o600)
	}
	if err := add(filepath.Join(root, "visits", "visits.go"), fmt.Sprintf(visits, module, strings.Join(values, " "))); err != nil {
		return "", err
	}
	for _, p := range all {
		if name := within(p.ImportPath); name == "" || slices.Contains(values, name) {
			continue
		}
		for _, name := range p.GoFiles {
			text, err := record(filepath.Join(p.Dir, name), within(p.ImportPath))
			if err == nil {
				err = add(filepath.Join(p.Dir, name), text)
			}
			if err != nil {
				return "", err
			}
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "goblin")
	build := exec.Command("go", "build", "-overlay", list, "-o", binary, ".")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, text)
	}
	return binary, nil
}

// record returns the text of a file with a visit at the beginning of each function
// of more than one statement: shorter ones are read where they are called.
func record(file, name string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var at []int
	ast.Inspect(f, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			body = n.Body
		case *ast.FuncLit:
			body = n.Body
		}
		if body != nil && len(body.List) > 1 {
			at = append(at, fset.Position(body.Lbrace).Offset+1)
		}
		return true
	})
	if len(at) == 0 {
		return string(src), nil
	}
	slices.Sort(at)
	clause := fset.Position(f.Name.End()).Offset
	var text strings.Builder
	text.Write(src[:clause])
	fmt.Fprintf(&text, "; import visits__ %q", module+"/visits")
	from := clause
	for _, to := range at {
		text.Write(src[from:to])
		fmt.Fprintf(&text, " visits__.At(%q);", name)
		from = to
	}
	text.Write(src[from:])
	return text.String(), nil
}

// step is a call from one package to another.
type step struct{ from, to string }

// peer is a client of an instrumented Goblin.
type peer struct {
	in     io.Writer
	out    *bufio.Reader
	visits string // file
	last   int
}

// ask sends a request and returns the result, and the steps from then until all was
// quiet.
func (p *peer) ask(method, params string) (result json.RawMessage, steps []step, err error) {
	before, err := os.ReadFile(p.visits)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	p.last++
	if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", p.last, method, params); err != nil {
		return nil, nil, err
	}
	var reply struct {
		ID            int
		Result, Error json.RawMessage
	}
	for reply.ID != p.last {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, nil, fmt.Errorf("read the answer to %s: %w", method, err)
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return nil, nil, err
		}
	}
	if reply.Error != nil {
		return nil, nil, fmt.Errorf("%s: %s", method, reply.Error)
	}
	after := before
	for {
		time.Sleep(300 * time.Millisecond)
		now, err := os.ReadFile(p.visits)
		if err != nil {
			return nil, nil, err
		}
		if len(now) == len(after) { // all is quiet
			for _, line := range strings.Fields(string(after[len(before):])) {
				from, to, _ := strings.Cut(line, ">")
				if from != to && from != "-" {
					steps = append(steps, step{from, to})
				}
			}
			return reply.Result, steps, nil
		}
		after = now
	}
}

const (
	envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	script   = `{"resources":[{"uri":"file:///a","name":"a"}],"tools":[{"name":"ask","inputSchema":{"type":"object"}}],
"on":{"tools/call ask":[{"do":"request","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}},{"do":"answers"}]}}`
	tries = 3 // what else goes on at the same time can only add to a walk
)

// walks follows two requests through an instrumented Goblin: a resources/read of a
// client with a session, and a tools/call of a stateless client whose server asks it.
func walks(out io.Writer, root string, all map[string]built) error {
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in a folder for such
	binary, err := instrumented(root, dir, all)
	if err != nil {
		return err
	}
	server := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", server, "./gateway/internal/fakeserver")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	read, err := shortest(dir, binary, func(p *peer) ([]step, error) {
		if _, _, err := p.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"measure","version":"1"}}`); err != nil {
			return nil, err
		}
		result, _, err := p.ask("resources/list", `{}`)
		if err != nil {
			return nil, err
		}
		var list struct{ Resources []struct{ URI string } }
		if err = json.Unmarshal(result, &list); err != nil || len(list.Resources) == 0 {
			return nil, errors.Join(err, fmt.Errorf("nothing is listed: %s", result))
		}
		_, steps, err := p.ask("resources/read", fmt.Sprintf(`{"uri":%q}`, list.Resources[len(list.Resources)-1].URI))
		return steps, err
	})
	if err != nil {
		return err
	}
	asked, err := shortest(dir, binary, func(p *peer) ([]step, error) {
		if _, _, err := p.ask("tools/list", `{`+envelope+`}`); err != nil {
			return nil, err
		}
		result, steps, err := p.ask("tools/call", `{"name":"s_ask","arguments":{},`+envelope+`}`)
		if err != nil {
			return nil, err
		}
		var demand struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
		if err := json.Unmarshal(result, &demand); err != nil {
			return nil, err
		}
		for key := range demand.InputRequests {
			_, more, err := p.ask("tools/call", fmt.Sprintf(
				`{"name":"s_ask","arguments":{},"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{}}},%s}`, demand.RequestState, key, envelope))
			return append(steps, more...), err
		}
		return nil, fmt.Errorf("nothing was asked: %s", result)
	})
	if err != nil {
		return err
	}
	show(out, "resources/read", read, all)
	show(out, "tools/call of a stateless client whose server asks it", asked, all)
	return nil
}

// shortest runs Goblin for a client some times, and returns the walk of fewest steps.
func shortest(dir, binary string, client func(*peer) ([]step, error)) (least []step, err error) {
	config := filepath.Join(dir, "goblin.yaml")
	// What is remembered is written when there is time, which may be during a walk.
	text := fmt.Sprintf("gateway: {remember: off}\nservers:\n  s:\n    command: %q\n    args: [%q]\n", filepath.Join(dir, "server"), filepath.Join(dir, "s.json"))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "s.json"), []byte(script), 0o600), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	for range tries {
		own, err := os.MkdirTemp(dir, "run") // Goblin looks at what happens beside its config
		if err != nil {
			return nil, err
		}
		record := filepath.Join(own, "visits")
		goblin := exec.Command(binary, "--config", config, "stdio", "--standalone")
		goblin.Env = append(os.Environ(), "GOBLIN_VISITS="+record, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		in, err := goblin.StdinPipe()
		if err != nil {
			return nil, err
		}
		stdout, err := goblin.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := goblin.Start(); err != nil {
			return nil, err
		}
		steps, failed := client(&peer{in: in, out: bufio.NewReader(stdout), visits: record})
		if err := errors.Join(failed, in.Close(), goblin.Wait()); err != nil {
			return nil, err
		}
		if least == nil || len(steps) < len(least) {
			least = steps
		}
	}
	return least, nil
}

// show prints a walk: its packages, and each arrow once, in the order in which it was
// first taken.
//
// What clients and servers send is handed up by downstream and upstream, which know
// nobody above them: so a request begins, and so its answer goes home. Every other call
// against the arrows of the imports is a turn back.
func show(out io.Writer, name string, steps []step, all map[string]built) {
	var rooms, arrows []string
	turns := 0
	for _, s := range steps {
		rooms = append(rooms, room(s.from), room(s.to))
		arrow := short(s.from) + " > " + short(s.to)
		if !arrives(s) && imports(all, s.to, s.from) {
			arrow = short(s.to) + " < " + short(s.from)
			turns++
		}
		if !slices.Contains(arrows, arrow) {
			arrows = append(arrows, arrow)
		}
	}
	fmt.Fprintf(out, "\n%s: %d packages, %d turns back\n  %s\n", name, len(slices.Compact(slices.Sorted(slices.Values(rooms)))), turns, strings.Join(arrows, ", "))
}

func arrives(s step) bool { return room(s.from) == "downstream" || room(s.from) == "upstream" }

// room is a package with those inside of it.
func room(name string) string {
	room, _, _ := strings.Cut(short(name), "/")
	return room
}

func short(name string) string { return strings.TrimPrefix(name, "gateway/") }

// imports reports whether a package imports the other, itself or by those between.
func imports(all map[string]built, name, other string) bool {
	for _, p := range all[module+"/"+name].Imports {
		if n := within(p); n != "" && (n == other || imports(all, n, other)) {
			return true
		}
	}
	return false
}
