package jsonrpc

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// TooLongError reports a frame that was discarded because of its size or short memory
// (see [Reader.SetOwner]). Reading can continue.
type TooLongError struct {
	Prefix []byte // the first bytes
	Limit  int64
	Cause  error // nil for a frame over the limit
}

func (e *TooLongError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("large message discarded: %v; send it again later", e.Cause)
	}
	return fmt.Sprintf("message exceeds the limit of %d bytes (limits.frame)", e.Limit)
}

// ID returns the top-level id in the prefix, or nil.
func (e *TooLongError) ID() []byte { return findID(e.Prefix) }

// Unwrap returns the cause.
func (e *TooLongError) Unwrap() error { return e.Cause }

// IsResponse reports whether the frame was an answer, judging by its prefix.
func (e *TooLongError) IsResponse() bool {
	for k := range rawjson.Members(e.Prefix) {
		switch {
		case k.Is("method"), k.Is("params"):
			return false
		case k.Is("result"), k.Is("error"):
			return true
		}
	}
	return true
}

// Reader reads frames that end with a line break.
type Reader struct {
	src       io.Reader
	limit     int64
	buf       *chunk
	from, to  int   // unread part of buf
	nextEnd   int   // end of the next line, or 0; set by Ready
	err       error // of src, after buf
	part      partialFrame
	skipping  bool // within a discarded frame
	truncated bool // see Truncated
	started   bool // past a byte order mark

	checkEarly bool // see CheckWhileReading
	depth      int
	check      rawjson.Checker // of part
	large      []byte          // the last frame, if from part
	buffer     *Buffer         // of large; nil if not reusable
}

// chunk has the size of a pipe's buffer.
type chunk [64 << 10]byte

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// NewReader limits frames to limit bytes.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{src: newPolledReader(r), limit: limit, buf: new(chunk)}
}

// CheckWhileReading makes r check large frames while they arrive, for [Reader.Parse],
// with a nesting limit. It returns r.
func (r *Reader) CheckWhileReading(depth int) *Reader {
	r.checkEarly, r.depth = true, depth
	return r
}

// Truncated reports whether the input ended within the last frame.
func (r *Reader) Truncated() bool { return r.truncated }

// Ready reports whether Read would return a frame without waiting.
func (r *Reader) Ready() bool {
	for !r.skipping {
		n := bytes.IndexByte(r.buf[r.from:r.to], '\n')
		if n < 0 {
			return false
		}
		end := r.from + n + 1
		if first := r.buf[r.from]; first > ' ' && first < utf8.RuneSelf || len(bytes.TrimSpace(r.buf[r.from:end])) > 0 {
			r.nextEnd = end
			return true
		}
		r.from = end
	}
	return false
}

// Read returns the next non-blank frame without line break, in its own memory. It skips a
// leading byte order mark. A last frame without line break precedes io.EOF. It returns
// errors of the underlying reader, and [*TooLongError], after which reading can continue.
func (r *Reader) Read() ([]byte, error) {
	if !r.started {
		r.started = true
		r.skipBOM()
	}
	for {
		r.large, r.buffer = nil, nil
		line, err := r.line()
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// byteOrderMark is UTF-8's, sent first by some peers.
const byteOrderMark = "\uFEFF"

// TrimBOM returns text without a leading byte order mark.
func TrimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte(byteOrderMark)) }

func (r *Reader) skipBOM() {
	for r.to < len(byteOrderMark) && string(r.buf[:r.to]) == byteOrderMark[:r.to] {
		if _, err := r.fill(); err != nil {
			r.err = err // for the next read
			return
		}
	}
	if string(r.buf[:len(byteOrderMark)]) == byteOrderMark {
		r.from = len(byteOrderMark)
	}
}

// Parse parses the frame that Read returned last, at most once.
func (r *Reader) Parse(frame []byte) (Message, error) {
	if r.large == nil || !r.checkEarly {
		return ParseWithin(frame, r.depth)
	}
	src := bytes.TrimRight(r.large, "\r\n \t")
	r.large = nil
	m, err := parse(&r.check, src, frame)
	m.Buffer = r.buffer
	return m, err
}

func (r *Reader) line() ([]byte, error) {
	if end := r.nextEnd; end > 0 {
		r.nextEnd = 0
		return r.takeLine(0, end)
	}
	before := 0 // bytes in part
	defer func() {
		if before > 0 {
			r.part.clear()
		}
	}()
	if r.skipping {
		if err := r.skip(); err != nil {
			return nil, err
		}
	}
	looked := r.from
	for {
		if n := bytes.IndexByte(r.buf[looked:r.to], '\n'); n >= 0 {
			return r.takeLine(before, looked+n+1)
		}
		if r.from == 0 && r.to == len(r.buf) {
			before += len(r.buf)
			room := r.storeChunk(before == len(r.buf))
			if r.skipping = !room || int64(before) > r.limit; r.skipping {
				return nil, r.discardError(room)
			}
		}
		n, err := r.fill()
		if err != nil {
			line, long := r.takeLine(before, r.to)
			if long != nil {
				return nil, long
			}
			r.truncated = true
			return line, err
		}
		looked = r.to - n
	}
}

// storeChunk moves buf to part and checks it. It returns false over the memory limit.
func (r *Reader) storeChunk(first bool) bool {
	next, line, room := r.part.add(r.buf)
	r.buf, r.to = next, 0
	if r.checkEarly {
		if first {
			r.check = rawjson.Checker{Depth: r.depth}
			r.check.RecordShape()
		}
		r.check.Feed(line)
	}
	return room
}

// takeLine returns a copy of the line that ends at buf[end]. before is the size of its
// beginning, which is in r.part.
func (r *Reader) takeLine(before, end int) ([]byte, error) {
	last := r.buf[r.from:end]
	r.from = end
	if before == 0 {
		if int64(len(last)) > r.limit {
			return nil, r.tooLong(last)
		}
		return bytes.Clone(last), nil
	}
	if int64(before+len(last)) > r.limit {
		return nil, r.discardError(true)
	}
	r.large, r.buffer = r.part.finish(last)
	return r.large, nil
}

// maxEmptyReads is the number of empty reads before io.ErrNoProgress.
const maxEmptyReads = 100

func (r *Reader) fill() (n int, err error) {
	if r.from > 0 {
		r.to = copy(r.buf[:], r.buf[r.from:r.to])
		r.from = 0
	}
	if err, r.err = r.err, nil; err != nil {
		return 0, err
	}
	for range maxEmptyReads {
		n, err = r.src.Read(r.buf[r.to:])
		if n > 0 {
			r.to += n
			r.err = err
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

func (r *Reader) tooLong(start []byte) error {
	return &TooLongError{Prefix: bytes.Clone(start[:min(len(start), maxPrefix)]), Limit: r.limit}
}

func (r *Reader) discardError(room bool) error {
	e := &TooLongError{Prefix: r.part.prefix(), Limit: r.limit}
	if !room {
		e.Cause = memlimit.ErrFull
	}
	return e
}

func (r *Reader) skip() error {
	for {
		if n := bytes.IndexByte(r.buf[r.from:r.to], '\n'); n >= 0 {
			r.from += n + 1
			r.skipping = false
			return nil
		}
		r.from, r.to = 0, 0
		if _, err := r.fill(); err != nil {
			return err
		}
	}
}
