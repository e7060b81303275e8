// Command badserver is an MCP server that misbehaves in one way, for tests
// that show what a faulty backend does to Goblin and to its neighbours.
//
//	badserver [-log FILE] MODE                     MCP on stdin and stdout
//	badserver [-log FILE] -http ADDR [-late] MODE  Streamable HTTP
//
// Apart from its fault it is a plain server of the revision that the client
// asks for. It has two tools: "echo", which answers "echo", and "fault", which
// is where faults of calls show. [modes] and [httpModes] are the faults.
//
// The log gets a line for each start and each message that arrives, as
// "METHOD ID TOOL", so that a test can count what was asked. Over HTTP the
// address is the first line of stdout.
//
// It owns one faulty server and nothing else. What a test steers while it runs
// is fakeserver's matter. It must not import anything of Goblin.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

func main() {
	log := flag.String("log", "", "file that gets a line per start and message")
	addr := flag.String("http", "", "serve Streamable HTTP at this address")
	late := flag.Bool("late", false, "HTTP: only calls of the tool \"fault\" meet the fault")
	flag.Parse()
	if err := run(*log, *addr, *late, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "badserver:", err)
		os.Exit(1)
	}
}

func run(log, addr string, late bool, name string) error {
	s := &server{}
	if err := s.open(log); err != nil {
		return err
	}
	if addr != "" {
		fault, ok := httpModes[name]
		if !ok {
			return fmt.Errorf("unknown mode %q of HTTP", name)
		}
		return s.serveHTTP(addr, late, fault)
	}
	m, ok := modes[name]
	if !ok {
		return fmt.Errorf("unknown mode %q", name)
	}
	s.mode = m
	if m.start != nil {
		m.start(s)
	}
	return s.serveLines(os.Stdin)
}

// server is a plain server with one fault.
type server struct {
	mode
	log    *os.File
	starts int // of this mode so far, with this one
	calls  int // that the mode counts

	elsewhere string // HTTP: another origin

	mu sync.Mutex // held while something is written
}

// message is what arrives: a request, a notification or an answer.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name            string
		Cursor          string
		ProtocolVersion json.RawMessage
		RequestID       json.RawMessage
	}
}

// topic is what faults are keyed by: the tool of a call, else the method.
func (m *message) topic() string {
	if m.Method == "tools/call" {
		return m.Params.Name
	}
	return m.Method
}

// open appends to the log and counts the starts in it.
func (s *server) open(path string) error {
	if path == "" {
		path = os.DevNull
	}
	past, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read the log: %w", err)
	}
	s.starts = strings.Count(string(past), "start\n") + 1
	if s.log, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	_, err = fmt.Fprintln(s.log, "start")
	return err
}

func (s *server) note(text []byte) (m message) {
	if err := json.Unmarshal(text, &m); err != nil {
		fmt.Fprintln(os.Stderr, "badserver: not understood:", err)
		return message{}
	}
	if m.Method == "" {
		_, _ = fmt.Fprintf(s.log, "answer %s\n", text)
		return m
	}
	_, _ = fmt.Fprintf(s.log, "%s %s%s %s\n", m.Method, m.ID, m.Params.RequestID, m.Params.Name)
	return m
}

// serveLines handles one message after another until the input ends.
func (s *server) serveLines(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			m := s.note(line)
			s.handle(&m)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
	}
}

func (s *server) handle(m *message) {
	if f := s.on[m.topic()]; f != nil {
		f(s, m)
		return
	}
	if m.Method != "" && m.ID != nil {
		s.plain(m)
	}
}

// plain answers as a good server does.
func (s *server) plain(m *message) {
	text := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, s.outcome(m))
	if s.around != nil {
		s.around(s, m, text)
		return
	}
	s.write(text)
}

// outcome is the member that makes the answer to a request.
func (s *server) outcome(m *message) string {
	switch m.topic() {
	case "initialize":
		version, caps := s.version, s.caps
		if version == "" {
			version = string(m.Params.ProtocolVersion)
		}
		if caps == "" {
			caps = `{"tools":{"listChanged":true}}`
		}
		return fmt.Sprintf(`"result":{"protocolVersion":%s,"capabilities":%s,"serverInfo":{"name":"bad","version":"1"}}`, version, caps)
	case "ping", "resources/subscribe", "resources/unsubscribe":
		return `"result":{}`
	case "tools/list":
		return `"result":{"tools":[` + tools + s.tools + `]}`
	case "echo", "fault":
		return `"result":` + said(m.topic())
	case "resources/list":
		return `"result":{"resources":[{"uri":"x:1","name":"x"}]}`
	case "resources/templates/list":
		return `"result":{"resourceTemplates":[]}`
	}
	return `"error":{"code":-32601,"message":"Method not found"}`
}

const tools = `{"name":"echo","inputSchema":{"type":"object"}},{"name":"fault","inputSchema":{"type":"object"}}`

func said(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }

func (s *server) result(m *message, result string) {
	s.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func (s *server) fail(m *message, code int, text string) {
	s.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text))
}

// write sends a line.
func (s *server) write(text []byte) { s.raw(append(text, '\n')) }

func (s *server) raw(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = os.Stdout.Write(text) // a reader that is gone is found by stdin's end
}
