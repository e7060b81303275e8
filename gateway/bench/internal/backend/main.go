// Command backend is what measurements put behind Goblin: an MCP server over
// stdio that starts fast and answers at once, so that what is measured is the
// way there and back. Its argument is how many resources it has.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// page is how many resources one answer holds.
const page = 1000

// touched is the resource whose updates the tool "touch" tells; it is the
// first one.
const touched = "file:///srv/data/touched.json"

func main() {
	var count int
	if len(os.Args) > 1 {
		count, _ = strconv.Atoi(os.Args[1])
	}
	b := backend{resources: make([]string, count), texts: map[int64][]byte{}}
	for i := range b.resources {
		b.resources[i] = fmt.Sprintf(`{"uri":"file:///srv/data/set-%d/item-%07d.json","name":"item-%07d.json","description":"An item of the data set","mimeType":"application/json","size":%d}`, i%97, i, i, i)
	}
	if count > 0 {
		b.resources[0] = `{"uri":"` + touched + `","name":"touched"}`
	}
	b.serve(os.Stdin, os.Stdout)
}

type backend struct {
	writing   sync.Mutex // of what goes out
	out       io.Writer
	resources []string
	texts     map[int64][]byte // results of echo, by size
}

func (b *backend) serve(in io.Reader, out io.Writer) {
	b.out = out
	r := jsonrpc.NewReader(in, 1<<30)
	for {
		frame, err := r.Read()
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil || m.ID == nil {
			continue
		}
		if b.write(b.answer(&m)) != nil {
			return
		}
	}
}

func (b *backend) write(frames []byte) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, err := b.out.Write(frames)
	return err
}

// storm tells updates of each of the first resources, so many times a second.
func (b *backend) storm(resources, times, seconds int) {
	resources = min(resources, len(b.resources))
	tick := time.NewTicker(time.Second / time.Duration(max(times, 1)))
	defer tick.Stop()
	for range times * seconds {
		<-tick.C
		var frames []byte
		for _, r := range b.resources[:resources] {
			uri, _ := rawjson.String(rawjson.Get([]byte(r), "uri"))
			frames = append(frames, jsonrpc.Notification("notifications/resources/updated", []byte(`{"uri":"`+uri+`"}`))...)
		}
		if b.write(frames) != nil {
			return
		}
	}
}

func (b *backend) answer(m *jsonrpc.Message) []byte {
	switch m.Method {
	case "initialize":
		return jsonrpc.Result(m.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"bench","version":"1"}}`))
	case "tools/list":
		return jsonrpc.Result(m.ID, []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},{"name":"touch","inputSchema":{"type":"object"}},{"name":"storm","inputSchema":{"type":"object"}}]}`))
	case "resources/list":
		return jsonrpc.Result(m.ID, b.list(m.Params))
	case "resources/templates/list":
		return jsonrpc.Result(m.ID, []byte(`{"resourceTemplates":[]}`))
	case "tools/call":
		if name, _ := rawjson.String(rawjson.Get(m.Params, "name")); name == "touch" {
			notice := jsonrpc.Notification("notifications/resources/updated", []byte(`{"uri":"`+touched+`"}`))
			return append(notice, jsonrpc.Result(m.ID, []byte(`{"content":[]}`))...)
		}
		if name, _ := rawjson.String(rawjson.Get(m.Params, "name")); name == "storm" {
			of := func(name string) int { n, _ := rawjson.Int(rawjson.Path(m.Params, "arguments", name)); return int(n) }
			go b.storm(of("resources"), of("times"), of("seconds"))
			return jsonrpc.Result(m.ID, []byte(`{"content":[]}`))
		}
		n, _ := rawjson.Int(rawjson.Path(m.Params, "arguments", "size"))
		if b.texts[n] == nil {
			b.texts[n] = []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", int(n)) + `"}]}`)
		}
		return jsonrpc.Result(m.ID, b.texts[n])
	}
	return jsonrpc.Result(m.ID, []byte("{}"))
}

// list is a page of the resources; a cursor is where the page begins.
func (b *backend) list(params []byte) []byte {
	cursor, _ := rawjson.String(rawjson.Get(params, "cursor"))
	at, _ := strconv.Atoi(cursor)
	at = max(0, min(at, len(b.resources)))
	end := min(at+page, len(b.resources))
	var out bytes.Buffer
	out.WriteString(`{"resources":[`)
	for i, r := range b.resources[at:end] {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(r)
	}
	out.WriteByte(']')
	if end < len(b.resources) {
		fmt.Fprintf(&out, `,"nextCursor":"%d"`, end)
	}
	out.WriteByte('}')
	return out.Bytes()
}
