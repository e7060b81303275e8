// Package eventstream reads text/event-stream
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), within a limit
// for each event and in the room that a party has left. It knows nothing of what
// events say.
package eventstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
)

// Event is one event.
type Event struct {
	Name string // "message" unless named
	Data []byte // lines joined by line breaks
}

// Reader reads one stream, for one goroutine. Lines end in LF or CRLF; a lone CR, which
// the standard allows too, is not taken for a line's end, as no MCP server
// writes it.
type Reader struct {
	r       *bufio.Reader
	limit   int64
	lease   memory.Lease  // of the event that is being read
	LastID  string        // id of the last event, for resuming
	Retry   time.Duration // the server's wish, 0 for none
	started bool
}

// NewReader reads events of at most limit bytes from r, in the room of a party.
func NewReader(r io.Reader, limit int64, of *memory.Party) *Reader {
	e := &Reader{r: bufio.NewReaderSize(r, chunk), limit: limit}
	e.lease.Of(of)
	return e
}

// chunk is how much is read at a time, and how long the parts of an event of
// many short lines become: these must not take more than they hold.
const chunk = 32 << 10

// maxField bounds names and ids of events.
const maxField = 4 << 10

// Next returns the next event that has data. The errors are those of the
// reader, [memory.ErrFull] and [*jsonrpc.TooLong], after which the stream must be
// given up.
func (e *Reader) Next() (Event, error) {
	defer e.lease.End()
	var ev Event
	var data [][]byte
	var size int64
	for {
		field, value, rest, err := e.line()
		if errors.Is(err, io.EOF) && data != nil {
			// More lenient than the standard, which drops a last event without
			// the blank line after it.
			field = nil
			value = nil
			rest = false
			err = nil
		}
		if err != nil {
			return Event{}, err
		}
		switch string(field) {
		case "":
			if value == nil && data != nil {
				ev.Data = joined(data)
				if ev.Name == "" {
					ev.Name = "message"
				}
				return ev, nil
			}
			if value == nil {
				ev = Event{}
			}
		case "data":
			if data, err = e.value(data, &size, value, rest); err != nil {
				return Event{}, err
			}
			continue
		case "event":
			ev.Name = string(value[:min(len(value), maxField)])
		case "id":
			if bytes.IndexByte(value, 0) < 0 && len(value) <= maxField {
				e.LastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = time.Duration(ms) * time.Millisecond
			}
		}
		if err := e.skip(rest); err != nil {
			return Event{}, err
		}
	}
}

// value appends a line of data to parts, of which size is counted.
func (e *Reader) value(parts [][]byte, size *int64, first []byte, rest bool) ([][]byte, error) {
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
			return nil, &jsonrpc.TooLong{Prefix: prefix(parts), Limit: e.limit}
		}
		if !rest {
			*size++ // the line break
			return parts, nil
		}
		if part, rest, err = e.more(); err != nil {
			return nil, err
		}
	}
}

// add copies a piece behind the parts there are.
func (e *Reader) add(parts [][]byte, piece []byte) ([][]byte, error) {
	if last := len(parts) - 1; last >= 0 && len(parts[last])+len(piece) <= cap(parts[last]) {
		parts[last] = append(parts[last], piece...)
		return parts, nil
	}
	size := len(piece)
	if last := len(parts) - 1; last >= 0 {
		size = max(size, min(chunk, 64+2*cap(parts[last])))
	}
	if err := e.lease.Take(size); err != nil {
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

// skip reads the rest of a line of no interest.
func (e *Reader) skip(rest bool) (err error) {
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

// line reads a line and splits it into field and value; both are empty and
// value is nil for the blank line that ends an event. rest tells that the
// line goes on, to be read by more.
func (e *Reader) line() (field, value []byte, rest bool, err error) {
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

// more reads on in a line, up to the size of the buffer.
func (e *Reader) more() (part []byte, rest bool, err error) {
	part, err = e.r.ReadSlice('\n')
	switch {
	case err == nil:
		part = part[:len(part)-1]
		return bytes.TrimSuffix(part, []byte("\r")), false, nil
	case errors.Is(err, bufio.ErrBufferFull):
		// A CR at the very end may belong to the line's end.
		if n := len(part); part[n-1] == '\r' {
			part = part[:n-1]
			_ = e.r.UnreadByte()
		}
		return part, true, nil
	case errors.Is(err, io.EOF):
		return nil, false, io.EOF // an unfinished line is thrown away
	default:
		return nil, false, err
	}
}
