package remoteui

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrDisconnected is the error for a Conn that was closed or lost its relay.
var ErrDisconnected = errors.New("the UI's terminal is disconnected")

const (
	helloTimeout = 5 * time.Second
	writeTimeout = 15 * time.Second
	exitTimeout  = time.Second
)

// environment lists the relay's variables for a UI.
var environment = []string{
	"CLICOLOR", "CLICOLOR_FORCE", "COLORFGBG", "COLORTERM", "LANG", "LC_ALL",
	"LC_CTYPE", "LC_TERMINAL", "NO_COLOR", "SSH_TTY", "TERM", "TERM_PROGRAM", "TMUX",
}

// Conn is the daemon's end of a UI connection.
type Conn struct {
	c     net.Conn
	br    *bufio.Reader
	hello hello
	keys  *queue

	size              atomic.Pointer[size]
	dark              atomic.Pointer[bool]
	resized           chan struct{}
	backgroundChanged chan struct{}
	paused            atomic.Bool // the relay's process is stopped and does not read

	writeMu sync.Mutex
	frame   []byte        // the frame being written; guarded by writeMu
	wait    time.Duration // guarded by writeMu

	deadlineMu sync.Mutex // guards exitBy and setting write deadlines
	exitBy     time.Time  // deadline of the last write; zero before Exit

	orders  chan struct{} // held by the current order
	lastID  uint64        // guarded by orders
	answers chan orderResult

	gone   chan struct{} // closed with the connection
	goOnce sync.Once
	ended  chan struct{} // closed when the reader has returned
}

// Accept reads a relay's hello and starts a Conn, which owns c. r must return the bytes
// read ahead from c, then those of c. Accept waits 5 s for the hello and closes c on
// errors.
func Accept(c net.Conn, r io.Reader) (*Conn, error) {
	s := &Conn{
		c: c, br: bufio.NewReader(r), keys: newQueue(), wait: writeTimeout,
		resized: make(chan struct{}, 1), backgroundChanged: make(chan struct{}, 1),
		orders: make(chan struct{}, 1), answers: make(chan orderResult, 1),
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := s.readHello(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("accept a UI: %w", err)
	}
	go s.receive()
	return s, nil
}

func (s *Conn) readHello() error {
	if err := s.c.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	kind, payload, err := readFrame(s.br, nil)
	if err != nil {
		return err
	}
	if kind != frameHello {
		return fmt.Errorf("expected a hello, got frame %q", kind)
	}
	if err := json.Unmarshal(payload, &s.hello); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	s.size.Store(&s.hello.size)
	s.dark.Store(s.hello.Dark)
	maps.DeleteFunc(s.hello.Env, func(name, value string) bool {
		return !slices.Contains(environment, name) || strings.ContainsRune(value, 0)
	})
	return s.c.SetReadDeadline(time.Time{})
}

func (s *Conn) receive() {
	defer close(s.ended)
	defer s.disconnect()
	var buf []byte
	for {
		kind, payload, err := readFrame(s.br, buf)
		if err != nil || !s.handleFrame(kind, payload) {
			return
		}
		if cap(payload) > cap(buf) {
			buf = payload
		}
	}
}

// handleFrame returns false to close the connection.
func (s *Conn) handleFrame(kind byte, payload []byte) bool {
	switch kind {
	case frameInput:
		return s.keys.put(payload)
	case frameSize:
		var to size
		if json.Unmarshal(payload, &to) != nil {
			return false
		}
		s.size.Store(&to)
		s.paused.Store(false)
		wake(s.resized)
	case framePause:
		s.paused.Store(true)
	case frameBackground:
		if len(payload) != 1 {
			return false
		}
		dark := payload[0] != 0
		s.dark.Store(&dark)
		wake(s.backgroundChanged)
	case frameDone:
		var a orderResult
		if json.Unmarshal(payload, &a) != nil {
			return false
		}
		select {
		case <-s.answers: // of an abandoned order
		default:
		}
		s.answers <- a
	default:
		return false
	}
	return true
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// disconnect closes the connection without waiting for the reader.
func (s *Conn) disconnect() {
	s.goOnce.Do(func() {
		_ = s.c.Close()
		close(s.gone)
		s.keys.close()
	})
}

// Read returns keys, at most those of one read of the terminal. It blocks until there are
// some. After the relay disconnected it returns the remaining ones, then io.EOF.
func (s *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, ok := s.keys.read(p)
	if !ok {
		return 0, io.EOF
	}
	return n, nil
}

// Write sends output to the terminal, in one frame up to 8 MiB. It blocks until the
// connection took it, at most the write limit (15 s). Then it closes the connection,
// because part of a frame may have been sent. While the relay's process is stopped, it
// drops output; a value of Resized follows.
func (s *Conn) Write(p []byte) (int, error) {
	for sent := 0; ; {
		piece := p[sent:min(len(p), sent+maxOutput)]
		if s.paused.Load() {
			return len(p), nil
		}
		if err := s.send(frameOutput, piece); err != nil {
			return sent, err
		}
		if sent += len(piece); sent == len(p) {
			return sent, nil
		}
	}
}

// SetWriteLimit sets the maximum duration of writing one frame.
func (s *Conn) SetWriteLimit(d time.Duration) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.wait = d
}

func (s *Conn) send(kind byte, payload []byte) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if s.isExiting() {
		return ErrDisconnected
	}
	return s.sendLocked(kind, payload, s.wait)
}

