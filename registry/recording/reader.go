package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

const (
	// maxDepth is the maximum nesting of a line.
	maxDepth = 1000
	// maxProblems is the number of problems that a Reader describes.
	maxProblems = 20
)

// ErrNotRecording is the error of a file that does not begin with a header.
var ErrNotRecording = errors.New("not a recording of Goblin")

// Problem is a part of a recording that could not be read.
type Problem struct {
	File string // base name
	Line int
	Text string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// Reader reads the lines of one file, or of all files of a folder in the order of their
// names. It holds one line in memory. It is not safe for concurrent use.
type Reader struct {
	files    []string
	next     int
	file     *os.File
	text     *bufio.Reader
	path     string
	line     int
	started  bool // the header was read
	problems []Problem
	more     int // problems that are not described
}

// Files returns the files of a recording: path itself, or the recordings in a folder in
// the order of their names.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	all, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range all {
		if name := e.Name(); e.Type().IsRegular() && (strings.HasSuffix(name, Suffix) || strings.HasSuffix(name, CompressedSuffix)) {
			files = append(files, filepath.Join(path, name))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no recordings; files end in %s or %s", path, Suffix, CompressedSuffix)
	}
	slices.Sort(files)
	return files, nil
}

// Open opens a recording: a file, or a folder with files. It fails if the first file is
// not a recording, or of a higher version.
func Open(path string) (*Reader, error) {
	files, err := Files(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{files: files}
	if err := r.openNext(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) openNext() error {
	if err := r.Close(); err != nil {
		return err
	}
	r.path, r.line, r.started = r.files[r.next], 0, false
	r.next++
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	r.file, r.text = f, bufio.NewReaderSize(f, 64<<10)
	if magic, _ := r.text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r.text)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", r.path, err), r.Close())
		}
		r.text = bufio.NewReaderSize(z, 64<<10)
	}
	return nil
}

// Next returns the next line, or io.EOF after the last one. It skips lines that it cannot
// read and reports them by Problems. A cut or damaged file ends early, without an error.
func (r *Reader) Next() (*Line, error) {
	for {
		text, err := r.readLine()
		if len(text) == 0 && err != nil {
			if !errors.Is(err, io.EOF) {
				r.problem("the rest of the file is damaged: %v", err)
			} else if !r.started {
				return nil, fmt.Errorf("%s: %w", r.path, ErrNotRecording)
			}
			if r.next == len(r.files) {
				return nil, io.EOF
			}
			if err := r.openNext(); err != nil {
				return nil, err
			}
			continue
		}
		l, perr := r.parse(text)
		if perr != nil {
			if !r.started {
				return nil, perr
			}
			if err != nil {
				r.problem("the last line is cut")
			} else {
				r.problem("%v", perr)
			}
			continue
		}
		r.started = true
		return l, nil
	}
}

// readLine returns io.EOF with a last line that has no line break.
func (r *Reader) readLine() ([]byte, error) {
	r.line++
	var whole []byte
	for {
		part, err := r.text.ReadSlice('\n')
		if len(whole)+len(part) > MaxLine {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.text.ReadSlice('\n')
			}
			r.problem("the line is longer than %d MiB", MaxLine>>20)
			whole, r.line = nil, r.line+1
			if err != nil {
				return nil, err
			}
			continue
		}
		whole = append(whole, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(whole), err
		}
	}
}

func (r *Reader) parse(text []byte) (*Line, error) {
	within := rawjson.Checker{Depth: maxDepth}
	if err := within.End(text); err != nil {
		if !r.started {
			return nil, fmt.Errorf("%s: %w", r.path, ErrNotRecording)
		}
		return nil, err
	}
	l := new(Line)
	err := json.Unmarshal(text, l)
	if r.started {
		return l, err
	}
	switch {
	case err != nil || l.Type != TypeRecording || l.Version == 0:
		return nil, fmt.Errorf("%s: %w", r.path, ErrNotRecording)
	case l.Version > Version:
		return nil, fmt.Errorf("%s: recorded by Goblin %s in format %d; this Goblin reads up to %d, update it", r.path, l.Goblin, l.Version, Version)
	}
	return l, nil
}

func (r *Reader) problem(format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{filepath.Base(r.path), r.line, fmt.Sprintf(format, args...)})
}

// Problems returns the problems so far, at most 20, and the number of further ones.
func (r *Reader) Problems() (first []Problem, more int) { return r.problems, r.more }

// File returns the path of the file of the last line.
func (r *Reader) File() string { return r.path }

// Position returns the number of the last line in its file.
func (r *Reader) Position() int { return r.line }

// Body returns a body, from its file if necessary. nil has no bytes.
func (r *Reader) Body(b *Body) ([]byte, error) {
	if b == nil || b.File == "" {
		if b == nil {
			return nil, nil
		}
		return b.JSON, nil
	}
	return ReadBody(filepath.Join(filepath.Dir(r.path), BodyFolder), b)
}

// ReadBody reads a body from a folder of bodies and checks its hash.
func ReadBody(folder string, b *Body) ([]byte, error) {
	sum, err := hex.DecodeString(b.File)
	if err != nil || len(sum) != sha256.Size || b.Size < 0 || b.Size > MaxLine {
		return nil, fmt.Errorf("invalid reference to a body: %q", b.File)
	}
	f, err := os.Open(filepath.Join(folder, b.File[:2], b.File))
	if err != nil {
		return nil, fmt.Errorf("body is missing: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("body %s: %w", b.File, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(b.Size)+1))
	if err != nil {
		return nil, fmt.Errorf("body %s: %w", b.File, err)
	}
	if found := sha256.Sum256(text); !bytes.Equal(found[:], sum) {
		return nil, fmt.Errorf("body %s is damaged", b.File)
	}
	return text, nil
}

// Close closes the current file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
