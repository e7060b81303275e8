package lua_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/meta/lua"
	"goblin/meta/lua/worker"
)

func run(t *testing.T, h lua.Backend, script string) (lua.Result, error) {
	t.Helper()
	return runner.Run(context.Background(), script, h, lua.Limits{Calls: 1000, Timeout: 20 * time.Second})
}

// spec is a script and its result as JSON.
type spec struct{ name, script, want string }

// check runs all specs as functions of one script, because each process takes time to
// start.
func check(t *testing.T, specs []spec) {
	t.Helper()
	var script strings.Builder
	script.WriteString(`local got = {} local function add(ok, ...) local n, v = select("#", ...), {...} ` +
		`got[#got + 1] = ok and json.encode(n == 1 and v[1] or n ~= 1 and v) or "failed: " .. tostring(...) end `)
	for _, c := range specs {
		// The script stays in line 1, as when it runs alone.
		fmt.Fprintf(&script, "add(pcall(function(...) %s end)) ", strings.ReplaceAll(c.script, "\n", " "))
	}
	script.WriteString("return got")
	res, err := run(t, newFakeGateway(t), script.String())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(res.JSON, &got); err != nil || len(got) != len(specs) {
		t.Fatalf("%d answers to %d scripts, %v: %s", len(got), len(specs), err, res.JSON)
	}
	for i, c := range specs {
		t.Run(c.name, func(t *testing.T) {
			if got[i] != c.want {
				t.Fatalf("%s\n got %s\nwant %s", c.script, got[i], c.want)
			}
		})
	}
}

// checkAlone runs each spec as its own script.
func checkAlone(t *testing.T, specs []spec) {
	t.Helper()
	for _, c := range specs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, err := run(t, newFakeGateway(t), c.script)
			if err != nil || string(res.JSON) != c.want {
				t.Fatalf("%s\n got %s, %v\nwant %s", c.script, res.JSON, err, c.want)
			}
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	checkAlone(t, []spec{
		{"R1-12 structured content is a table", `result(calculator.add({a=10,b=20}):await())`, `{"sum":30}`},
		{"R1-12 result is replaced by a later one", `result(1) result(2)`, `2`},
		{"R1-12 return wins", `result(1) return 2`, `2`},
		{"R1-12 several values are an array", `return 1, nil, "x"`, `[1,null,"x"]`},
		{"R1-12 a scalar", `return "a"`, `"a"`},
	})
	check(t, []spec{
		{"R1-12 a plain call gives the result", `local r = calculator.add{a=1,b=2} return r.sum`, `3`},
		{"R1-12 a number can be awaited", `return calculator.add{a=1,b=2}.sum:await()`, `3`},
		{"R1-12 null can be awaited", `return notes.echo{x=null}.x:await() == null`, `true`},
		{"R1-12 a table's own await is called", `local t = {await=function(self) return self.v end, v=4} return t:await()`, `4`},
		{"R1-12 a single text is a string", `return calculator.div{a=1,b=4}`, `"0.25"`},
		{"R1-12 a single JSON text is a table", `return data_server.get_user{id=5}.id`, `5`},
		{"R1-12 anything else is the whole result", `return #notes.link{}.content`, `2`},
		{"R1-12 an array", `return {1,2,3}`, `[1,2,3]`},
		{"R1-12 no arguments", `return notes.echo()`, `{}`},
		{"R1-12 as a method", `return notes:echo{a=1}`, `{"a":1}`},
		{"R1-13 two servers in one script", `return {calculator.add{a=1,b=1}.sum, notes.echo{x="y"}}`, `[2,{"x":"y"}]`},
		{"R1-13 URIs in results are read back", `return resources.read(notes.link{}.content[2].uri)`, `"hello"`},
		{"a server that has not listed tools yet is asked", `return cold.warm{}`, `"up by now"`},
		{"resources.read parses JSON", `return resources.read("mcp://notes/file:///b.json").n[2]`, `2`},
		{"resources.read of bytes", `return resources.read("mcp://notes/file:///c.png").contents[1].blob`, `"AAEC"`},
		{
			"resources.list", `return resources.list{server="notes", mime="text/*"}`,
			`[{"uri":"mcp://notes/file:///a.txt","name":"a","mimeType":"text/plain","size":5,"server":"notes"}]`,
		},
		{"resources.list takes types in any case, as searches do", `return #resources.list{mime="TEXT/plain"}, #resources.list{mime="text/none"}`, `[1,0]`},
		{"resources.list in pages", `local l = resources.list{limit=1, offset=1} return #l, l[1].name`, `[1,"b"]`},
		{"prompts.get makes strings of arguments", `return prompts.get("notes/greet", {n=1}).messages[1].content.text`, `"notes/greet {\"n\":\"1\"}"`},
		{"prompts.list", `return prompts.list{}[1].name`, `"notes/greet"`},
		{"tools.list", `return tools.list{server="calculator", limit=1}`, `[{"name":"calculator_add","tool":"add","server":"calculator","description":"Adds."}]`},
		{
			"search", `return search("add", {kind="tool", server="calculator", limit=3})`,
			`[{"name":"calculator_add","query":"add","kind":"tool","server":"calculator","limit":3}]`,
		},
	})
}

