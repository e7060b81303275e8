package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/gateway/atomicfile"
	statefile "goblin/gateway/state"
	"goblin/registry/report"
)

const (
	version = 1
	// maxFile is in bytes.
	maxFile = 8 << 20
	// maxExactInt is the largest number that all JSON parsers read exactly.
	maxExactInt = 1 << 53
)

// UsagePath returns a config's usage file in the state folder. config is its canonical
// path.
func UsagePath(folder, config string) string {
	return atomicfile.ConfigPath(filepath.Join(folder, "usage"), config)
}

type usageState struct {
	start int64
	all   counts
	rows  map[rowKey]*usageRow
}

// usageRow also has the listed state: tools of a server, others of a tool.
type usageRow struct {
	counts
	definition, tools int
	listed            string
	disabled          bool
}

func (s *usageState) row(k rowKey) *usageRow {
	t := s.rows[k]
	if t == nil {
		t = &usageRow{}
		if s.rows == nil {
			s.rows = make(map[rowKey]*usageRow)
		}
		s.rows[k] = t
	}
	return t
}

func (s *usageState) clone() *usageState {
	c := &usageState{start: s.start, all: s.all, rows: make(map[rowKey]*usageRow, len(s.rows))}
	for k, t := range s.rows {
		row := *t
		c.rows[k] = &row
	}
	return c
}

type usageLine struct {
	Server     string         `json:"server,omitempty"`
	Tool       string         `json:"tool,omitempty"`
	Client     *string        `json:"client,omitempty"`
	Listed     string         `json:"listed,omitempty"`
	Off        bool           `json:"off,omitempty"`
	Definition int            `json:"definition,omitempty"`
	Tools      int            `json:"tools,omitempty"`
	Calls      uint64         `json:"calls,omitempty"`
	Errors     uint64         `json:"errors,omitempty"`
	Bytes      uint64         `json:"bytes,omitempty"`
	Last       int64          `json:"last,omitempty"`
	Took       map[int]uint64 `json:"took,omitempty"`
	Waits      uint64         `json:"waits,omitempty"`
	Waited     uint64         `json:"waitedMs,omitempty"`
	Starts     uint64         `json:"starts,omitempty"`
	StartMs    uint64         `json:"startMs,omitempty"`
	Cancelled  uint64         `json:"cancelled,omitempty"`
}

type file struct {
	Version *int            `json:"version"`
	Began   int64           `json:"began"`
	All     json.RawMessage `json:"all"`
	Rows    []usageLine     `json:"rows"`
}

// CheckUsage returns the error in a usage file and its line, or 0. The next daemon resets
// such counters.
func CheckUsage(path string) (line int, err error) {
	if _, err = load(path); err == nil {
		return 0, nil
	}
	text, _ := statefile.Read(path, maxFile) // only for the line number
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line = 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
	case errors.Is(err, errVersion):
		line = 1 + bytes.Count(text[:max(bytes.Index(text, []byte(`"version"`)), 0)], []byte("\n"))
	}
	return line, err
}

var errVersion = errors.New("written by another version of Goblin")

func parse(text []byte) (*usageState, error) {
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Version == nil:
		return nil, errors.New("version missing")
	case *head.Version != version:
		return nil, fmt.Errorf("version %d instead of %d: %w", *head.Version, version, errVersion)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	s := &usageState{start: f.Began}
	var all usageLine
	if err := json.Unmarshal(f.All, &all); err != nil {
		return nil, fmt.Errorf("all: %w", err)
	}
	var err error
	if s.all, err = all.counts(); err != nil || f.Began < 0 || f.Began > maxExactInt {
		return nil, errors.Join(errors.New("totals out of range"), err)
	}
	for i := range f.Rows {
		l := &f.Rows[i]
		k := rowKey{server: l.Server, name: l.Tool}
		if l.Client != nil {
			k = rowKey{client: true, name: *l.Client}
		}
		c, err := l.counts()
		switch {
		case err != nil:
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		case !k.client && k.server == "", len(k.server) > maxName, len(k.name) > maxName, len(l.Listed) > maxName:
			return nil, fmt.Errorf("row %d: name missing or longer than %d bytes", i+1, maxName)
		case l.Definition < 0 || l.Tools < 0 || l.Definition > maxExactInt || l.Tools > maxExactInt:
			return nil, fmt.Errorf("row %d: tool count or definition size out of range", i+1)
		}
		*s.row(k) = usageRow{c, l.Definition, l.Tools, l.Listed, l.Off}
	}
	return s, nil
}

func (l *usageLine) counts() (c counts, err error) {
	c.calls = l.Calls
	c.errors = l.Errors
	c.bytes = l.Bytes
	c.last = l.Last
	c.waits = l.Waits
	c.waitMillis = l.Waited
	c.starts = l.Starts
	c.startMillis = l.StartMs
	c.cancelled = l.Cancelled
	sound := l.Calls <= maxExactInt && l.Errors <= l.Calls && l.Bytes <= maxExactInt && l.Last >= 0 && l.Last <= maxExactInt && l.Waits <= l.Calls && l.Waited <= maxExactInt
	sound = sound && l.Starts <= l.Calls && l.StartMs <= maxExactInt && l.Cancelled <= l.Calls
	for bin, n := range l.Took {
		if bin < 0 || bin >= report.Bins || n > maxExactInt {
			sound = false
			break
		}
		c.durations[bin] = n
	}
	if !sound {
		return c, errors.New("number out of range")
	}
	return c, nil
}

