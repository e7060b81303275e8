// Program fake is the scripted stdio server of the tests of upstream. It is small,
// since they start it more than a hundred times.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"goblin/gateway/jsonrpc"
)

// sizes are limits of the tests, which some modes reach or pass.
type sizes struct {
	Line   int // where a line of stderr is cut
	Split  int
	Quote  int
	Asking int // requests of a server at a time
	Heavy  int // bytes of such requests
}

func main() {
	f := &fake{mode: os.Getenv("FAKE_MODE"), log: os.Getenv("FAKE_LOG")}
	if err := json.Unmarshal([]byte(os.Getenv("FAKE_SIZES")), &f.sizes); err != nil {
		fmt.Fprintln(os.Stderr, "FAKE_SIZES:", err)
		os.Exit(2)
	}
	f.run()
}

// fake is a scripted stdio server.
type fake struct {
	mode string
	log  string
	sizes
	mu   sync.Mutex
	late bool                                       // it is not the first start
	open map[string]chan map[string]json.RawMessage // answers awaited, by id
}

func (f *fake) record(format string, args ...any) {
	if f.log == "" {
		return
	}
	w, err := os.OpenFile(f.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer w.Close()
	fmt.Fprintf(w, format+"\n", args...)
}

func (f *fake) print(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	os.Stdout.WriteString(s)
}

func (f *fake) result(id json.RawMessage, result string) {
	f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result))
}

func (f *fake) run() {
	f.record("start %d", os.Getpid())
	f.open = map[string]chan map[string]json.RawMessage{}
	switch f.mode {
	case "fast":
		f.fast()
		return
	case "sleep":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
		return
	case "crash-start":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	case "flaky-start":
		data, _ := os.ReadFile(f.log)
		if strings.Count(string(data), "start") <= 2 { // one that dies unasked is started again at once
			os.Exit(1)
		}
	case "hang-later", "fail-later":
		data, _ := os.ReadFile(f.log)
		switch {
		case strings.Count(string(data), "start") == 1:
		case f.mode == "fail-later":
			os.Exit(1)
		default:
			time.Sleep(time.Minute)
		}
	case "half-later", "fewer-later", "dual-hang", "dual-fail", "dual-leave":
		data, _ := os.ReadFile(f.log)
		f.late = strings.Count(string(data), "start") > 1
	case "hang-start":
		time.Sleep(time.Minute)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		f.spawn()
	case "grandchild", "exit-grandchild":
		f.spawn()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if f.mode == "stubborn" {
				time.Sleep(time.Minute)
			}
			return
		}
		if len(line) < 4096 {
			f.record("%s", strings.TrimSpace(line))
		}
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		var method string
		_ = json.Unmarshal(m["method"], &method)
		if method == "" {
			f.mu.Lock()
			ch := f.open[string(m["id"])]
			f.mu.Unlock()
			if ch != nil {
				ch <- m
			}
			continue
		}
		if f.mode == "deaf" && method == "notifications/initialized" {
			time.Sleep(time.Minute)
		}
		f.handle(method, m["id"], m["params"])
	}
}