func TestIdentifiers(t *testing.T) {
	t.Parallel()
	check(t, []spec{
		{"R1-15 other characters are _", `return data_server.get_user{a=1}`, `{"a":1}`},
		{"R1-15 a digit in front", `return _123service.who{}`, `"123service"`},
		{"R1-15 a keyword", `return _while.who{}`, `"while"`},
		{"R1-15 a tool that is a keyword", `return type(data_server._while)`, `"function"`},
		{"R1-15 the original server", `return servers["data-server"]["get-user"]{a=1}`, `{"a":1}`},
		{"R1-15 both of one identifier", `return servers["my.api"].who{} .. " " .. servers["my-api"].who{}`, `"my.api my-api"`},
		{"R1-15 using an identifier of two is an error", `return select(2, pcall(function() return my_api.who{} end))`, `"script:1: my_api is the identifier of 2 servers; use servers[\"my.api\"] or servers[\"my-api\"]"`},
		{"R1-15 using an identifier of two tools is an error", `return select(2, pcall(function() return data_server.a_b{} end))`, `"script:1: a_b is the identifier of 2 tools of server \"data-server\"; use data_server[\"a-b\"] or data_server[\"a.b\"]"`},
		{"R1-15 the standard library is never shadowed", `return string.rep("x", 2), _string.who{}, servers.string.who{}`, `["xx","string","string"]`},
		{"R1-15 nor what the sandbox leaves out", `return os == nil, _os.who{}`, `[true,"os"]`},
		{"servers can be gone through", `local n = 0 for name in pairs(servers) do n = n + 1 end return n`, `10`},
	})
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	texts := []string{
		`{}`, `[]`, `{"a":[],"b":{}}`, `[[],{}]`, `[1,null,3]`, `{"x":null}`, `9007199254740993`, `-123456789012345678901234567890`,
		`0.1`, `1e+300`, `-0.5`, `"\u0000é\"\\"`, `{"z":1,"a":2,"m":3}`, `[true,false]`, `{"1":"a"}`, `1234567890123456`,
		`{"a":{"b":{"c":[[[1]]]}}}`, `"</script>"`, `{"]]":"null","\"]":"--"}`,
	}
	h := newFakeGateway(t)
	res, err := run(t, h, `local got = {} for i, text in ipairs{[==[`+strings.Join(texts, `]==], [==[`)+
		`]==]} do got[i] = notes.echo{v = json.decode(text)}.v end return got`)
	if want := "[" + strings.Join(texts, ",") + "]"; err != nil || string(res.JSON) != want {
		t.Fatalf("got %s, %v\nwant %s", res.JSON, err, want)
	}
	for i, text := range texts {
		if want := `tools/call {"name":"notes_echo","arguments":{"v":` + text + `}}`; h.requests[i] != want {
			t.Errorf("asked %s\n want %s", h.requests[i], want)
		}
	}
}

