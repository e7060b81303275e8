// Package wire reads event streams and repairs frames that servers send.
//
// It reads event streams
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), parses messages
// leniently, classifies errors, and edits hop-local `_meta` members. It must not know
// connections or clients.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

// StreamEvent is one event of a stream.
type StreamEvent struct {
	Name string // "message" by default
	Data []byte // lines joined by line breaks
}

// StreamReader reads one stream. Lines end in LF, CR or CRLF. Not safe for concurrent
// use.
type StreamReader struct {
	r        *bufio.Reader
	limit    int64
	reserved memlimit.GrowingReservation
	LastID   string        // id of the last complete event
	Retry    time.Duration // reconnection time from the server, or 0
	started  bool
	cr       bool // the last line ended in CR; an LF may follow
}

// NewStreamReader returns a reader for events of at most limit bytes. Their memory is
// counted for an owner.
func NewStreamReader(r io.Reader, limit int64, of *memlimit.Owner) *StreamReader {
	e := &StreamReader{r: bufio.NewReaderSize(r, chunk), limit: limit}
	e.reserved.SetOwner(of)
	return e
}

// chunk is the read size, and the maximum size of merged short lines, in bytes. Merging
// keeps the overhead of short lines low.
const chunk = 32 << 10

// errCut is the io.EOF of a stream that ends within a line, so its event is incomplete.
var errCut = fmt.Errorf("the stream ends within a line: %w", io.EOF)

const maxField = 4 << 10

// Next returns the next event with data. It returns errors of the underlying reader,
// [memlimit.ErrFull] or [*jsonrpc.TooLongError]. After an error the stream is unusable.
func (e *StreamReader) Next() (StreamEvent, error) {
	defer e.reserved.Release()
	var ev StreamEvent
	var data [][]byte
	var size int64
	id := e.LastID
	for {
		field, value, rest, err := e.line()
		if errors.Is(err, io.EOF) && !errors.Is(err, errCut) && data != nil {
			// The standard drops a last event without a blank line after it. Some servers
			// omit that line, so accept the event if its lines are complete.
			field = nil
			value = nil
			rest = false
			err = nil
		}
		if err != nil {
			return StreamEvent{}, err
		}
		switch string(field) {
		case "":
			if value != nil {
				break
			}
			e.LastID = id
			if ev.Data = joined(data); len(ev.Data) > 0 {
				if ev.Name == "" {
					ev.Name = "message"
				}
				return ev, nil
			}
			ev, data, size = StreamEvent{}, nil, 0
			e.reserved.Release()
		case "data":
			if data, err = e.value(data, &size, value, rest); err != nil {
				return StreamEvent{}, err
			}
			continue
		case "event":
			ev.Name = string(value[:min(len(value), maxField)])
		case "id":
			if validID(value) {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = time.Duration(ms) * time.Millisecond
			}
		}
		if err := e.skip(rest); err != nil {
			return StreamEvent{}, err
		}
	}
}

func (e *StreamReader) value(parts [][]byte, size *int64, first []byte, rest bool) ([][]byte, error) {
	var err error
	if parts != nil {
		if parts, err = e.add(parts, []byte("\n")); err != nil {
			return nil, err
		}
	}
	for part := first; ; {
		if parts, err = e.add(parts, part); err != nil {
			return nil, err
		}
		if *size += int64(len(part)); *size > e.limit {
			return nil, &jsonrpc.TooLongError{Prefix: prefix(parts), Limit: e.limit}
		}
		if !rest {
			*size++
			return parts, nil
		}
		if part, rest, err = e.more(); err != nil {
			return nil, err
		}
	}
}

func (e *StreamReader) add(parts [][]byte, piece []byte) ([][]byte, error) {
	if last := len(parts) - 1; last >= 0 && len(parts[last])+len(piece) <= cap(parts[last]) {
		parts[last] = append(parts[last], piece...)
		return parts, nil
	}
	size := len(piece)
	if last := len(parts) - 1; last >= 0 {
		size = max(size, min(chunk, 64+2*cap(parts[last])))
	}
	if err := e.reserved.Grow(size); err != nil {
		return nil, err
	}
	return append(parts, append(make([]byte, 0, size), piece...)), nil
}

func joined(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	return bytes.Join(parts, nil)
}

func (e *StreamReader) skip(rest bool) (err error) {
	for rest {
		if _, rest, err = e.more(); err != nil {
			return err
		}
	}
	return nil
}

func prefix(parts [][]byte) []byte {
	var out []byte
	for _, p := range parts {
		if out = append(out, p...); len(out) >= 4096 {
			break
		}
	}
	return out[:min(len(out), 4096)]
}

// line reads a line and splits it into field and value. A blank line has an empty field
// and a nil value. rest reports whether the line continues in more.
func (e *StreamReader) line() (field, value []byte, rest bool, err error) {
	part, rest, err := e.more()
	if err != nil {
		return nil, nil, false, err
	}
	if !e.started {
		e.started = true
		part = bytes.TrimPrefix(part, []byte("\xEF\xBB\xBF"))
	}
	if len(part) == 0 {
		return nil, nil, rest, nil
	}
	field, value, _ = bytes.Cut(part, []byte(":"))
	if value == nil {
		value = []byte{}
	}
	return field, bytes.TrimPrefix(value, []byte(" ")), rest, nil
}

func validID(id []byte) bool {
	return len(id) <= maxField && !bytes.ContainsFunc(id, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F })
}

// more returns the next part of a line without its end, at most chunk bytes. rest reports
// whether the line continues. The part is valid until the next call. It returns errCut if
// the stream ends within a line.
func (e *StreamReader) more() (part []byte, rest bool, err error) {
	if e.cr {
		next, err := e.r.Peek(1)
		if err != nil {
			return nil, false, err
		}
		e.cr = false
		if next[0] == '\n' {
			_, _ = e.r.Discard(1) // cannot fail: buffered
		}
	}
	for looked := 0; ; {
		if _, err := e.r.Peek(looked + 1); err != nil {
			if looked > 0 && errors.Is(err, io.EOF) {
				err = errCut
			}
			return nil, false, err
		}
		ahead, _ := e.r.Peek(e.r.Buffered())
		if n := lineEnd(ahead, looked); n >= 0 {
			e.cr = ahead[n] == '\r'
			_, _ = e.r.Discard(n + 1) // cannot fail: buffered
			return ahead[:n], false, nil
		}
		if looked = len(ahead); looked == chunk {
			_, _ = e.r.Discard(looked)
			return ahead, true, nil
		}
	}
}

// lineEnd returns the index of the first CR or LF at or after from, or -1. It searches in
// growing steps, so that short lines cost little.
func lineEnd(text []byte, from int) int {
	for step := 256; from < len(text); step *= 2 {
		part := text[from:min(from+step, len(text))]
		lf := bytes.IndexByte(part, '\n')
		if lf >= 0 {
			part = part[:lf]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
		from += len(part)
	}
	return -1
}
