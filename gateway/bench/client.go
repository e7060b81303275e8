package main

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

// client allows one goroutine to send and one to receive at a time.
type client struct {
	PID int // of the server; 0 inside this process

	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
	id  int
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

func connect(in io.WriteCloser, out io.Reader) *client {
	return &client{in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

func startClient(env []string, command ...string) (*client, error) {
	cmd := exec.Command(command[0], command[1:]...)
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
	p := connect(in, out)
	p.cmd, p.PID = cmd, cmd.Process.Pid
	if _, err = p.Ask("initialize", hello); err == nil {
		err = p.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("initialize %s: %w", command[0], err)
	}
	return p, nil
}

// Close closes the server's input and waits for its process.
func (p *client) Close() {
	_ = p.in.Close()
	if p.cmd != nil {
		_ = p.cmd.Wait()
	}
}

func (p *client) write(text string) error {
	_, err := io.WriteString(p.in, text)
	return err
}

// Send sends a request with the next id.
func (p *client) Send(method, params string) error {
	p.id++
	return p.SendAs(p.id, method, params)
}

// SendAs sends a request with the given id.
func (p *client) SendAs(id int, method, params string) error {
	return p.write(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"` + method + `","params":` + params + "}\n")
}

// Receive reads the next response. It skips notifications and returns error responses as
// errors. A frame over 1 MiB is cut.
func (p *client) Receive() ([]byte, error) {
	for {
		line, err := p.Next()
		switch {
		case err != nil:
			return nil, err
		case isNotice(line):
			continue
		case isFailure(line):
			return nil, fmt.Errorf("error: %.500s", line)
		}
		return line, nil
	}
}

// Next reads the next frame of any kind. A frame over 1 MiB is cut.
func (p *client) Next() ([]byte, error) {
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

// Ask sends a request and receives its response.
func (p *client) Ask(method, params string) ([]byte, error) {
	if err := p.Send(method, params); err != nil {
		return nil, err
	}
	return p.Receive()
}

var (
	errorMember  = []byte(`"error":`)
	noticeMember = []byte(`"method":`)
)

func isNotice(frame []byte) bool { return bytes.Contains(frame[:min(len(frame), 120)], noticeMember) }

func isFailure(frame []byte) bool { return bytes.Contains(frame[:min(len(frame), 120)], errorMember) }
