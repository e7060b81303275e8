// A list cache stores the last lists of servers on disk. So they can be listed before the
// servers have started.
//
// It is a folder with one private file per server and config: a head line, then one entry
// per line after the digit of its list, then a digest of the entries. A file is valid
// only for one identity, a digest of the settings that define the server.
//
// Lists are numbered from 0 to 9, and the caller defines the head. Put only records
// changes; [ListCache.Run] writes them after a delay, or [ListCache.Save] in short-lived
// commands. All methods are safe for concurrent use. Problems with files are logged once
// and never returned.

package state

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

	"goblin/gateway/atomicfile"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	format = 1
	// maxFile is in bytes.
	maxFile = 64 << 20
	// maxHead is the maximum length of the first line, in bytes.
	maxHead  = 4 << 20
	maxDepth = 512
	// pause is the time in which changes are collected.
	pause = 2 * time.Second
	// staleAge is the age of a temporary file that is no longer being written.
	staleAge = time.Hour
	ext      = ".catalog"
)

// ListHead is the cached data of a server except its lists.
type ListHead struct {
	Saved time.Time
	About json.RawMessage // defined by the caller
}

type head struct {
	Format   int             `json:"format"`
	Identity string          `json:"identity"`
	Saved    time.Time       `json:"saved"`
	About    json.RawMessage `json:"about"`
}

type change struct {
	identity string
	about    json.RawMessage
	lists    map[int][][]byte // only the changed ones
}

// ListCache is the cache of one config. Create it with [NewListCache].
type ListCache struct {
	folder, config string
	most           time.Duration // age without use after which files are removed
	log            *slog.Logger
	wake           chan struct{} // capacity one

	mu      sync.Mutex
	changes map[string]*change
	logged  map[string]bool // events that were logged
}

// NewListCache returns the cache of a config in a folder, which need not exist. Files
// unused for longer than most are ignored.
func NewListCache(folder, config string, most time.Duration, log *slog.Logger) *ListCache {
	return &ListCache{
		folder: folder, config: config, most: most, log: log, wake: make(chan struct{}, 1),
		changes: make(map[string]*change), logged: make(map[string]bool),
	}
}

// ListIdentity returns a digest of the settings that define a server.
func ListIdentity(parts any) string {
	text, _ := json.Marshal(parts) // maps are sorted
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// path uses the server's name, which is safe in file names.
func (s *ListCache) path(server string) string {
	sum := sha256.Sum256([]byte(s.config + "\x00" + server))
	return filepath.Join(s.folder, server+"-"+hex.EncodeToString(sum[:6])+ext)
}

// Head returns the cached data of a server without reading its lists, or nil. It removes
// data of another identity, data unused for too long, and unreadable data.
func (s *ListCache) Head(server, identity string) *ListHead {
	h, err := s.head(server, identity)
	if err != nil {
		s.drop(server, err)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(s.path(server), now, now) // record the use
	if h.Saved.After(now) {                  // the clock was set back
		h.Saved = now
	}
	return &ListHead{Saved: h.Saved, About: h.About}
}

// Has reports whether lists of a server are cached. It removes nothing.
func (s *ListCache) Has(server, identity string) bool {
	_, err := s.head(server, identity)
	return err == nil
}

func (s *ListCache) head(server, identity string) (head, error) {
	f, info, err := open(s.path(server))
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	if time.Since(info.ModTime()) > s.most {
		return head{}, errOtherIdentity
	}
	return readHead(bufio.NewReaderSize(f, 4<<10), identity)
}

// Lists returns the cached lists of a server, by number. If they are damaged, it removes
// them and ok is false.
func (s *ListCache) Lists(server, identity string) (lists [][][]byte, ok bool) {
	lists, err := read(s.path(server), identity)
	if err != nil {
		s.drop(server, err)
	}
	return lists, err == nil
}

func (s *ListCache) drop(server string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	path := s.path(server)
	if !errors.Is(err, errOtherIdentity) && s.shouldLog("damaged", server, err) {
		s.log.Warn("cached lists discarded", "server", server, "file", path, "err", err)
	}
	s.remove(server)
}

var errOtherIdentity = errors.New("cached for another definition of the server, or too old")

func open(path string) (*os.File, os.FileInfo, error) {
	f, info, err := Open(path)
	switch {
	case errors.Is(err, ErrNotRegular):
		return nil, nil, errors.New("not a regular file")
	case err != nil:
		return nil, nil, err
	case info.Size() > maxFile:
		return nil, nil, errors.Join(fmt.Errorf("larger than allowed: %d MiB, limit %d MiB", info.Size()>>20, maxFile>>20), f.Close())
	}
	return f, info, nil
}

func read(path, identity string) ([][][]byte, error) {
	f, info, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, err
	}
	return ParseLists(text, identity)
}

func readHead(r *bufio.Reader, identity string) (h head, err error) {
	first, err := line(r, maxHead)
	if err == nil {
		err = json.Unmarshal(first, &h)
	}
	switch {
	case err != nil:
		return h, fmt.Errorf("head: %w", err)
	case h.Format != format:
		return h, fmt.Errorf("unknown format %d, expected %d", h.Format, format)
	case h.Identity != identity:
		return h, errOtherIdentity
	}
	return h, nil
}

// ParseLists parses the lists in the text of a file. They alias the text.
func ParseLists(text []byte, identity string) (lists [][][]byte, err error) {
	r := bytes.NewReader(text)
	if _, err := readHead(bufio.NewReaderSize(r, 16), identity); err != nil {
		return nil, err
	}
	_, rest, _ := bytes.Cut(text, newline)
	end := bytes.LastIndexByte(bytes.TrimSuffix(rest, newline), '\n') + 1
	if sum := sha256.Sum256(rest[:end]); string(rest[end:]) != hex.EncodeToString(sum[:])+"\n" {
		return nil, errors.New("damaged or truncated")
	}
	for item := range bytes.Lines(rest[:end]) {
		item = bytes.TrimSuffix(item, newline)
		if len(item) == 0 || item[0] < '0' || item[0] > '9' || !json.Valid(item[1:]) || depth(item[1:]) > maxDepth {
			return nil, errors.New("an entry is invalid JSON or nested too deeply")
		}
		list := int(item[0] - '0')
		for len(lists) <= list {
			lists = append(lists, nil)
		}
		lists[list] = append(lists[list], item[1:])
	}
	return lists, nil
}

var newline = []byte("\n")

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
			return nil, errors.New("line too long")
		}
	}
}

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

