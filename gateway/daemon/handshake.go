package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The kinds of connections.
const (
	KindMCP     = "mcp"     // MCP messages, one per line
	KindScreen  = "screen"  // the relay of a UI
	KindControl = "control" // one control request, see Control
)

const (
	protocol    = 1                      // version of handshake and control channel
	maxHello    = 16 << 10               // bytes of a first line
	maxCwd      = 2 << 10                // bytes of its directory; JSON escapes take up to six times as much
	endingLimit = 500 * time.Millisecond // for the first line while the daemon stops
)

// helloLimit limits the wait for a first line, and for its answer. Tests replace it.
var helloLimit = 5 * time.Second

type hello struct {
	Goblin  int    `json:"goblin"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Build   string `json:"build,omitempty"`
	PID     int    `json:"pid"`
	Client
}

// Client describes the process at the other end, as it reported itself.
type Client struct {
	Cwd     string `json:"cwd,omitempty"`     // working directory, or ""
	Profile string `json:"profile,omitempty"` // requested profile
}

type welcome struct {
	Goblin int    `json:"goblin"`
	OK     bool   `json:"ok,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Build  string `json:"build,omitempty"`
	Ending bool   `json:"ending,omitempty"` // not here, but the next daemon will serve
	Error  string `json:"error,omitempty"`
}

// readHello reads the first line. rest is data read beyond it.
func readHello(c net.Conn) (h hello, rest []byte, err error) {
	buf := make([]byte, 0, maxHello)
	for {
		n, err := c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			return h, buf[i+1:], parseHello(buf[:i], &h)
		}
		if err != nil {
			return h, nil, err
		}
		if len(buf) == cap(buf) {
			return h, nil, fmt.Errorf("the first line is longer than %d bytes", maxHello)
		}
	}
}

func parseHello(line []byte, h *hello) error {
	if err := json.Unmarshal(line, h); err != nil || h.Goblin == 0 {
		return errors.New(`this is a Goblin daemon's socket; the first line must be {"goblin":1,"kind":"mcp","version":"..."} (goblin stdio does that for you)`)
	}
	if h.Goblin != protocol {
		return fmt.Errorf("this daemon speaks version %d of the socket's protocol, not %d", protocol, h.Goblin)
	}
	return nil
}

// sendHello sends the first line and reads its answer, but no byte beyond it.
func sendHello(c net.Conn, kind string, p Endpoint, deadline time.Time) (welcome, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return welcome{}, err
	}
	if err := writeLine(c, hello{protocol, kind, p.Version, p.Build, os.Getpid(), Client{cwd(), p.Profile}}); err != nil {
		return welcome{}, err
	}
	line := make([]byte, 0, 128)
	for len(line) == 0 || line[len(line)-1] != '\n' {
		if len(line) >= maxHello {
			return welcome{}, errors.New("not a Goblin daemon: its first line is too long")
		}
		line = append(line, 0)
		if _, err := io.ReadFull(c, line[len(line)-1:]); err != nil {
			return welcome{}, err
		}
	}
	var w welcome
	if err := json.Unmarshal(line, &w); err != nil || w.Goblin != protocol {
		return welcome{}, errors.New("not a Goblin daemon: malformed first line")
	}
	return w, c.SetDeadline(time.Time{})
}

func cwd() string {
	folder, err := os.Getwd()
	if err != nil || len(folder) > maxCwd {
		return ""
	}
	return folder
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
