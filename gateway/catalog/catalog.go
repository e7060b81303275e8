// Package catalog keeps on disk what servers listed last, so that it can be listed
// before they have started.
//
// It owns a folder with a file for each server of each config: a head of one line, then
// the entries, one a line, as the server sent them. A file is private to the user, is
// written whole or not at all, and counts only for the identity it was kept for: what
// decides in the config which server that is. Nothing of an identity can be read out of
// a file but whether it is the same.
//
// It knows neither servers nor kinds: lists are numbered, and the head is whatever the
// caller makes of it. Load reads a file; Keep only notes what is to be written, which
// [Store.Run] does a while later, so that many changes cost one write.
package catalog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	format = 1
	// maxFile bounds a file, in bytes.
	maxFile = 64 << 20
	// maxHead bounds its first line.
	maxHead = 4 << 20
	// maxDepth is how deep an entry may be.
	maxDepth = 512
	// pause is how long changes are gathered.
	pause = 2 * time.Second
	ext   = ".catalog"
)

// Record is what is remembered of a server.
type Record struct {
	Saved time.Time
	About json.RawMessage // the caller's
	Lists [][][]byte      // entries, by the number of the list
}

// head is the first line of a file.
type head struct {
	Format   int             `json:"format"`
	Identity string          `json:"identity"`
	Saved    time.Time       `json:"saved"`
	About    json.RawMessage `json:"about"`
	Counts   []int           `json:"counts"`
	Sum      string          `json:"sha256"` // of all lines below
}

// change is what is to be written of a server.
type change struct {
	identity string
	about    json.RawMessage
	lists    map[int][][]byte // those that are others than in the file
}

// Store is the catalog of one config. Make one with [New].
type Store struct {
	folder, config string
	log            *slog.Logger
	wake           chan struct{} // capacity one

	mu      sync.Mutex
	changes map[string]*change
	told    map[string]bool // what was logged already
}

// New is the store of a config in a folder, which need not be there yet.
func New(folder, config string, log *slog.Logger) *Store {
	return &Store{
		folder: folder, config: config, log: log, wake: make(chan struct{}, 1),
		changes: make(map[string]*change), told: make(map[string]bool),
	}
}

// Identity is a digest of the parts that decide which server it is.
func Identity(parts any) string {
	text, _ := json.Marshal(parts) // maps are sorted
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// path is the file of a server, whose name is safe in one.
func (s *Store) path(server string) string {
	sum := sha256.Sum256([]byte(s.config + "\x00" + server))
	return filepath.Join(s.folder, server+"-"+hex.EncodeToString(sum[:6])+ext)
}

// Load is what is remembered of a server; nil for nothing. What was kept for another
// identity, or cannot be read, is removed.
func (s *Store) Load(server, identity string) *Record {
	path := s.path(server)
	r, err := read(path, identity)
	switch {
	case err == nil:
		return r
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, errOther):
		s.warn("Remembered lists thrown away", server, "file", path, "err", err)
	}
	if err := os.Remove(path); err != nil {
		s.warn("Remembered lists not removed", server, "err", err)
	}
	return nil
}

var errOther = errors.New("it was kept for another definition of the server")

func read(path, identity string) (*Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has %d MiB; %d are the most", info.Size()>>20, maxFile>>20)
	}
	return parse(bufio.NewReaderSize(io.LimitReader(f, maxFile), 64<<10), identity)
}