// Put records the head and the fetched lists of a server for writing. Other lists stay
// unchanged. The caller must no longer modify the entries.
func (s *ListCache) Put(server, identity string, about json.RawMessage, lists map[int][][]byte) {
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

// Forget removes the cached data of a server.
func (s *ListCache) Forget(server string) {
	s.mu.Lock()
	delete(s.changes, server)
	s.mu.Unlock()
	s.remove(server)
}

func (s *ListCache) remove(server string) {
	if err := os.Remove(s.path(server)); err != nil && !errors.Is(err, fs.ErrNotExist) && s.shouldLog("left", server, err) {
		s.log.Warn("cached lists not removed", "server", server, "err", err)
	}
}

// Run removes files unused for too long. It writes changes until ctx is done, and then
// the remaining ones.
func (s *ListCache) Run(ctx context.Context) {
	s.sweep()
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			s.write()
			return
		}
		select {
		case <-time.After(pause): // collects changes
		case <-ctx.Done():
		}
		s.write()
	}
}

func (s *ListCache) sweep() {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		age := time.Since(info.ModTime())
		most := s.most
		if strings.HasSuffix(e.Name(), atomicfile.TempSuffix) {
			most = staleAge
		}
		if age > most {
			_ = os.Remove(filepath.Join(s.folder, e.Name())) // the next start tries again
		}
	}
}

func (s *ListCache) write() { s.flush(s.save) }

// Save writes the changes immediately, for commands that do not call Run. It skips
// servers whose file another process wrote after since.
func (s *ListCache) Save(since time.Time) {
	s.flush(func(server string, c *change) error {
		h, err := s.head(server, c.identity)
		if (err == nil || errors.Is(err, errOtherIdentity)) && h.Saved.After(since) {
			return nil
		}
		return s.save(server, c)
	})
}

func (s *ListCache) flush(save func(server string, c *change) error) {
	s.mu.Lock()
	changes := s.changes
	s.changes = make(map[string]*change)
	s.mu.Unlock()
	size := 0
	for server, c := range changes {
		if err := save(server, c); err != nil && s.shouldLog("lost", server, err) {
			s.log.Warn("lists not cached", "server", server, "err", err)
		}
		for _, items := range c.lists {
			for _, item := range items {
				size += len(item)
			}
		}
		delete(changes, server)
	}
	registry.FreeAfterList(size) // changes held them until now
}

func (s *ListCache) save(server string, c *change) error {
	path := s.path(server)
	lists := c.lists
	if old, err := read(path, c.identity); err == nil {
		lists = make(map[int][][]byte)
		for i, items := range old {
			lists[i] = items
		}
		maps.Copy(lists, c.lists)
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return s.folderError(err)
	}
	err := atomicfile.WriteFunc(path, func(f io.Writer) error {
		return encode(f, head{Format: format, Identity: c.identity, Saved: time.Now().UTC(), About: c.about}, lists)
	})
	if errors.Is(err, errLarge) {
		_ = os.Remove(path) // its content is outdated
		return err
	}
	return s.folderError(err)
}

var errFolder = errors.New("folder not writable")

func (s *ListCache) folderError(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%w: %s: %w", errFolder, s.folder, of.Err)
	}
	return err
}

var errLarge = fmt.Errorf("larger than %d MiB", (maxFile-maxHead)>>20)

func encode(f io.Writer, h head, lists map[int][][]byte) error {
	first, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(first) > maxHead {
		return errLarge
	}
	out := bufio.NewWriterSize(f, 64<<10)
	_, _ = out.Write(append(first, '\n')) // Flush returns the error
	sum := sha256.New()
	size := 0
	var entry bytes.Buffer
	for _, i := range slices.Sorted(maps.Keys(lists)) {
		for _, item := range lists[i] {
			if depth(item) > maxDepth || !json.Valid(item) {
				continue
			}
			entry.Reset()
			entry.WriteByte('0' + byte(i))
			entry.Write(item)
			rawjson.OneLine(entry.Bytes()) // keep blanks: it is compared with the server's next list
			entry.WriteByte('\n')
			if size += entry.Len(); size > maxFile-maxHead-128 {
				return errLarge
			}
			sum.Write(entry.Bytes())
			_, _ = out.Write(entry.Bytes())
		}
	}
	_, _ = out.WriteString(hex.EncodeToString(sum.Sum(nil)) + "\n")
	return out.Flush()
}

// shouldLog counts problems of the folder once for all servers.
func (s *ListCache) shouldLog(what, server string, err error) bool {
	key := what + server
	if errors.Is(err, errFolder) {
		key = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	logged := s.logged[key]
	s.logged[key] = true
	return !logged
}
