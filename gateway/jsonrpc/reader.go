package jsonrpc

import (
	"bytes"
	"fmt"
	"io"

	"goblin/registry/rawjson"
)

// TooLong is the error for a frame over the limit. The frame was read to its
// end and thrown away; reading can go on.
type TooLong struct {
	Prefix []byte // its first bytes, enough to find the id
	Limit  int64
}

func (e *TooLong) Error() string {
	return fmt.Sprintf("a message is larger than the limit of %d bytes (limits.frame)", e.Limit)
}

// ID is the top-level id where it stands in the first bytes; else nil.
func (e *TooLong) ID() []byte { return salvageID(e.Prefix) }

// IsResponse reports whether the lost frame answered a call, as far as its
// first bytes show.
func (e *TooLong) IsResponse() bool { return !bytes.Contains(e.Prefix, []byte(`"method"`)) }

// Reader reads frames that end at a line break.
type Reader struct {
	r        io.Reader
	limit    int64
	buf      *chunk
	from, to int   // what was read ahead
	err      error // of r, told when what came before it has been read

	checks bool          // of Checking
	usual  int           // how large large frames were of late
	large  []byte        // the last frame, if it was one
	buffer *Buffer       // its memory; nil where it is of no use for others
	check  rawjson.Check // of large, as far as it is there
}

// chunk is as much as is read at once: what a pipe holds.
type chunk [64 << 10]byte

// NewReader returns a Reader whose frames have at most limit bytes.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{r: r, limit: limit, buf: new(chunk)}
}

// Checking makes r check frames that are larger than what is read at once while
// they arrive, for those who call [Reader.Parse]. It returns r.
func (r *Reader) Checking() *Reader {
	r.checks = true
	return r
}

// Buffered reports how many bytes were read ahead: zero means that the peer
// has sent nothing more so far.
func (r *Reader) Buffered() int { return r.to - r.from }

// Ready reports whether a whole line was read ahead: Read need not wait for the
// peer, unless the line is blank.
func (r *Reader) Ready() bool {
	return bytes.IndexByte(r.buf[r.from:r.to], '\n') >= 0
}

// Read returns the next frame that is not blank, without its line break, in
// memory of its own. The errors are [*TooLong], after which reading can go
// on, and those of the underlying reader; a last frame without a line break
// is returned before io.EOF.
func (r *Reader) Read() ([]byte, error) {
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

// Parse is the function Parse for the frame that Read returned last, which it
// must not be called for twice.
func (r *Reader) Parse(frame []byte) (Message, error) {
	if r.large == nil || !r.checks {
		return Parse(frame)
	}
	src := bytes.TrimRight(r.large, "\r\n \t")
	r.large = nil
	m, err := parse(&r.check, src, frame)
	m.Buffer = r.buffer
	return m, err
}

// line reads to the next line break, or to an error of the underlying reader.
func (r *Reader) line() ([]byte, error) {
	looked := r.from
	for {
		if n := bytes.IndexByte(r.buf[looked:r.to], '\n'); n >= 0 {
			return r.take(looked + n + 1)
		}
		if r.from == 0 && r.to == len(r.buf) {
			return r.grow()
		}
		n, err := r.fill()
		if err != nil {
			line, long := r.take(r.to)
			if long != nil {
				return nil, long
			}
			return line, err
		}
		looked = r.to - n
	}
}

// take returns what ends at a place of buf, in memory of its own.
func (r *Reader) take(end int) ([]byte, error) {
	line := r.buf[r.from:end]
	r.from = end
	if int64(len(line)) > r.limit {
		return nil, r.tooLong(line)
	}
	return bytes.Clone(line), nil
}

// grow reads the rest of a line that buf is full of into memory of its own.
func (r *Reader) grow() ([]byte, error) {
	if int64(len(r.buf)) > r.limit {
		r.from = r.to
		return nil, r.skip(r.buf[:])
	}
	r.buffer = newBuffer(r.room(max(4*len(r.buf), r.usual)))
	line := append(r.buffer.mem[:0], r.buf[:]...)
	r.from, r.to = 0, 0
	r.check = rawjson.Check{}
	r.check.Mark()
	for {
		if r.checks {
			r.check.More(line)
		}
		if len(line) == cap(line) {
			line = r.regrow(line)
		}
		// No more than buf can take of what comes after the line.
		n, err := r.read(line[len(line):min(len(line)+len(r.buf), cap(line))])
		fresh := line[len(line) : len(line)+n]
		end := bytes.IndexByte(fresh, '\n') + 1
		if end > 0 {
			r.to = copy(r.buf[:], fresh[end:])
			fresh = fresh[:end]
		}
		line = line[:len(line)+len(fresh)]
		switch {
		case int64(len(line)) > r.limit && end == 0:
			return nil, r.skip(line)
		case int64(len(line)) > r.limit:
			return nil, r.tooLong(line)
		case end > 0 || err != nil:
			r.usual = min(max(len(line)+slack, r.usual-r.usual/8), maxUsual)
			if cap(line) > 2*len(line) { // who keeps it must not keep all that room
				line = bytes.Clone(line)
				r.buffer.Release()
				r.buffer = nil
			}
			r.large = line
			return line, err
		}
	}
}

// regrow moves a line that fills its memory to where there is more.
func (r *Reader) regrow(line []byte) []byte {
	old, size := r.buffer, r.room(2*cap(line))
	if size > maxBuffer {
		r.buffer = nil // too large to be kept
		line = append(make([]byte, 0, size), line...)
	} else {
		r.buffer = newBuffer(size)
		line = append(r.buffer.mem[:0], line...)
	}
	old.Release()
	return line
}

// A line is expected to be as long as those before it and slack bytes, up to
// maxUsual: peers that stop in the middle of one must not take much more memory
// than they have sent. Where it is longer, room for it grows as it comes, in
// memory that is used again up to maxBuffer.
const (
	slack     = 4 << 10
	maxUsual  = 1 << 20
	maxBuffer = 8 << 20
)

// room is how much to make room for: n bytes, but not much more than may come.
func (r *Reader) room(n int) int { return int(min(int64(n), r.limit+int64(len(r.buf)))) }

// maxFruitless is how many reads in a row may bring nothing.
const maxFruitless = 100

// fill reads once, behind what was read ahead.
func (r *Reader) fill() (n int, err error) {
	if r.from > 0 {
		r.to = copy(r.buf[:], r.buf[r.from:r.to])
		r.from = 0
	}
	n, err = r.read(r.buf[r.to:])
	r.to += n
	return n, err
}

// read reads once: something or an error.
func (r *Reader) read(p []byte) (n int, err error) {
	if err, r.err = r.err, nil; err != nil {
		return 0, err
	}
	for range maxFruitless {
		n, err = r.r.Read(p)
		if n > 0 {
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
	return &TooLong{Prefix: bytes.Clone(start[:min(len(start), 4096)]), Limit: r.limit}
}

// skip reads to the end of a frame that is too long.
func (r *Reader) skip(start []byte) error {
	long := r.tooLong(start)
	for {
		if n := bytes.IndexByte(r.buf[r.from:r.to], '\n'); n >= 0 {
			r.from += n + 1
			return long
		}
		r.from, r.to = 0, 0
		if _, err := r.fill(); err != nil {
			return err
		}
	}
}
