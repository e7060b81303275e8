package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goblin/registry/termtext"
)

const (
	// maxDepth is the maximum nesting of a line.
	maxDepth = 1000
	// maxProblems is the number of problems that a Reader describes.
	maxProblems = 20
	// maxSmallLine is the longest line, in bytes, except for those with lists.
	maxSmallLine = 4 << 20
	bufferSize   = 64 << 10
	// pollInterval is the interval at which [Reader.Wait] looks for more lines.
	pollInterval = 200 * time.Millisecond
)

// ErrNotRecording is the error of a file that does not begin with a header.
var ErrNotRecording = errors.New("not a recording of Goblin")

// Problem is a part of a recording that could not be read.
type Problem struct {
	File string // base name
	Line int    // 0 for the whole file
	Text string
}

// String returns the problem as one line that is safe for terminals.
func (p Problem) String() string {
	file := termtext.Name(termtext.Truncate(p.File, 200))
	if p.Line == 0 {
		return file + ": " + termtext.Line(p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", file, p.Line, termtext.Line(p.Text))
}

// Reader reads the lines of one file, or of all files of a folder in the order of their
// names. It holds one line in memory. It skips what it cannot read and describes it by
// Problems. It is not safe for concurrent use.
type Reader struct {
	root    string // as passed to Open
	files   []string
	next    int
	follows bool

	file    *os.File
	packed  bool // the file is compressed
	text    *bufio.Reader
	path    string
	line    int    // number of the last line
	begun   []byte // beginning of a line that is still being written
	started bool   // the header was read
	ended   bool   // the file is finished
	drained bool   // a newer file exists, and the end was read again
	cut     bool   // the cut was reported

	kept    map[[2]string]definitionSize // of Keep, by server and list
	all     definitionSize               // of kept
	omitted map[string]bool              // servers with omitted definitions

	read     int // files with a header
	refused  error
	problems []Problem
	more     int // problems that are not described
}

// Open opens a recording: a file, or a folder with files. [Reader.Next] reports a file
// that is not a recording.
func Open(path string) (*Reader, error) {
	r := &Reader{root: path}
	if err := r.list(); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, noFilesError(path)
	}
	return r, r.openFirst()
}

// Follow is like [Open] for a recording that is being written: after io.EOF, Next
// continues after [Reader.Wait]. A folder may be empty.
func Follow(path string) (*Reader, error) {
	r := &Reader{root: path, follows: true}
	if err := r.list(); err != nil {
		return nil, err
	}
	return r, r.openFirst()
}

// openFirst returns the error of a single file, so that callers see it at once.
func (r *Reader) openFirst() error {
	if len(r.files) != 1 {
		return nil
	}
	err := r.openNext()
	if err != nil && !r.isSingle() {
		r.refuse(err)
		return nil
	}
	return err
}

func (r *Reader) list() error {
	files, err := Files(r.root)
	if err != nil {
		return err
	}
	r.files = files
	return nil
}

// openNext opens the next file. If it fails, the Reader continues with the one after.
func (r *Reader) openNext() error {
	if err := r.Close(); err != nil {
		return err
	}
	r.path, r.line, r.begun, r.started, r.ended, r.packed = r.files[r.next], 0, nil, false, false, false
	r.drained, r.cut = false, false
	r.next++
	f, err := openRegular(r.path)
	if err != nil {
		return err
	}
	r.file, r.text = f, bufio.NewReaderSize(f, bufferSize)
	if magic, _ := r.text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r.text)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: the compressed file is damaged: %w", r.path, err), r.Close())
		}
		r.text, r.packed = bufio.NewReaderSize(z, bufferSize), true
	}
	return nil
}

// Next returns the next line, or io.EOF after the last one. It skips lines and files that
// it cannot read. It fails if no file is a recording that this version can read.
func (r *Reader) Next() (*Line, error) {
	for {
		if r.file == nil {
			if err := r.advance(); err != nil {
				return nil, err
			}
			continue
		}
		text, owned, err := r.readLine()
		if len(text) == 0 && err != nil {
			if r.awaitsMore(err) {
				return nil, io.EOF
			}
			if r.follows && !r.drained {
				r.drained = true // its last lines may be newer than the end that was read
				continue
			}
			r.finish(err)
			continue
		}
		if l := r.parse(text, owned, err != nil); l != nil {
			return l, nil
		}
	}
}

// advance opens the next file, or returns io.EOF.
func (r *Reader) advance() error {
	if r.follows && r.next >= len(r.files) {
		r.listNewer()
	}
	if r.next < len(r.files) {
		if err := r.openNext(); err != nil {
			r.refuse(err)
		}
		return nil
	}
	if r.read == 0 && r.refused != nil && (!r.follows || r.isSingle()) {
		return r.refused
	}
	return io.EOF
}

// isSingle reports whether the recording is one file, not a folder.
func (r *Reader) isSingle() bool { return len(r.files) == 1 && r.files[0] == r.root }

// listNewer adds the files that were created after the last one.
func (r *Reader) listNewer() {
	files, err := Files(r.root)
	if err != nil || r.isSingle() {
		return
	}
	for _, f := range files {
		if r.path == "" || stem(f) > stem(r.path) {
			r.files = append(r.files, f)
		}
	}
}

