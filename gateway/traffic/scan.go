package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// progressInterval is the interval of progress reports while files are read.
const progressInterval = time.Second

// Scan reads recordings and prints the matching requests.
type Scan struct {
	Reader  *recording.Reader
	Filter  *recording.Filter
	Printer *Printer
	Number  uint64 // of the only request, or 0
	Follow  bool   // wait for more until the context ends
	// Progress gets progress reports on one line of a terminal, or is nil.
	Progress io.Writer
	// Warn gets the problems of the files. They are safe for terminals.
	Warn func(format string, args ...any)

	running recording.Running
	lines   int
	dropped int    // requests that the recording lacks
	reason  string // of the last ones
	shown   time.Time
	showing bool // a progress report
	found   bool // the request with Number
	warned  int  // reported problems
}

// Run prints until the end of the recordings, or with Follow until ctx ends. Afterwards
// it reports what could not be read. It returns [recording.ErrNoRequest] if no file
// contains the request with Number.
func (s *Scan) Run(ctx context.Context) error {
	err := s.run(ctx)
	s.report(err)
	if err == nil && s.Number != 0 && !s.found {
		return fmt.Errorf("request %d: %w", s.Number, recording.ErrNoRequest)
	}
	return err
}

func (s *Scan) run(ctx context.Context) error {
	s.shown = time.Now()
	for {
		l, err := s.Reader.Next()
		switch {
		case errors.Is(err, io.EOF) && s.Follow:
			s.clearProgress()
			err = s.Printer.Flush()
			s.Printer.Follow()
			if err == nil {
				s.warn()
				err = s.Reader.Wait(ctx)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
		case errors.Is(err, io.EOF):
			return s.printRunning()
		case err == nil:
			err = s.read(l)
		}
		if err == nil && s.lines%1024 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

func (s *Scan) read(l *recording.Line) error {
	s.lines++
	s.progress()
	if l.Type == recording.TypeDropped {
		s.dropped, s.reason = s.dropped+max(l.Count, 0), l.Error
	}
	if s.Number != 0 && l.Number != s.Number {
		return nil
	}
	s.found = true
	matches := s.Filter.Matches(l, time.Now())
	if l.Type == recording.TypeRequest || l.Type == recording.TypeRunning && matches {
		s.running.Read(l)
	}
	if l.Type == recording.TypeRunning || !matches {
		return nil
	}
	return s.Printer.Add(l)
}

// printRunning prints the requests without an answer in the recording.
func (s *Scan) printRunning() error {
	s.clearProgress()
	for _, l := range s.running.Lines() {
		if err := s.Printer.Add(l); err != nil {
			return err
		}
	}
	return s.Printer.Flush()
}

func (s *Scan) progress() {
	if s.Progress == nil || s.lines%1024 != 0 || time.Since(s.shown) < progressInterval {
		return
	}
	s.shown, s.showing = time.Now(), true
	read, all := s.Reader.Files()
	fmt.Fprintf(s.Progress, "\r\x1b[Kreading file %d of %d, %s lines", read, all, termtext.FormatCount(s.lines))
}

func (s *Scan) clearProgress() {
	if s.showing {
		fmt.Fprint(s.Progress, "\r\x1b[K")
		s.showing = false
	}
}

// warn reports problems that were found since the last call.
func (s *Scan) warn() {
	problems, _ := s.Reader.Problems()
	for _, p := range problems[s.warned:] {
		s.Warn("%s", p)
	}
	s.warned = len(problems)
}

// report describes what could not be read.
func (s *Scan) report(err error) {
	s.clearProgress()
	read, all := s.Reader.Files()
	if err != nil && all == 1 {
		return // the error describes it
	}
	if read < all && err == nil {
		s.Warn("read %d of %s", read, termtext.Count(all, "file"))
	}
	s.warn()
	if _, more := s.Reader.Problems(); more > 0 {
		s.Warn("%s more", termtext.Count(more, "problem"))
	}
	if s.dropped > 0 {
		s.Warn("%s not recorded: %s", termtext.Count(s.dropped, "line"), cmp.Or(s.reason, "unknown reason"))
	}
	if n := s.Filter.Skipped(); n > 0 {
		s.Warn("%s not searched: over 16 MiB, missing or damaged", termtext.Count(n, "large text"))
	}
}