func TestJSONOfScripts(t *testing.T) {
	t.Parallel()
	check(t, []spec{
		{"gaps are null", `return {1, nil, 3}`, `[1,null,3]`},
		{"far apart is an object", `return {[1000]="a"}`, `{"1000":"a"}`},
		{"an empty table is an object", `return {}`, `{}`},
		{"an empty array", `return json.array{}`, `[]`},
		{"a decoded array that was emptied stays one", `local a = json.decode("[1]") table.remove(a) return a`, `[]`},
		{"mixed keys", `return {"x", y=1}`, `{"1":"x","y":1}`},
		{"whole floats", `return {1e15, 2^53, 1e100}`, `[1000000000000000,9007199254740992,1e+100]`},
		{"exact integers compute as numbers", `local n = json.decode("9007199254740993") return {tostring(n), n - 9007199254740992, tonumber(n), n == json.decode("9007199254740993")}`, `["9007199254740993",0,9007199254740992,true]`},
		{"json.encode", `return json.encode{a={1,2}}`, `"{\"a\":[1,2]}"`},
		{"bad JSON", `return select(2, pcall(json.decode, "{")):match("^[^:]*:?%d*:? ?json.decode") ~= nil`, `true`},
	})
}

// TestLanguage covers Goblin's changes to the language of gopher-lua.
func TestLanguage(t *testing.T) {
	t.Parallel()
	check(t, []spec{
		{"closures share variables after a caught error", `local n = 0 local function inc() n = n + 1 end pcall(error, "x") inc() return n`, `1`},
		{"pcall passes values", `return pcall(function(...) return ... end, 1, nil, 3)`, `[true,1,null,3]`},
		{"xpcall calls the handler", `return xpcall(function() error("x", 0) end, function(e) return "h:" .. e end)`, `[false,"h:x"]`},
		{"error values", `local ok, e = pcall(error, {code=5}) return e.code`, `5`},
		{"coroutines", `local c = coroutine.wrap(function() for i=1,3 do coroutine.yield(i) end end) return {c(), c(), c()}`, `[1,2,3]`},
		{"a coroutine's error", `local c = coroutine.create(function() error("x", 0) end) return coroutine.resume(c)`, `[false,"x"]`},
		{"calls in coroutines", `local c = coroutine.wrap(function() coroutine.yield(calculator.add{a=1,b=2}.sum) end) return c()`, `3`},
		{"the script has no arguments", `return select("#", ...)`, `0`},
		{"tonumber", `return {tonumber("0x10"), tonumber(" 5 "), tonumber("z", 36), tonumber("1e2"), tonumber("x") == nil, tonumber("inf") == nil}`, `[16,5,35,100,true,true]`},
		{"match", `return ("2024-01-31"):match("(%d+)-(%d+)-(%d+)")`, `["2024","01","31"]`},
		{"match of nothing", `return ("x"):match("y") == nil`, `true`},
		{"position captures", `return ("abc"):match("()b()")`, `[2,3]`},
		{"back references", `return ("'it' \"x'"):match("(['\"])(.-)%1")`, `["'","it"]`},
		{"format", `return string.format("%5d|%-5s|%05.2f|%x|%q|%%|%g|%s|%s", 42, "ab", 3.14159, 255, "ab", 0.1, true, json.decode("9007199254740993"))`, `"   42|ab   |03.14|ff|\"ab\"|%|0.1|true|9007199254740993"`},
		{"sub and rep", `return ("hello"):sub(2, -2), ("hello"):sub(-3), ("ab"):rep(3), ("x"):rep(-1), ("abc"):reverse(), ("aB"):upper()`, `["ell","llo","ababab","","cba","AB"]`},
	})
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	var outside []spec
	for _, name := range []string{
		"rawget(_G, 'os')", // a server has this name; its table is _os
		"io", "require", "dofile", "loadfile", "package", "debug", "load", "loadstring", "collectgarbage",
		"module", "newproxy", "getfenv", "setfenv", "_printregs", "string.dump", "channel", "_GOPHER_LUA_VERSION",
	} {
		outside = append(outside, spec{"R1-14 nothing reaches out of the script by " + name, "return " + name + " == nil", "true"})
	}
	check(t, outside)
	check(t, []spec{
		{"R1-14 the metatable of strings is protected", `return getmetatable("")`, `"protected"`},
		{"R1-14 and of the globals", `return (pcall(setmetatable, _G, {}))`, `false`},
		{"R1-14 and of servers", `return (pcall(setmetatable, calculator, {}))`, `false`},
	})
	t.Run("R1-14 runs share nothing", func(t *testing.T) {
		h := newFakeGateway(t)
		if _, err := run(t, h, `string.rep = nil leak = 1 math.pi = 3 servers.calculator.add = 1`); err != nil {
			t.Fatal(err)
		}
		res, err := run(t, h, `return leak == nil and string.rep("x", 1) == "x" and math.pi > 3.1 and calculator.add{a=1,b=1}.sum`)
		if err != nil || string(res.JSON) != "2" {
			t.Fatalf("%s, %v", res.JSON, err)
		}
	})
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, script string
		kind         lua.Kind
		want         string
	}{
		{"R1-16 a tool's error", "\n\nlocal x = calculator.div{a=1,b=0}", lua.Runtime, "script:3: calculator.div: division by zero"},
		{"R1-16 an error that was answered", "return data_server.fetch{}", lua.Runtime, "script:1: data-server.fetch: no such row"},
		{"R1-16 an error of the script", "local t = 1\nerror{message='mine'}", lua.Runtime, "script: mine"},
		{"a syntax error has a line", "local x = 1\nlocal = 2", lua.Syntax, `script:2: syntax error near "="`},
		{"an end is missing", "if true then\nx = 1\n", lua.Syntax, `script:2: syntax error at the end of the script`},
		{"an error of the compiler", "break", lua.Syntax, `script:1: no loop to break`},
		{"an unknown server", "\nreturn data_servr.fetch{}", lua.Runtime, `script:2: attempt to index a non-table object(nil) with key 'fetch'; unknown name "data_servr"; did you mean "data_server"?`},
		{"an unknown server by name", `return servers["data-srver"]`, lua.Runtime, `script:1: unknown server "data-srver"; did you mean "data-server"?`},
		{"an unknown tool", "return calculator.ad{}", lua.Runtime, `script:1: server "calculator" has no tool "ad"; did you mean "add"?`},
		{"an unknown function", "prinnt(1)", lua.Runtime, `script:1: attempt to call a non-function object; unknown name "prinnt"; did you mean "print"?`},
		{"R1-14 what the sandbox leaves out", "return io.open('/etc/passwd')", lua.Runtime, `script:1: attempt to index a non-table object(nil) with key 'open'; io is not available in scripts`},
		{"an unknown server of a list", `tools.list{server="calculatr"}`, lua.Runtime, `script:1: unknown server "calculatr"; did you mean "calculator"?`},
		{"an unknown function of a library", `resources.get("x")`, lua.Runtime, `script:1: resources has no "get"; available: list, read`},
		{"an unknown option", `search("x", {kinds="tool"})`, lua.Runtime, `script:1: search has no option "kinds"; available: kind, server, limit`},
		{"arguments by position", `calculator.add{1, 2}`, lua.Runtime, `script:1: calculator.add takes its arguments by name: add{name = value}`},
		{"arguments that are no table", `calculator.add(1, 2)`, lua.Runtime, `script:1: calculator.add takes a table of arguments, not a number`},
		{"a function cannot be JSON", `return {f=print}`, lua.Runtime, `script: the returned value cannot be JSON: it contains a function`},
		{"a table in itself", `local t = {} t.t = t result(t)`, lua.Runtime, `script:1: result: the value cannot be JSON: a table contains itself`},
		{"R1-18 a shadowed result", "local result = calculator.add{a=1,b=2}\nresult(result)", lua.Runtime, "script:2: attempt to call a non-function object. Line 1 redefines `result`, so result(…) no longer calls Goblin's function: use another name, or `return` the value."},
		{"a pattern", `return ("x"):find("[a")`, lua.Runtime, `script:1: unexpected EOS at 1`},
		{"recursion", "local function f() return 1 + f() end f()", lua.Runtime, "script:1: stack overflow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, newFakeGateway(t), c.script)
			var e *lua.Error
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.HasPrefix(e.Error(), c.want) && e.Message != c.want {
				t.Fatalf("%s\n got %v\nwant %s: %s", c.script, err, c.kind, c.want)
			}
		})
	}
}

