package servercheck

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"goblin/registry/rawjson"
)

const (
	maxLine    = 32 << 20 // bytes
	maxPending = 1 << 20  // bytes of a message that spans lines
	maxMethods = 100      // different notifications that are remembered
)

// answer is the answer to a request. Without an answer, err is set.
type answer struct {
	result, fault []byte // raw; fault is the error object
	err           error
	took          time.Duration
}

// code returns the code of the error, or 0.
func (a *answer) code() int64 {
	n, _ := rawjson.Int(rawjson.Get(a.fault, "code"))
	return n
}

// output reads the messages of a process and reports malformed ones.
type output struct {
	c       *checker
	respond func(frame []byte)
	answers chan answer   // of the expected request, one at most
	ended   chan struct{} // no more output
	err     error         // valid after ended is closed; io.EOF at a normal end

	mu       sync.Mutex
	wanted   int64          // id of the request in flight, or 0
	ready    bool           // the handshake is complete
	silent   map[int64]bool // requests without an answer in time
	notified []string

	first  bool
	banner string // the first line that is no message; valid after ended is closed
	split  []byte // lines that may be parts of one message
	open   nesting
}

// nesting follows JSON text to its end.
type nesting struct {
	depth             int
	inText, isEscaped bool
}

func (n *nesting) read(text []byte) {
	for _, b := range text {
		switch {
		case n.isEscaped:
			n.isEscaped = false
		case n.inText:
			n.inText, n.isEscaped = b != '"', b == '\\'
		case b == '"':
			n.inText = true
		case b == '{', b == '[':
			n.depth++
		case b == '}', b == ']':
			n.depth--
		}
	}
}

func newOutput(c *checker, respond func([]byte)) *output {
	return &output{c: c, respond: respond, answers: make(chan answer, 1), ended: make(chan struct{}), silent: make(map[int64]bool), first: true}
}

// expect sets the request in flight; 0 is none. It drops an answer that came too late.
func (o *output) expect(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wanted != 0 {
		o.silent[o.wanted] = true
	}
	o.wanted = id
	select {
	case <-o.answers:
	default:
	}
}

func (o *output) setReady() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready = true
}

// methods returns the methods of all notifications so far.
func (o *output) methods() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.notified)
}

func (o *output) read(r io.Reader) {
	defer close(o.ended)
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, long, err := readLine(lines, maxLine)
		if long {
			o.c.add("stdout/long", "stdout", "begins with %s", quote(line))
		} else if err == nil || len(line) > 0 {
			o.line(bytes.TrimSuffix(line, []byte("\r")))
		}
		if err != nil {
			o.err = err
			o.flush()
			return
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func (o *output) line(line []byte) {
	if rest, found := bytes.CutPrefix(line, byteOrderMark); found && o.first {
		o.c.add("stdout/bom", "stdout", "the first line begins with a byte order mark")
		line = rest
	}
	o.first = false
	if !utf8.Valid(line) {
		if fixed := bytes.ToValidUTF8(line, []byte("?")); rawjson.Valid(fixed) == nil && isMessage(fixed) {
			o.c.add("stdout/encoding", "stdout", "not UTF-8: %s", quote(line))
			line = fixed
		}
	}
	switch {
	case rawjson.Valid(line) == nil && isMessage(line):
		o.flush()
		o.message(line)
	case rawjson.Valid(line) == nil && isBatch(line):
		o.flush()
		o.c.add("stdout/batch", "stdout", "an array of messages: %s", quote(line))
		for m := range rawjson.Elements(line) {
			o.message(m)
		}
	case len(bytes.TrimSpace(line)) == 0 && o.split == nil:
		o.c.add("stdout/noise", "stdout", "an empty line")
	default:
		o.join(line)
	}
}

// join collects lines until they form a message.
func (o *output) join(line []byte) {
	if len(o.split)+len(line) > maxPending {
		o.flush()
	}
	if o.split == nil && !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		o.noise(line)
		return
	}
	o.split = append(append(o.split, line...), '\n')
	if o.open.read(line); o.open.depth > 0 {
		return
	}
	if rawjson.Valid(o.split) == nil && isMessage(o.split) {
		o.c.add("stdout/newline", "stdout", "a message spans %d lines: %s", bytes.Count(o.split, []byte("\n")), quote(o.split))
		whole := o.split
		o.split, o.open = nil, nesting{}
		o.message(whole)
		return
	}
	o.flush()
}

// flush reports collected lines that did not become a message.
func (o *output) flush() {
	for line := range bytes.Lines(o.split) {
		o.noise(bytes.TrimSuffix(line, []byte("\n")))
	}
	o.split, o.open = nil, nesting{}
}

func (o *output) noise(line []byte) {
	if o.banner == "" {
		o.banner = string(line[:min(len(line), maxQuote)])
	}
	o.c.add("stdout/noise", "stdout", "not a message: %s", quote(line))
}

func isMessage(v []byte) bool {
	return rawjson.IsObject(v) && (rawjson.Get(v, "jsonrpc") != nil || rawjson.Get(v, "id") != nil || rawjson.Get(v, "method") != nil)
}

func isBatch(v []byte) bool {
	if !rawjson.IsArray(v) {
		return false
	}
	some := false
	for m := range rawjson.Elements(v) {
		if some = isMessage(m); !some {
			return false
		}
	}
	return some
}

func (o *output) message(m []byte) {
	method := rawjson.Get(m, "method")
	name, isText := rawjson.String(method)
	switch id := rawjson.Get(m, "id"); {
	case rawjson.GetString(m, "jsonrpc") != "2.0":
		o.c.add("message/shape", "stdout", `no "jsonrpc": "2.0": %s`, quote(m))
		if method == nil {
			o.answer(m, id)
		}
	case method != nil && !isText:
		o.c.add("message/shape", "stdout", "method is not a text: %s", quote(m))
	case method == nil:
		o.answer(m, id)
	case id == nil:
		o.notification(name)
	default:
		o.request(name, id)
	}
}

func (o *output) notification(method string) {
	o.mu.Lock()
	early := !o.ready && method != "notifications/message"
	if len(o.notified) < maxMethods && !slices.Contains(o.notified, method) {
		o.notified = append(o.notified, method)
	}
	o.mu.Unlock()
	if early {
		o.c.add("message/early", clip(method), "a notification before notifications/initialized")
	}
}

// request answers a request of the server as a client without roots and user does.
func (o *output) request(method string, id []byte) {
	o.mu.Lock()
	early := !o.ready && method != "ping"
	o.mu.Unlock()
	if early {
		o.c.add("message/early", clip(method), "a request before notifications/initialized")
	}
	reply := `"error":{"code":-32601,"message":"no user is present"}`
	switch method {
	case "ping":
		reply = `"result":{}`
	case "roots/list":
		reply = `"result":{"roots":[]}`
	}
	if len(id) <= 1024 {
		o.respond(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, id, reply))
	}
}

