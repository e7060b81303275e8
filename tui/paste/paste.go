// Package paste removes pasted text from a terminal's input before Bubble Tea reads it.
//
// Bubble Tea searches a whole paste again with each read, which is slow: minutes for a
// megabyte. A [Reader] keeps the text and passes on an empty paste in its place. So the
// order of pastes and keys stays. [Reader.Filter] puts the text back. Read belongs to one
// goroutine; the other methods may be called from any.
package paste

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
)

// Limit is the maximum size of a paste, in bytes.
const Limit = 4 << 20

// Refused reports a paste that exceeds [Limit].
type Refused struct {
	Size int // bytes
}

func (r Refused) String() string {
	return fmt.Sprintf("Not pasted: %s; the limit is %s", termtext.Size(int64(r.Size)), termtext.Size(Limit))
}

// StallHint is the message for [Reader.Stalled].
const StallHint = "The terminal has not ended the paste; Esc ends it"

const (
	start = "\x1b[200~"
	end   = "\x1b[201~"

	// stall is the silence after which a paste without an end can be ended by a key.
	stall = 2 * time.Second

	// fullRead is the number of bytes after which a read may end within a sequence.
	fullRead = 4096
)

// Reader is the input of a terminal without the text of pastes.
type Reader struct {
	in  io.Reader
	now func() time.Time

	buf   []byte
	raw   []byte // an incomplete sequence
	ready []byte // not read yet, without text of pastes
	last  string // end of the keys before, which a paste may start with
	err   error

	mu     sync.Mutex
	open   bool   // inside a paste
	text   []byte // of the open paste, at most Limit
	size   int    // of the open paste
	heard  time.Time
	pastes []tea.Msg // in the order of their markers
}

// NewReader returns a reader of a terminal's input.
func NewReader(in io.Reader, now func() time.Time) *Reader {
	return &Reader{in: in, now: now, buf: make([]byte, 32<<10)}
}

// Read returns keys. It ends at the end of a key, and never fills p if more keys are
// waiting: Bubble Tea would wait for the next key.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.in.Read(r.buf)
		r.err = err
		r.take(r.buf[:n])
	}
	n := len(r.ready)
	if n >= len(p) {
		n = max(len(p)-1, 1)
		if whole := n - incomplete(r.ready[:n]); whole > 0 {
			n = whole
		}
	}
	copy(p, r.ready[:n])
	r.ready = r.ready[n:]
	return n, nil
}

// take sorts input into keys and pastes.
func (r *Reader) take(in []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	silent := now.Sub(r.heard)
	if len(in) > 0 {
		r.heard = now
	}
	if r.open && silent >= stall && (string(in) == "\x1b" || string(in) == "\x03") {
		r.closePaste()
		return
	}
	b := append(r.raw, in...)
	r.raw = nil
	r.ready = nil
	if rest := start[len(r.last):]; !r.open && bytes.HasPrefix(b, []byte(rest)) {
		b = b[len(rest):]
		r.openPaste()
	}
	for len(b) > 0 {
		if r.open {
			b = r.takeText(b)
			continue
		}
		at := bytes.Index(b, []byte(start))
		if at < 0 {
			r.takeKeys(b, len(in) >= fullRead)
			return
		}
		r.ready = append(r.ready, b[:at]...)
		b = b[at+len(start):]
		r.openPaste()
	}
}

func (r *Reader) openPaste() { r.open, r.text, r.size, r.last = true, nil, 0, "" }

// takeText returns the input after the paste.
func (r *Reader) takeText(b []byte) []byte {
	at := bytes.Index(b, []byte(end))
	if at < 0 {
		keep := partial(b, end)
		r.addText(b[:len(b)-keep])
		r.raw = bytes.Clone(b[len(b)-keep:])
		return nil
	}
	r.addText(b[:at])
	r.closePaste()
	return b[at+len(end):]
}

func (r *Reader) addText(b []byte) {
	r.size += len(b)
	if r.size > Limit {
		r.text = nil
		return
	}
	r.text = append(r.text, b...)
}

func (r *Reader) closePaste() {
	r.ready = append(r.ready, start+end...)
	r.addText(r.raw)
	var msg tea.Msg = Refused{Size: r.size}
	if r.size <= Limit {
		msg = tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(string(r.text)), Paste: true}
	}
	r.pastes = append(r.pastes, msg)
	r.open, r.text, r.raw = false, nil, nil
}

// takeKeys holds back the start of a sequence. An Escape at the end is a key, unless more
// follows.
func (r *Reader) takeKeys(b []byte, more bool) {
	keep := incomplete(b)
	if tail := string(b[len(b)-keep:]); !more && (tail == "\x1b" || tail == "\x1b[") {
		keep = 0
	}
	r.ready = append(r.ready, b[:len(b)-keep]...)
	r.raw = bytes.Clone(b[len(b)-keep:])
	passed := append([]byte(r.last), b[:len(b)-keep]...)
	r.last = start[:partial(passed, start)]
}

// partial returns the length of the longest end of b that mark starts with.
func partial(b []byte, mark string) int {
	for n := min(len(b), len(mark)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == mark[:n] {
			return n
		}
	}
	return 0
}

// maxSequence is the longest sequence that is kept together, in bytes.
const maxSequence = 64

// incomplete returns the length of the incomplete sequence or character at the end of b.
func incomplete(b []byte) int {
	tail := b[max(len(b)-maxSequence, 0):]
	if at := bytes.LastIndexByte(tail, 0x1b); at >= 0 && !isComplete(tail[at:]) {
		return len(tail) - at
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// isComplete reports whether a sequence that starts with Escape has its end.
func isComplete(b []byte) bool {
	switch {
	case len(b) < 2:
		return false
	case b[1] == 'O':
		return len(b) > 2
	case b[1] != '[':
		return true
	case len(b) > 2 && b[2] == 'M': // a mouse event with three bytes
		return len(b) >= 6
	}
	for _, c := range b[2:] {
		if c < 0x20 || c > 0x3f { // the final byte, or no sequence
			return true
		}
	}
	return false
}

// Filter is for [tea.WithFilter] of the program that reads from the reader. It replaces each
// empty paste by the text, or by [Refused]. It drops requests to suspend, which would stop
// the whole daemon.
func (r *Reader) Filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg := msg.(type) {
	case tea.SuspendMsg:
		return nil
	case tea.KeyMsg:
		if msg.Paste {
			return r.next()
		}
	}
	return msg
}

func (r *Reader) next() tea.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pastes) == 0 {
		return nil
	}
	msg := r.pastes[0]
	r.pastes = r.pastes[1:]
	return msg
}

// Stalled reports whether the terminal started a paste, and sent neither more text nor its
// end for 2 s. Then Esc or C-c stops the paste. A nil reader has no pastes.
func (r *Reader) Stalled() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open && r.now().Sub(r.heard) >= stall
}