func TestCaughtErrors(t *testing.T) {
	t.Parallel()
	check(t, []spec{
		{
			"R1-16 pcall catches what a tool reports", `local ok, e = pcall(calculator.div, {a=1,b=0})
			return {ok, e.message, e.server, e.tool, e.code == nil, e.result.isError}`,
			`[false,"division by zero","calculator","div",true,true]`,
		},
		{
			"R1-16 pcall catches what was answered", `local ok, e = pcall(data_server.fetch) return {ok, e.message, e.code, e.data.id}`,
			`[false,"no such row",-32602,7]`,
		},
		{"R1-16 tostring and .. print it", `local ok, e = pcall(function() return data_server.fetch{} end) return tostring(e), "so: " .. e`, `["script:1: data-server.fetch: no such row","so: script:1: data-server.fetch: no such row"]`},
		{"R1-16 a resource that is unknown", `local ok, e = pcall(resources.read, "mcp://notes/x") return e.code, e.data.code`, `[-32002,"RESOURCE_NOT_FOUND"]`},
		{"R1-16 an answer that is no JSON", `return pcall(notes.raw, {result="{"})`, `[false,{"message":"the answer is not JSON: invalid JSON at byte 1: expected a member name","server":"notes","tool":"raw"}]`},
	})
}

func TestHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"R1-18 nothing was given", "local x = 1", "the script returned nothing; end it with `return value`, or call `result(value)`."},
		{"R1-18 something was printed", "print(1)", ""},
		{"R1-18 a shadowed result", "local x = 1\nlocal function f(result) end", "Line 2 redefines `result`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := run(t, newFakeGateway(t), c.script)
			if err != nil || !strings.Contains(res.Hint, c.want) || c.want == "" && res.Hint != "" {
				t.Fatalf("hint %q, %v; want %q", res.Hint, err, c.want)
			}
		})
	}
}