func (c *counts) toLine() usageLine {
	l := usageLine{
		Calls: c.calls, Errors: c.errors, Bytes: c.bytes, Last: c.last, Waits: c.waits, Waited: c.waitMillis,
		Starts: c.starts, StartMs: c.startMillis, Cancelled: c.cancelled,
	}
	for bin, n := range c.durations {
		if n > 0 {
			if l.Took == nil {
				l.Took = make(map[int]uint64)
			}
			l.Took[bin] = n
		}
	}
	return l
}

// text returns one row per line.
func (s *usageState) text() ([]byte, error) {
	var out bytes.Buffer
	all, err := json.Marshal(s.all.toLine())
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, "{\"version\": %d, \"began\": %d, \"all\": %s, \"rows\": [", version, s.start, all)
	keys := slices.SortedFunc(maps.Keys(s.rows), func(a, b rowKey) int {
		if a.client != b.client {
			return a.class() - b.class()
		}
		return strings.Compare(a.server+"\x00"+a.name, b.server+"\x00"+b.name)
	})
	for i, k := range keys {
		t := s.rows[k]
		l := t.toLine()
		l.Server = k.server
		l.Tool = k.name
		l.Definition = t.definition
		l.Tools = t.tools
		l.Listed = t.listed
		l.Off = t.disabled
		if k.client {
			l.Tool, l.Client = "", &k.name
		}
		text, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(text)
	}
	out.WriteString("\n]}\n")
	return out.Bytes(), nil
}

// read logs a bad file once and moves it aside.
func (m *Meter) read() *usageState {
	if m.o.Path == "" {
		return nil
	}
	s, err := load(m.o.Path)
	if err == nil {
		return s
	}
	if m.replaced { // another process writes them
		m.disabled = true
		return nil
	}
	m.replaced = true
	where := m.o.Path + ".aside"
	if failed := os.Rename(m.o.Path, where); failed != nil {
		m.disabled = true
		m.warn(errors.Join(err, failed))
		return nil
	}
	if m.o.Logger != nil {
		m.o.Logger.Warn("usage counters reset: file unreadable, moved aside", "file", where, "err", err)
	}
	return nil
}

func load(path string) (*usageState, error) {
	text, err := statefile.Read(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parse(text)
}

func (m *Meter) warn(err error) {
	if m.o.Logger != nil {
		m.o.Logger.Warn("usage counters not saved", "file", m.o.Path, "err", err)
	}
}

// Save adds new counts to the file. It logs the first of several failures.
func (m *Meter) Save() {
	if m == nil || m.o.Path == "" {
		return
	}
	m.saving.Lock()
	defer m.saving.Unlock()
	news, taken := m.takeCounts()
	listed := m.o.Listed()
	if m.disabled || !news && (m.listWritten || len(listed) == 0) {
		m.restoreCounts(taken, m.saved)
		return
	}
	s, err := m.merge(taken, listed)
	if err != nil {
		m.restoreCounts(taken, m.saved)
		if !m.writeErrorLogged {
			m.writeErrorLogged = true
			m.warn(err)
		}
		return
	}
	m.writeErrorLogged, m.listWritten = false, m.listWritten || len(listed) > 0
	m.restoreCounts(nil, s)
}

// takeCounts returns and clears the unsaved counts.
func (m *Meter) takeCounts() (news bool, taken *usageState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken = &usageState{all: m.all.counts}
	m.all.counts = counts{}
	for k, r := range m.rows {
		if r.calls > 0 {
			taken.row(k).counts = r.counts
			r.counts = counts{}
		}
	}
	return taken.all.calls > 0, taken
}

// restoreCounts sets saved and adds taken back.
func (m *Meter) restoreCounts(taken, saved *usageState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = saved
	if taken == nil {
		return
	}
	m.all.add(&taken.all)
	for k, t := range taken.rows {
		m.rows[k].add(&t.counts)
	}
}

// merge adds taken to the current file.
func (m *Meter) merge(taken *usageState, listed []ListedTool) (*usageState, error) {
	unlock, err := atomicfile.Lock(m.o.Path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := m.read()
	if m.disabled {
		return nil, errors.New("another process writes an incompatible file")
	}
	if s == nil {
		s = &usageState{start: m.saved.start}
	}
	s.all.add(&taken.all)
	for k, t := range taken.rows {
		s.row(k).add(&t.counts)
	}
	if len(listed) > 0 {
		s.list(listed)
	}
	s.trim(m.o.Now())
	text, err := s.text()
	if err != nil {
		return nil, err
	}
	return s, atomicfile.Write(m.o.Path, text)
}

// ReadUsage returns the usage in a file, if no daemon runs.
func ReadUsage(path string, now time.Time) (report.Report, error) {
	s, err := load(path)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", path, err)
	}
	if s == nil {
		s = &usageState{start: now.Unix()}
	}
	return s.report(now), nil
}