func (s *Conn) isExiting() bool {
	s.deadlineMu.Lock()
	defer s.deadlineMu.Unlock()
	return !s.exitBy.IsZero()
}

// startDeadline never exceeds the deadline of Exit.
func (s *Conn) startDeadline(wait time.Duration) {
	s.deadlineMu.Lock()
	defer s.deadlineMu.Unlock()
	by := time.Now().Add(wait)
	if !s.exitBy.IsZero() {
		by = s.exitBy
	}
	_ = s.c.SetWriteDeadline(by) // a closed connection fails in Write, too
}

// limitWrites limits the current and all further writes to one second in total.
func (s *Conn) limitWrites() {
	s.deadlineMu.Lock()
	defer s.deadlineMu.Unlock()
	if s.exitBy.IsZero() {
		s.exitBy = time.Now().Add(exitTimeout)
		_ = s.c.SetWriteDeadline(s.exitBy)
	}
}

func (s *Conn) sendLocked(kind byte, payload []byte, wait time.Duration) error {
	select {
	case <-s.gone:
		return ErrDisconnected
	default:
	}
	s.frame = appendFrame(s.frame[:0], kind, payload)
	var err error
	for rest := s.frame; len(rest) > 0; {
		s.startDeadline(wait)
		var n int
		n, err = s.c.Write(rest)
		rest = rest[n:]
		// A relay that was stopped meanwhile reads the rest once it continues.
		if err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || !s.paused.Load() || s.isExiting()) {
			break
		}
	}
	if cap(s.frame) > maxControl {
		s.frame = nil // large buffers are rare
	}
	if err != nil {
		s.disconnect()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the terminal did not accept output within %v: %w", wait, err)
		}
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// Env returns the relay's variables for a UI as KEY=VALUE, sorted.
func (s *Conn) Env() []string {
	env := make([]string, 0, len(s.hello.Env))
	for name, value := range s.hello.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// Getenv returns a variable of Env, or "".
func (s *Conn) Getenv(name string) string { return s.hello.Env[name] }

// Terminal returns the terminal's own name for display: untrusted text.
func (s *Conn) Terminal() string {
	name := cmp.Or(s.Getenv("TERM_PROGRAM"), s.Getenv("TERM"), "terminal")
	if s.Getenv("SSH_TTY") != "" {
		name += " over SSH"
	}
	return name
}

// Size returns the terminal's latest size in cells. Each side is 1 to 1000, and the area
// at most 250,000. The lower part of a larger terminal is unused.
func (s *Conn) Size() (w, h int) {
	at := s.size.Load()
	w = min(max(at.Width, 1), maxSide)
	return w, min(max(at.Height, 1), maxSide, maxCells/w)
}

// Graphics returns the terminal's image support as reported so far: kitty's protocol,
// sixel, and the size of a cell in pixels, 0 if unknown.
func (s *Conn) Graphics() (kitty, sixel bool, cellWidth, cellHeight int) {
	at := s.size.Load()
	w, h := at.CellWidth, at.CellHeight
	if w < 1 || h < 1 || w > maxCellSide || h > maxCellSide {
		w, h = 0, 0
	}
	return at.Kitty, at.Sixel, w, h
}

// Resized receives a value when the size or Graphics changed, or when the terminal is
// available again. Unread values coalesce. The UI must repaint completely.
func (s *Conn) Resized() <-chan struct{} { return s.resized }

// Dark reports whether the terminal's background is dark, once known.
func (s *Conn) Dark() (dark, known bool) {
	if p := s.dark.Load(); p != nil {
		return *p, true
	}
	return false, false
}

// Backgrounds receives a value when Dark changed. Unread values coalesce.
func (s *Conn) Backgrounds() <-chan struct{} { return s.backgroundChanged }

// Theme returns the theme requested by the relay's user, or "".
func (s *Conn) Theme() string { return s.hello.Theme }

// ASCII reports whether the relay's user requested ASCII output.
func (s *Conn) ASCII() bool { return s.hello.ASCII }

// Done is closed when the relay disconnected or the Conn was closed.
func (s *Conn) Done() <-chan struct{} { return s.gone }

// Exit asks the relay to exit with a reason (empty for a plain quit), and closes the
// connection. A relay that does not read delays it by at most one second, even if a Write
// is waiting. Only the first reason counts.
func (s *Conn) Exit(reason string) error {
	s.limitWrites()
	s.writeMu.Lock()
	err := s.sendLocked(frameExit, []byte(reason[:min(len(reason), maxControl)]), exitTimeout)
	s.writeMu.Unlock()
	return errors.Join(err, s.Close())
}

// Close closes the connection and waits for the reader. It may be called again.
func (s *Conn) Close() error {
	s.disconnect()
	<-s.ended
	return nil
}
