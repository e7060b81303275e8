package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	r     *bufio.Reader
	limit int64
}

// NewReader returns a Reader whose frames have at most limit bytes.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Buffered reports how many bytes were read ahead: zero means that the peer
// has sent nothing more so far.
func (r *Reader) Buffered() int { return r.r.Buffered() }

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

func (r *Reader) line() ([]byte, error) {
	part, err := r.r.ReadSlice('\n')
	if err == nil {
		if int64(len(part)) > r.limit {
			return nil, &TooLong{Prefix: bytes.Clone(part[:min(len(part), 4096)]), Limit: r.limit}
		}
		return bytes.Clone(part), nil
	}
	var parts [][]byte
	var size int64
	for errors.Is(err, bufio.ErrBufferFull) {
		size += int64(len(part))
		if size > r.limit {
			return nil, r.skip(append(parts, part))
		}
		parts = append(parts, bytes.Clone(part))
		part, err = r.r.ReadSlice('\n')
	}
	if size+int64(len(part)) > r.limit {
		prefix := part
		if len(parts) > 0 {
			prefix = parts[0]
		}
		return nil, &TooLong{Prefix: bytes.Clone(prefix[:min(len(prefix), 4096)]), Limit: r.limit}
	}
	return bytes.Join(append(parts, part), nil), err
}

// skip reads to the end of a frame that is too long.
func (r *Reader) skip(parts [][]byte) error {
	prefix := bytes.Clone(parts[0][:min(len(parts[0]), 4096)])
	for {
		_, err := r.r.ReadSlice('\n')
		if err == nil {
			return &TooLong{Prefix: prefix, Limit: r.limit}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