// awaitsMore reports whether the end of the current file may move.
func (r *Reader) awaitsMore(err error) bool {
	if !r.follows || r.packed || r.ended || !errors.Is(err, io.EOF) {
		return false
	}
	if r.next >= len(r.files) {
		r.listNewer()
	}
	return r.next >= len(r.files)
}

// finish reports what is missing at the end of a file, and closes it.
func (r *Reader) finish(err error) {
	switch {
	case r.cut:
	case len(r.begun) > 0:
		r.problem("the last line is cut")
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.problem("the compressed file is cut")
	case !errors.Is(err, io.EOF):
		r.problem("the rest of the file is damaged: %v", err)
	}
	if !r.started {
		r.refuse(fmt.Errorf("%s: %w", r.path, ErrNotRecording))
	}
	r.skipFile()
}

func (r *Reader) skipFile() {
	if err := r.Close(); err != nil {
		r.problem("%v", err)
	}
}

// refuse skips a file.
func (r *Reader) refuse(err error) {
	if r.refused == nil {
		r.refused = err
	}
	r.line = 0
	text := strings.TrimPrefix(err.Error(), r.path+": ")
	r.problem("skipped: %s", text)
}

// parse returns nil if the line cannot be read.
func (r *Reader) parse(text []byte, owned, last bool) *Line {
	l, err := decodeLine(text, owned)
	if !r.started {
		if err = r.checkHeader(l, err); err != nil {
			r.refuse(err)
			r.skipFile()
			return nil
		}
		r.started = true
		r.read++
		return l
	}
	switch {
	case err != nil && last:
		r.cut = true
		r.problem("the last line is cut")
	case err != nil:
		r.problem("%v", err)
	case l.Type == TypeRecording && l.Version > Version:
		r.problem("%v", tooNew(l))
		r.skipFile()
	default:
		r.ended = l.Type == TypeEnd
		return l
	}
	return nil
}

func (r *Reader) checkHeader(l *Line, err error) error {
	switch {
	case err != nil || l.Type != TypeRecording || l.Version < 1:
		return fmt.Errorf("%s: %w", r.path, ErrNotRecording)
	case l.Version > Version:
		return fmt.Errorf("%s: %w", r.path, tooNew(l))
	}
	return nil
}

func tooNew(l *Line) error {
	return fmt.Errorf("recorded by Goblin %s in format %d, this Goblin reads up to format %d; update Goblin",
		termtext.Line(termtext.Truncate(l.Goblin, 40)), l.Version, Version)
}

// readLine returns the next line without surrounding space. The error belongs to a line
// that has no line break. If owned is set, the caller may keep the line.
func (r *Reader) readLine() (line []byte, owned bool, err error) {
	r.line++
	whole, nuls := r.begun, 0
	r.begun = nil
	for {
		part, err := r.text.ReadSlice('\n')
		if len(whole) == 0 {
			n := len(part)
			part = bytes.TrimLeft(part, "\x00")
			nuls += n - len(part)
		}
		full := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case tooLong(whole, part):
			err = r.skipLine(err)
			if err != nil {
				return nil, false, err
			}
			whole, nuls = nil, 0
			r.line++
			continue
		case len(whole) == 0 && !full && err == nil:
			line = part
		default:
			whole = append(whole, part...)
			line, owned = whole, true
		}
		if full {
			continue
		}
		if err != nil && r.follows && !r.packed && errors.Is(err, io.EOF) {
			r.begun = whole
			r.line--
			return nil, false, err
		}
		line = bytes.Trim(line, "\x00 \t\r\n\ufeff")
		if nuls > 0 {
			r.problem("%s of NUL bytes, as after a crash of the system", termtext.Size(int64(nuls)))
		}
		if len(line) == 0 && err == nil { // a blank line
			r.line++
			whole, nuls, owned = nil, 0, false
			continue
		}
		return line, owned, err
	}
}

// tooLong reports whether a line is too long for its type, which is its first member.
func tooLong(whole, part []byte) bool {
	size := len(whole) + len(part)
	if size <= maxSmallLine {
		return false
	}
	const most = 64
	start := append(make([]byte, 0, 2*most), whole[:min(len(whole), most)]...)
	start = bytes.TrimSpace(append(start, part[:min(len(part), most)]...))
	for _, t := range []Type{TypeServer, TypeList, TypeRecording} {
		if bytes.HasPrefix(start, []byte(`{"type":"`+t+`"`)) {
			return size > maxLine
		}
	}
	return true
}

// skipLine skips the rest of a line that is too long.
func (r *Reader) skipLine(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.text.ReadSlice('\n')
	}
	r.problem("the line is too long")
	return err
}

func (r *Reader) problem(format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{filepath.Base(r.path), r.line, fmt.Sprintf(format, args...)})
}

// Wait waits until Next may return a line that was written after io.EOF. It returns
// io.EOF if nothing can follow, or the error of ctx. The Reader must be from [Follow].
func (r *Reader) Wait(ctx context.Context) error {
	if r.file == nil && r.isSingle() {
		return io.EOF // the only file is finished
	}
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Problems returns the problems so far, at most 20, and the number of further ones.
func (r *Reader) Problems() (first []Problem, more int) { return r.problems, r.more }

// Files returns the number of files that could be read so far, and of all files.
func (r *Reader) Files() (read, all int) { return r.read, len(r.files) }

// File returns the path of the file of the last line.
func (r *Reader) File() string { return r.path }

// Position returns the number of the last line in its file.
func (r *Reader) Position() int { return r.line }

// Close closes the current file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