func TestPrintIsCollected(t *testing.T) {
	t.Parallel()
	res, err := run(t, newFakeGateway(t), `print("a", 1, nil, null, true) print() print(json.decode("9007199254740993"))
		print(calculator.add{a=1,b=2}, {"x", {}}) print(setmetatable({}, {__tostring = function() return "mine" end}))
		print(select(2, pcall(calculator.div, {a=1, b=0})))`)
	if want := "a\t1\tnil\tnull\ttrue\n\n9007199254740993\n{\"sum\":3}\t[\"x\",{}]\nmine\ncalculator.div: division by zero\n"; err != nil || res.Printed != want {
		t.Fatalf("%q, %v", res.Printed, err)
	}
	res, err = run(t, newFakeGateway(t), `local t = {} t.t = t print(t, {print}, calculator)`)
	if err != nil || strings.Count(res.Printed, "table: ") != 3 {
		t.Fatalf("not JSON: %q, %v", res.Printed, err)
	}
}

func TestProgressPerCall(t *testing.T) {
	t.Parallel()
	h := newFakeGateway(t)
	res, err := run(t, h, `calculator.add{a=1,b=2} pcall(data_server.fetch) resources.read("mcp://notes/file:///a.txt")`)
	got := strings.Join(h.progress, ", ")
	if want := "1 calculator.add, 2 data-server.fetch, 3 resources.read mcp://notes/file:///a.txt"; err != nil || got != want || res.Calls != 3 {
		t.Fatalf("%s; %d calls, %v", got, res.Calls, err)
	}
}

// Scripts keep names in tables, which have no order.
func TestNamesThatAreEquallyNearComeInOneOrder(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"cat", "bat", "hat"}, {"hat", "cat", "bat"}, {"bat", "hat", "cat"}} {
		require.Equal(t, `; did you mean "bat" or "cat" or "hat"?`, worker.DidYouMean("at", names))
	}
	_, err := run(t, newFakeGateway(t), "ypcall(1)")
	require.ErrorContains(t, err, `did you mean "pcall" or "xpcall"?`)
}
