package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
)

// event is one line to the test.
type event struct {
	Ev      string            `json:"ev"` // hello recv wait reply signal eof deaf gone http refused done
	PID     int               `json:"pid,omitempty"`
	Start   int               `json:"start,omitempty"` // hello: number of this start of the script, from 1
	Name    string            `json:"name,omitempty"`
	Msg     json.RawMessage   `json:"msg,omitempty"`
	Bad     string            `json:"bad,omitempty"` // received text that is not JSON
	HTTP    string            `json:"http,omitempty"`
	Session string            `json:"session,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	ID      int64             `json:"id,omitempty"` // done: of the command
}

func (s *server) connect() error {
	var err error
	if s.start, err = countStart(s.path()); err != nil {
		return err
	}
	if s.Log != "" {
		s.log, err = os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("open the log: %w", err)
		}
	}
	if s.Control == "" {
		return nil
	}
	conn, err := net.Dial("unix", s.Control)
	if err != nil {
		return fmt.Errorf("dial the test: %w", err)
	}
	s.control = conn
	s.tell(event{Ev: "hello", PID: os.Getpid(), Start: s.start})
	go s.commands(conn)
	return nil
}

func (s *server) path() string {
	if s.Control != "" {
		return s.Control
	}
	return s.Log
}

// countStart adds a line with the PID to path.starts, and returns the number of starts of
// this script.
func countStart(path string) (int, error) {
	if path == "" {
		return 1, nil
	}
	f, err := os.OpenFile(path+".starts", os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return 0, fmt.Errorf("count the starts: %w", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		return 0, fmt.Errorf("count the starts: %w", err)
	}
	end, err := f.Seek(0, io.SeekCurrent) // of this line, regardless of concurrent writes
	if err != nil {
		return 0, fmt.Errorf("count the starts: %w", err)
	}
	lines := make([]byte, end)
	if _, err := f.ReadAt(lines, 0); err != nil {
		return 0, fmt.Errorf("count the starts: %w", err)
	}
	return bytes.Count(lines, []byte("\n")) - bytes.Count(lines, []byte(grandchildMark)), nil
}

const grandchildMark = "grandchild "

func (s *server) noteGrandchild(pid int) error {
	if s.path() == "" {
		return nil
	}
	f, err := os.OpenFile(s.path()+".starts", os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s%d\n", grandchildMark, pid)
	return err
}

func (s *server) tell(e event) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.log != nil && e.Msg != nil {
		fmt.Fprintf(s.log, "%s\n", e.Msg)
	}
	if s.control != nil {
		_, _ = s.control.Write(append(marshal(e), '\n')) // the test may be over
	}
}

func (s *server) commands(conn net.Conn) {
	r := bufio.NewScanner(conn)
	r.Buffer(nil, 64<<20)
	for r.Scan() {
		var a action
		if err := json.Unmarshal(r.Bytes(), &a); err != nil {
			fmt.Fprintln(os.Stderr, "testserver: bad command:", err)
			continue
		}
		s.act(s.outside(), []*action{&a})
		s.tell(event{Ev: "done", ID: a.ID})
	}
}
