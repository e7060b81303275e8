package remoteui

import (
	"os"
	"time"
)

// What the tests of the outside need to see or to shape by hand.
var (
	ReadFrame   = readFrame
	AppendFrame = appendFrame
	IsDark      = isDark
	DarkFrom    = parseColorFGBG
	SafeName    = safeName
)

// WritesWithoutDeadline makes terminals as they are where they cannot be opened
// anew, and waits at the end shorter, until undo.
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

// Collect has a relay that holds so many bytes of an order's content take more of it.
func Collect(held int, payload []byte) error {
	r := &relay{content: make([]byte, held)}
	return r.addContent(payload)
}

// Cutter cuts the answers of a terminal out of keys.
type Cutter struct{ c replyParser }

// NewCutter waits for the answer about the background, or for all.
func NewCutter(all bool) *Cutter {
	c := &Cutter{}
	c.c.expect(queryBackground)
	if all {
		c.c.expect(queryBackground + queryKitty + queryCellSize + queryAttributes)
	}
	return c
}

// Cut gives the keys of a read, and the answers in it.
func (c *Cutter) Cut(p []byte) (keys []byte, answers []string) {
	keys, all := c.c.extract(nil, p)
	for _, a := range all {
		answers = append(answers, a.body)
	}
	return keys, answers
}
func (c *Cutter) Held() bool    { return c.c.flushDelay() > 0 }
func (c *Cutter) Flush() []byte { return c.c.flush(nil) }

// Modes follows what output switches on.
type Modes struct{ m modes }

func (m *Modes) Scan(p []byte) { m.m.scan(p) }
func (m *Modes) Reset() string { return m.m.exitSequences() }
func (m *Modes) Again() string { return m.m.enterSequences() }
