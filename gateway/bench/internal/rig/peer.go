package rig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// Peer is an MCP server that is asked over streams, by one goroutine at a time
// for either direction.
type Peer struct {
	PID int // 0 inside this process

	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
	id  int
}

// Hello are the params of initialize.
const Hello = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// Connect is a peer inside this process; hands are not shaken yet.
func Connect(in io.WriteCloser, out io.Reader) *Peer {
	return &Peer{in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

// Start runs a command as a peer and shakes hands.
func Start(env []string, name string, args ...string) (*Peer, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := Connect(in, out)
	p.cmd, p.PID = cmd, cmd.Process.Pid
	if _, err = p.Ask("initialize", Hello); err == nil {
		err = p.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("shake hands with %s: %w", name, err)
	}
	return p, nil
}

// Close ends the peer and waits for its process.
func (p *Peer) Close() {
	_ = p.in.Close()
	if p.cmd != nil {
		_ = p.cmd.Wait()
	}
}

func (p *Peer) write(text string) error {
	_, err := io.WriteString(p.in, text)
	return err
}

// Send asks without waiting for the answer, under the next id.
func (p *Peer) Send(method, params string) error {
	p.id++
	return p.SendAs(p.id, method, params)
}

// SendAs asks under an id of the caller's.
func (p *Peer) SendAs(id int, method, params string) error {
	return p.write(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"` + method + `","params":` + params + "}\n")
}

// Receive reads the next answer; those that are errors are errors. It is the
// whole frame, or its first part if that is larger than 1 MiB.
func (p *Peer) Receive() ([]byte, error) {
	for {
		line, err := p.Next()
		switch {
		case err != nil:
			return nil, err
		case IsNotice(line):
			continue
		case IsFailure(line):
			return nil, fmt.Errorf("error: %.500s", line)
		}
		return line, nil
	}
}

// Next reads the next frame of whatever kind, as Receive does.
func (p *Peer) Next() ([]byte, error) {
	line, err := p.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	line = bytes.Clone(line[:4096])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = p.out.ReadSlice('\n')
	}
	return line, err
}

// Ask sends a request and receives its answer.
func (p *Peer) Ask(method, params string) ([]byte, error) {
	if err := p.Send(method, params); err != nil {
		return nil, err
	}
	return p.Receive()
}

var (
	wantError = []byte(`"error":`)
	isNotice  = []byte(`"method":`)
)

// IsNotice reports whether a frame of Goblin or of a backend is a notification.
func IsNotice(frame []byte) bool { return bytes.Contains(frame[:min(len(frame), 120)], isNotice) }

// IsFailure reports whether such a frame is an error.
func IsFailure(frame []byte) bool { return bytes.Contains(frame[:min(len(frame), 120)], wantError) }
