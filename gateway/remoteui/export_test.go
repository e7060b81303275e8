package remoteui

import (
	"os"
	"time"
)

// Exports for the external tests.
var (
	ReadFrame   = readFrame
	AppendFrame = appendFrame
	IsDark      = isDark
	DarkFrom    = parseColorFGBG
	SafeName    = safeName
)

// WritesWithoutDeadline simulates terminals that cannot be reopened and shortens the wait
// at the end, until undo.
func WritesWithoutDeadline() (undo func()) {
	wait := closeTimeout
	closeTimeout = 100 * time.Millisecond
	reopenTerminal = func(out *os.File) *os.File { return out }
	return func() { reopenTerminal, closeTimeout = reopen, wait }
}

// Limits of the protocol.
const (
	MaxQueued  = maxQueued
	MaxControl = maxControl
	MaxOutput  = maxOutput
	MaxContent = maxContent
	MaxPage    = maxPage
)

// Collect adds payload to an order of a relay that has held bytes of it already.
func Collect(held int, payload []byte) error {
	r := &relay{content: make([]byte, held)}
	return r.addContent(payload)
}

// Cutter removes a terminal's replies from keys.
type Cutter struct{ c replyParser }

// NewCutter waits for the reply about the background, or for all replies.
func NewCutter(all bool) *Cutter {
	c := &Cutter{}
	c.c.expect(queryBackground)
	if all {
		c.c.expect(queryBackground + queryKitty + queryCellSize + queryAttributes)
	}
	return c
}

// Cut returns the keys of a read and the replies in it.
func (c *Cutter) Cut(p []byte) (keys []byte, answers []string) {
	keys, all := c.c.extract(nil, p)
	for _, a := range all {
		answers = append(answers, a.body)
	}
	return keys, answers
}
func (c *Cutter) Held() bool    { return c.c.flushDelay() > 0 }
func (c *Cutter) Flush() []byte { return c.c.flush(nil) }

// Modes tracks the modes that output enables.
type Modes struct{ m modes }

func (m *Modes) Scan(p []byte) { m.m.scan(p) }
func (m *Modes) Reset() string { return m.m.exitSequences() }
func (m *Modes) Again() string { return m.m.enterSequences() }