// fast answers as quickly as it can.
func (f *fake) fast() {
	result := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 60) + `"}]}`)
	out := jsonrpc.NewStream(os.Stdout)
	go func() { _ = out.Run() }()
	in := jsonrpc.NewReader(os.Stdin, 1<<20)
	for {
		frame, err := in.Read()
		if err != nil {
			return
		}
		m, _ := jsonrpc.Parse(frame)
		switch {
		case m.Method == "initialize":
			out.Send(jsonrpc.Result(m.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`)))
		case m.ID != nil:
			out.Send(jsonrpc.Result(m.ID, result))
		}
	}
}

// spawn starts a process that holds our pipes and ignores SIGTERM.
func (f *fake) spawn() {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "FAKE_MODE=sleep")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	_ = c.Start()
}

func (f *fake) handle(method string, id, params json.RawMessage) {
	var p struct {
		Name      string          `json:"name"`
		Cursor    *string         `json:"cursor"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p)
	switch method {
	case "server/discover":
		f.discover(id)
	case "initialize":
		f.initialize(id)
	case "tools/list":
		f.tools(id, p.Cursor)
	case "resources/list":
		if f.late {
			return
		}
		if f.mode == "lie" {
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`+"\n", id))
			return
		}
		f.result(id, `{"resources":[{"uri":"x://1","name":"one"}]}`)
	case "prompts/list":
		f.result(id, `{"prompts":[{"name":"p","vendor":1.0}]}`)
	case "tools/call":
		go f.call(p.Name, id, p.Arguments, p.Meta.Token)
	default:
		if id != nil {
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", id))
		}
	}
}

// discover offers both eras, in some modes in the first process only.
func (f *fake) discover(id json.RawMessage) {
	switch {
	case !strings.HasPrefix(f.mode, "dual-"):
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", id))
	case !f.late:
		f.result(id, `{"supportedVersions":["2026-07-28","2025-06-18"],"capabilities":{}}`)
	case f.mode == "dual-fail":
		os.Exit(1)
	case f.mode == "dual-leave":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}`+"\n", id))
	}
}

func (f *fake) initialize(id json.RawMessage) {
	version, caps := `"2025-06-18"`, `{"tools":{"listChanged":true}}`
	switch f.mode {
	case "refuse":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"bad key"}}`+"\n", id))
		return
	case "blab-refuse":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s%s"}}`+"\n", id, strings.Repeat("x", 490), os.Getenv("FAKE_SECRET")))
		return
	case "blab-version":
		version = `"` + strings.Repeat("x", 25) + os.Getenv("FAKE_SECRET") + `"`
	case "blab-garbage":
		f.print(strings.Repeat("x", 280) + os.Getenv("FAKE_SECRET") + "\n")
		os.Exit(7)
	case "null-init":
		f.result(id, "null")
		return
	case "bad-version":
		version = `"9999-99-99"`
	case "number-version":
		version = "5"
	case "all", "lie", "half-later":
		caps = `{"tools":{},"prompts":{},"resources":{"subscribe":true,"listChanged":false}}`
	case "fewer-later":
		if !f.late {
			caps = `{"prompts":{}}`
		}
	case "none":
		caps = `{}`
	}
	f.result(id, fmt.Sprintf(`{"protocolVersion":%s,"capabilities":%s,"serverInfo":{"name":"fake","version":"1"},"instructions":"be nice"}`, version, caps))
}

