package jsonrpc

import (
	"bytes"
	"fmt"
	"io"
	"sync"
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
}

// chunk is as much as is read at once: what a pipe holds.
type chunk [64 << 10]byte

// chunks are kept for large frames, which are put together from them.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// NewReader returns a Reader whose frames have at most limit bytes.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{r: r, limit: limit, buf: chunks.Get().(*chunk)}
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

// line reads to the next line break, or to an error of the underlying reader.
func (r *Reader) line() ([]byte, error) {
	var full []*chunk // what of the line stands before buf
	defer func() {
		for _, c := range full {
			chunks.Put(c)
		}
	}()
	looked := r.from
	for {
		if n := bytes.IndexByte(r.buf[looked:r.to], '\n'); n >= 0 {
			return r.take(full, looked+n+1)
		}
		if r.from == 0 && r.to == len(r.buf) {
			full = append(full, r.buf)
			r.buf, r.to = chunks.Get().(*chunk), 0
			if int64(len(full)*len(r.buf)) > r.limit {
				return nil, r.skip(full[0][:])
			}
		}
		n, err := r.fill()
		if err != nil {
			line, long := r.take(full, r.to)
			if long != nil {
				return nil, long
			}
			return line, err
		}
		looked = r.to - n
	}
}

// take returns what ends at a place of buf, in memory of its own.
func (r *Reader) take(full []*chunk, end int) ([]byte, error) {
	last := r.buf[r.from:end]
	r.from = end
	if int64(len(full)*len(r.buf)+len(last)) > r.limit {
		if len(full) > 0 {
			last = full[0][:]
		}
		return nil, r.tooLong(last)
	}
	if len(full) == 0 {
		return bytes.Clone(last), nil
	}
	parts := make([][]byte, 0, len(full)+1)
	for _, c := range full {
		parts = append(parts, c[:])
	}
	return bytes.Join(append(parts, last), nil), nil
}

// maxFruitless is how many reads in a row may bring nothing.
const maxFruitless = 100

// fill reads once, behind what was read ahead.
func (r *Reader) fill() (n int, err error) {
	if r.from > 0 {
		r.to = copy(r.buf[:], r.buf[r.from:r.to])
		r.from = 0
	}
	if err, r.err = r.err, nil; err != nil {
		return 0, err
	}
	for range maxFruitless {
		n, err = r.r.Read(r.buf[r.to:])
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