func (o *output) answer(m, id []byte) {
	o.mu.Lock()
	wanted := o.wanted
	number, isNumber := rawjson.Int(id)
	late := isNumber && o.silent[number]
	o.mu.Unlock()
	want := strconv.FormatInt(wanted, 10)
	text, _ := rawjson.String(id)
	switch {
	case wanted != 0 && isNumber && number == wanted:
	case wanted != 0 && text == want:
		o.c.add("message/id", "stdout", "the id %s is sent as a text", want)
	case wanted != 0 && (id == nil || string(id) == "null"):
		o.c.add("message/id", "stdout", "an answer without an id while request %s waits: %s", want, quote(m))
	case late:
		return // already reported as a missing one
	default:
		o.c.add("message/unexpected", "stdout", "no request waits for the id %s: %s", quote(id), quote(m))
		return
	}
	o.mu.Lock()
	o.wanted = 0
	o.mu.Unlock()
	select {
	case o.answers <- o.parse(m):
	default:
	}
}

// parse reports an answer that is neither a result nor a proper error.
func (o *output) parse(m []byte) answer {
	a := answer{result: rawjson.Get(m, "result"), fault: rawjson.Get(m, "error")}
	if string(a.fault) == "null" && a.result != nil {
		o.c.add("message/shape", "stdout", "an error of null beside a result: %s", quote(m))
		a.fault = nil
	}
	_, coded := rawjson.Int(rawjson.Get(a.fault, "code"))
	switch {
	case a.result == nil && a.fault == nil:
		o.c.add("message/shape", "stdout", "an answer without result and error: %s", quote(m))
		a.fault = []byte(`{}`)
	case a.result != nil && a.fault != nil:
		o.c.add("message/shape", "stdout", "an answer with result and error: %s", quote(m))
	case a.fault != nil && (!coded || !rawjson.IsString(rawjson.Get(a.fault, "message"))):
		o.c.add("message/shape", "stdout", "an error without an integer code or a message: %s", quote(a.fault))
	case a.result != nil && !rawjson.IsObject(a.result):
		o.c.add("message/shape", "stdout", "a result that is not an object: %s", quote(a.result))
	}
	return a
}

const maxQuote = 160 // bytes

// quote returns the start of untrusted output as a quoted text.
func quote(text []byte) string { return strconv.Quote(clip(string(text[:min(len(text), 4*maxQuote)]))) }

// clip shortens untrusted text.
func clip(s string) string {
	if len(s) <= maxQuote {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuote], "") + "…"
}
