package recording

import "slices"

const (
	// maxTailBytes is the size of the bodies that a Tail keeps.
	maxTailBytes = 64 << 20
	// maxRunning is the number of requests without an answer that are kept.
	maxRunning = 10_000
)

// Tail keeps the last lines of a stream: at most a number of lines, and 64 MiB of bodies.
type Tail struct {
	limit int
	lines []*Line
	bytes int
	total int
}

// NewTail returns a Tail for a number of lines.
func NewTail(limit int) *Tail { return &Tail{limit: limit} }

// Add appends a line and drops the oldest ones beyond the limits.
func (t *Tail) Add(l *Line) {
	t.total++
	t.lines = append(t.lines, l)
	t.bytes += l.bodySize()
	drop := 0
	for drop < len(t.lines) && (len(t.lines)-drop > t.limit || t.bytes > maxTailBytes) {
		t.bytes -= t.lines[drop].bodySize()
		t.lines[drop] = nil
		drop++
	}
	t.lines = t.lines[drop:]
}

// Lines returns the lines, oldest first.
func (t *Tail) Lines() []*Line { return t.lines }

// Dropped returns the number of lines that were added before those of Lines.
func (t *Tail) Dropped() int { return t.total - len(t.lines) }

// DropBodies removes the bodies and keeps the error message.
func (l *Line) DropBodies() {
	l.Error = l.ErrorText()
	l.Params, l.Answer, l.Sent, l.Own = nil, nil, nil, nil
}

func (l *Line) bodySize() (n int) {
	for _, b := range []*Body{l.Params, l.Answer, l.Sent, l.Own} {
		if b != nil {
			n += len(b.JSON)
		}
	}
	return n
}

// Running holds the requests of a recording that have no answer yet: at most 10,000, and
// 64 MiB of bodies. The zero value is ready.
type Running struct {
	lines map[uint64]*Line
	order []uint64
	bytes int // of bodies
}

// Read updates the requests by the next line of a recording.
func (r *Running) Read(l *Line) {
	switch l.Type {
	case TypeRequest:
		delete(r.lines, l.Number)
	case TypeRunning:
		if r.lines == nil {
			r.lines = make(map[uint64]*Line)
		}
		if r.lines[l.Number] == nil && len(r.lines) < maxRunning {
			if r.bytes += l.bodySize(); r.bytes > maxTailBytes {
				l.DropBodies()
			}
			r.lines[l.Number] = l
			r.order = append(r.order, l.Number)
		}
		if len(r.order) > 2*maxRunning { // most of them have an answer
			r.order = slices.DeleteFunc(r.order, func(n uint64) bool { return r.lines[n] == nil })
		}
	}
}

// Lines returns the requests in the order in which they were read.
func (r *Running) Lines() (all []*Line) {
	for _, n := range r.order {
		if l := r.lines[n]; l != nil {
			all = append(all, l)
			delete(r.lines, n) // a number may occur twice in order
		}
	}
	return all
}