func (f *fake) tools(id json.RawMessage, cursor *string) {
	page := 0
	if cursor != nil {
		page, _ = strconv.Atoi(strings.TrimPrefix(*cursor, "c"))
	}
	switch f.mode {
	case "pages":
		next := []string{`,"nextCursor":""`, `,"nextCursor":"c2"`, ""}
		if cursor != nil && *cursor == "" {
			page = 1
		}
		f.result(id, fmt.Sprintf(`{"tools":[{"name":"a%d"},{"name":"b%d"}]%s}`, page, page, next[page]))
	case "same-cursor":
		f.result(id, `{"tools":[{"name":"a"}],"nextCursor":"c1"}`)
	case "new-cursor":
		f.result(id, fmt.Sprintf(`{"tools":[{"name":"a"}],"nextCursor":"c%d"}`, page+1))
	case "new-items":
		f.result(id, fmt.Sprintf(`{"tools":[{"name":"a%d"}],"nextCursor":"c%d"}`, page, page+1))
	case "no-array":
		f.result(id, `{"tools":{"name":"a"}}`)
	case "die-on-second-page":
		if page == 0 {
			f.result(id, `{"tools":[{"name":"a"}],"nextCursor":"c1"}`)
		} else {
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`+"\n", id))
		}
	default:
		f.result(id, `{"tools":[{"name":"echo","x":1.50},{"name":"delete_all"},{"name":"more"}]}`)
	}
}

func (f *fake) ask(method, params string) map[string]json.RawMessage {
	ch := make(chan map[string]json.RawMessage, 1)
	f.mu.Lock()
	id := fmt.Sprintf(`"s%d"`, len(f.open))
	f.open[id] = ch
	f.mu.Unlock()
	f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params))
	return <-ch
}

func (f *fake) call(name string, id, args, token json.RawMessage) {
	if args == nil {
		args = json.RawMessage("null")
	}
	switch name {
	case "echo":
		f.result(id, fmt.Sprintf(`{"n":12345678901234567890.10,"args":%s,"token":%s}`, args, append(token, strings.Repeat("null", 1-min(1, len(token)))...)))
	case "hang":
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(7)
	case "blab":
		secret := os.Getenv("FAKE_SECRET")
		fmt.Fprintln(os.Stderr, strings.Repeat("y", f.Line-len(secret)/2)+secret)
		fmt.Fprintln(os.Stderr, strings.Repeat("y", f.Line-len(secret)/2-f.Split)+secret+strings.Repeat("y", f.Split))
		for _, tail := range []int{20, 5, 3} { // where a quoted line is cut
			fmt.Fprintln(os.Stderr, strings.Repeat("x", f.Quote-tail)+secret)
		}
		os.Exit(7)
	case "fail":
		var object string
		_ = json.Unmarshal(args, &object)
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`+"\n", id, object))
	case "mid-line":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"a":`, id))
		os.Exit(0)
	case "close-stdout":
		os.Stdout.Close()
	case "garbage":
		f.print("hello\n\n{}\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}\n")
		f.result(id, `{"ok":1}`)
		f.result(id, `{"ok":2}`)
	case "glued":
		f.print("INFO {answering} ")
		f.result(id, `{"ok":1}`)
	case "batch": // as 2025-03-26 allows; the next line must not disturb it
		f.print(`[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"ok":1}}]` + "\n" + `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 200) + `"}}` + "\n")
	case "posing":
		f.print(`{"jsonrpc":"2.0","id":777,"result":{"text":\x {"jsonrpc":"2.0","id":` + string(id) + `,"result":{"posed":1}}` + "\n")
		f.result(id, `{"ok":1}`)
	case "broken":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{,}}`+"\n", id))
	case "deep":
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"a":%s}}`+"\n", id, strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)))
	case "scalar":
		f.result(id, "5")
	case "utf8":
		f.result(id, "{\"t\":\"a\xff\xfeb\"}")
	case "huge":
		f.result(id, `{"t":"`+strings.Repeat("x", 2<<20)+`"}`)
	case "flood":
		line := []byte(strings.Repeat("e", 20_000) + "\n")
		for range 100 {
			os.Stderr.Write(line)
		}
		f.result(id, `{"ok":1}`)
	case "storm":
		line := strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n", 1000)
		for range 20 {
			f.print(line)
		}
		f.result(id, `{"ok":1}`)
	case "progress":
		for i := range 6 {
			time.Sleep(250 * time.Millisecond)
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", token, i))
		}
		f.result(id, `{"ok":1}`)
		f.print(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":99}}`+"\n", token))
	case "say":
		f.print(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.50}}` + "\n")
		f.result(id, `{"ok":1}`)
	case "ping":
		f.result(id, fmt.Sprintf(`{"ping":%s}`, f.ask("ping", "{}")["result"]))
	case "sample":
		a := f.ask("sampling/createMessage", `{"n":1.50}`)
		b, _ := json.Marshal(a)
		f.result(id, fmt.Sprintf(`{"answer":%s}`, b))
	case "withdraw":
		f.print(`{"jsonrpc":"2.0","id":"w","method":"sampling/createMessage","params":{}}` + "\n")
		f.print(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}` + "\n")
		f.result(id, `{"ok":1}`)
	case "nag":
		for i := range f.Asking + 5 {
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":"n%d","method":"sampling/createMessage","params":{}}`+"\n", i))
		}
		f.result(id, `{"ok":1}`)
	case "heavy": // more than may be worked on together, but for the first
		text := strings.Repeat("x", f.Heavy/4)
		for i := range 5 {
			f.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":"h%d","method":"sampling/createMessage","params":{"x":%q}}`+"\n", i, text))
		}
		f.result(id, `{"ok":1}`)
	case "bad-ask":
		f.print(`{"jsonrpc":"2.0","id":"b1","method":"sampling/createMessage","params":[1]}` + "\n")
		f.result(id, `{"ok":1}`)
	case "env":
		b, _ := json.Marshal(os.Environ())
		wd, _ := os.Getwd()
		f.result(id, fmt.Sprintf(`{"env":%s,"wd":%q,"pid":%d}`, b, wd, os.Getpid()))
	}
}
