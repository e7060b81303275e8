package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const fastPage = 1000

// touched is the resource that the tool "touch" reports as updated.
const touched = "file:///srv/data/touched.json"

// fast is the server for benchmarks. It has no script and answers at once, so that
// measurements show only the transport. Its tool "echo" returns a text of "size" bytes.
// "touch" also reports one update. "storm" reports updates of many resources for some
// seconds.
//
// fast does not parse requests as JSON: it expects their members in the order id, method,
// params.
type fast struct {
	writing   sync.Mutex // held while writing to out
	out       io.Writer
	resources []string
	texts     map[int][]byte // results of echo, by size
}

func newFast(resources int, out io.Writer) *fast {
	f := &fast{out: out, resources: make([]string, resources), texts: map[int][]byte{}}
	for i := range f.resources {
		f.resources[i] = fmt.Sprintf(`{"uri":%q,"name":"item-%07d.json","description":"An item of the data set","mimeType":"application/json","size":%d}`, fastURI(i), i, i)
	}
	return f
}

func fastURI(i int) string {
	if i == 0 {
		return touched
	}
	return fmt.Sprintf("file:///srv/data/set-%d/item-%07d.json", i%97, i)
}

func (f *fast) serve(in io.Reader) error {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		if id := between(line, `"id":`, ","); id != "" {
			if err := f.write(f.answer(id, between(line, `"method":"`, `"`), line)); err != nil {
				return err
			}
		}
	}
}

// between returns "" if before is missing.
func between(line []byte, before, after string) string {
	_, rest, _ := bytes.Cut(line, []byte(before))
	text, _, _ := bytes.Cut(rest, []byte(after))
	return string(text)
}

func argument(line []byte, name string) int {
	_, rest, _ := bytes.Cut(line, []byte(`"`+name+`":`))
	n, _ := strconv.Atoi(string(rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]))
	return n
}

func (f *fast) write(frames []byte) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	_, err := f.out.Write(frames)
	return err
}

func fastResult(id, result string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + "}\n")
}

func updated(uri string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + "\"}}\n")
}

func (f *fast) answer(id, method string, line []byte) []byte {
	switch method {
	case "initialize":
		return fastResult(id, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"bench","version":"1"}}`)
	case "tools/list":
		return fastResult(id, `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},{"name":"touch","inputSchema":{"type":"object"}},{"name":"storm","inputSchema":{"type":"object"}}]}`)
	case "resources/list":
		return fastResult(id, f.page(between(line, `"cursor":"`, `"`)))
	case "resources/templates/list":
		return fastResult(id, `{"resourceTemplates":[]}`)
	case "tools/call":
		return f.call(id, line)
	}
	return fastResult(id, "{}")
}

func (f *fast) call(id string, line []byte) []byte {
	switch between(line, `"name":"`, `"`) {
	case "touch":
		return append(updated(touched), fastResult(id, `{"content":[]}`)...)
	case "storm":
		go f.storm(argument(line, "resources"), argument(line, "times"), argument(line, "seconds"))
		return fastResult(id, `{"content":[]}`)
	}
	size := argument(line, "size")
	if f.texts[size] == nil {
		f.texts[size] = []byte(`,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + "\"}]}}\n")
	}
	return append([]byte(`{"jsonrpc":"2.0","id":`+id), f.texts[size]...)
}

// storm reports updates of each of the first resources, times per second.
func (f *fast) storm(resources, times, seconds int) {
	tick := time.NewTicker(time.Second / time.Duration(max(times, 1)))
	defer tick.Stop()
	for range times * seconds {
		<-tick.C
		var frames []byte
		for i := range min(resources, len(f.resources)) {
			frames = append(frames, updated(fastURI(i))...)
		}
		if f.write(frames) != nil {
			return
		}
	}
}

// page returns a page of resources. A cursor is the index of its first resource.
func (f *fast) page(cursor string) string {
	at, _ := strconv.Atoi(cursor)
	at = max(0, min(at, len(f.resources)))
	end := min(at+fastPage, len(f.resources))
	text := `{"resources":[` + strings.Join(f.resources[at:end], ",") + "]"
	if end < len(f.resources) {
		text += fmt.Sprintf(`,"nextCursor":"%d"`, end)
	}
	return text + "}"
}