// parse reads a file.
func parse(r *bufio.Reader, identity string) (*Record, error) {
	first, err := line(r, maxHead)
	if err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	var h head
	if err := json.Unmarshal(first, &h); err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	switch {
	case h.Format != format:
		return nil, fmt.Errorf("its format is %d, not %d", h.Format, format)
	case h.Identity != identity:
		return nil, errOther
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(rest); hex.EncodeToString(sum[:]) != h.Sum {
		return nil, errors.New("it is damaged")
	}
	record := &Record{Saved: h.Saved, About: h.About, Lists: make([][][]byte, len(h.Counts))}
	for i, n := range h.Counts {
		for range n {
			item, more, found := bytes.Cut(rest, []byte("\n"))
			if !found || !json.Valid(item) || depth(item) > maxDepth {
				return nil, errors.New("an entry is no JSON, too deep or missing")
			}
			record.Lists[i], rest = append(record.Lists[i], item), more
		}
	}
	if len(rest) > 0 {
		return nil, errors.New("it has more than its head says")
	}
	if now := time.Now(); record.Saved.After(now) { // the clock was set back
		record.Saved = now
	}
	return record, nil
}

// line reads a line of at most so many bytes.
func line(r *bufio.Reader, most int) ([]byte, error) {
	var all []byte
	for {
		part, err := r.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case err == nil:
			return all[:len(all)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(all) > most:
			return nil, errors.New("it is too long")
		}
	}
}

// depth is how many arrays and objects are within each other in valid JSON.
func depth(text []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// Keep notes what a server says of itself, and those of its lists that were fetched. Lists
// that are not named stay. The entries are not to be changed any more.
func (s *Store) Keep(server, identity string, about json.RawMessage, lists map[int][][]byte) {
	s.mu.Lock()
	c := s.changes[server]
	if c == nil || c.identity != identity {
		c = &change{identity: identity, lists: make(map[int][][]byte)}
		s.changes[server] = c
	}
	c.about = bytes.Clone(about)
	maps.Copy(c.lists, lists)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Forget removes what is remembered of a server.
func (s *Store) Forget(server string) {
	s.mu.Lock()
	delete(s.changes, server)
	s.mu.Unlock()
	if err := os.Remove(s.path(server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("Remembered lists not removed", server, "err", err)
	}
}

// Run writes what is to be kept, until ctx ends; then what is left. It removes files that
// nobody has written for longer than most.
func (s *Store) Run(ctx context.Context, most time.Duration) {
	s.sweep(most)
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			s.write()
			return
		}
		gather := time.NewTimer(pause)
		select {
		case <-gather.C:
		case <-ctx.Done():
		}
		gather.Stop()
		s.write()
	}
}

func (s *Store) sweep(most time.Duration) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return // there is nothing to remove
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), ext) && time.Since(info.ModTime()) > most {
			_ = os.Remove(filepath.Join(s.folder, e.Name())) // the next start tries again
		}
	}
}

func (s *Store) write() {
	s.mu.Lock()
	changes := s.changes
	s.changes = make(map[string]*change)
	s.mu.Unlock()
	for server, c := range changes {
		if err := s.save(server, c); err != nil {
			s.warn("Lists not remembered for the next start", server, "err", err)
		}
	}
}

func (s *Store) save(server string, c *change) error {
	path := s.path(server)
	lists := map[int][][]byte{}
	if old, err := read(path, c.identity); err == nil {
		for i, items := range old.Lists {
			lists[i] = items
		}
	}
	h := head{Format: format, Identity: c.identity, Saved: time.Now().UTC(), About: c.about}
	maps.Copy(lists, c.lists)
	var body bytes.Buffer
	for i := range slices.Max(append(slices.Collect(maps.Keys(lists)), -1)) + 1 {
		n := 0
		for _, item := range lists[i] {
			before := body.Len()
			if depth(item) > maxDepth || json.Compact(&body, item) != nil {
				body.Truncate(before)
				continue
			}
			body.WriteByte('\n')
			n++
		}
		h.Counts = append(h.Counts, n)
		if body.Len() > maxFile-maxHead {
			_ = os.Remove(path) // what it holds is out of date
			return fmt.Errorf("they have more than %d MiB", (maxFile-maxHead)>>20)
		}
	}
	sum := sha256.Sum256(body.Bytes())
	h.Sum = hex.EncodeToString(sum[:])
	first, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(s.folder, ".catalog") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // nothing, once it was renamed
	_, err = temp.Write(append(first, '\n'))
	if err == nil {
		_, err = temp.Write(body.Bytes())
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// warn logs once what is the same for a server.
func (s *Store) warn(what, server string, more ...any) {
	s.mu.Lock()
	told := s.told[what+server]
	s.told[what+server] = true
	s.mu.Unlock()
	if !told {
		s.log.Warn(what, append([]any{"server", server}, more...)...)
	}
}
