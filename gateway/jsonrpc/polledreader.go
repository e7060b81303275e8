package jsonrpc

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// polledReader reads a pipe or socket with readNow and waits in the runtime's poller.
// Files without such reads use their own Read.
type polledReader struct {
	src io.Reader
	raw syscall.RawConn // nil after a failure

	attempt func(fd uintptr) bool // reused because a closure per read would cost an allocation
	buf     []byte
	n       int
	err     error
}

// newPolledReader returns r itself if its type may change what it reads.
func newPolledReader(r io.Reader) io.Reader {
	var raw syscall.RawConn
	var err error
	switch c := r.(type) {
	case *os.File:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	}
	if raw == nil || err != nil {
		return r
	}
	p := &polledReader{src: r, raw: raw}
	p.attempt = func(fd uintptr) bool {
		p.n, p.err = readNow(fd, p.buf)
		return p.n >= 0
	}
	return p
}

func (p *polledReader) Read(buf []byte) (int, error) {
	if p.raw == nil || len(buf) == 0 {
		return p.src.Read(buf)
	}
	p.buf = buf
	err := p.raw.Read(p.attempt)
	p.buf = nil
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, err
	case err != nil || errors.Is(p.err, errors.ErrUnsupported):
		p.raw = nil
	case p.err != nil:
		return 0, os.NewSyscallError("read", p.err)
	case p.n > 0:
		return p.n, nil
	}
	return p.src.Read(buf) // returns io.EOF or the error of its type
}
