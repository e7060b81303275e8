package rawjson

import (
	"iter"
	"sort"
)

// Layout records the ends of large values of a checked text, so that readers can skip
// them. Its methods are the functions of the package, for slices of that text. For other
// slices, and on nil, they work without that knowledge.
type Layout struct {
	size int    // capacity of the text, see [Offset]
	last *byte  // last byte of that capacity
	long []span // sorted by start
}

type span struct{ start, end int }

const (
	minLong = 1 << 10
	// maxSpanDepth is the maximum depth of recorded containers. The text's length limits
	// their number on each level.
	maxSpanDepth = 8
)

type longValues struct {
	enabled   bool
	spans     []span
	openSpans [maxSpanDepth]int // index in spans of each open container
}

func (m *longValues) containerStart(depth, at int) {
	if m.enabled && depth <= maxSpanDepth {
		m.openSpans[depth-1] = len(m.spans)
		m.spans = append(m.spans, span{start: at})
	}
}

// A short container is removed: it is the last span, because all values in it are short,
// too.
func (m *longValues) containerEnd(depth, end int) {
	if !m.enabled || depth > maxSpanDepth {
		return
	}
	at := m.openSpans[depth-1]
	m.spans[at].end = end
	if end-m.spans[at].start < minLong {
		m.spans = m.spans[:at]
	}
}

func (m *longValues) addString(start, end int) {
	if m.enabled && end-start >= minLong {
		m.spans = append(m.spans, span{start, end})
	}
}

// RecordShape enables recording of large values for [Checker.Shape]. Call it before Feed.
func (c *Checker) RecordShape() {
	c.enabled = true
	c.spans = make([]span, 0, 8)
}

// Shape returns the layout of the text that End accepted, or nil without RecordShape.
func (c *Checker) Shape(src []byte) *Layout {
	n := cap(src)
	if !c.enabled || n == 0 {
		return nil
	}
	return &Layout{size: n, last: &src[:n][n-1], long: c.spans}
}

// After returns the index after the value that begins at i in b.
func (s *Layout) After(b []byte, i int) int {
	if s != nil && len(b)-i >= minLong && &b[:cap(b)][cap(b)-1] == s.last {
		at := s.size - cap(b) + i
		n := sort.Search(len(s.long), func(n int) bool { return s.long[n].start >= at })
		if n < len(s.long) && s.long[n].start == at {
			return min(i+s.long[n].end-at, len(b))
		}
	}
	return skipValue(b, i)
}

// Members is the function Members for a slice of the text.
func (s *Layout) Members(obj []byte) iter.Seq2[Key, []byte] {
	return func(yield func(Key, []byte) bool) {
		i := AfterSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i = AfterSpace(obj, i+1); i < len(obj) && obj[i] == '"'; i = AfterSpace(obj, i) {
			end := AfterString(obj, i)
			name := Key(obj[i:end])
			i = AfterSpace(obj, end)
			if i >= len(obj) || obj[i] != ':' {
				return
			}
			i = AfterSpace(obj, i+1)
			end = s.After(obj, i)
			if end <= i || !yield(name, obj[i:end]) {
				return
			}
			i = AfterSpace(obj, end)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
			i++
		}
	}
}

// Elements is the function Elements for a slice of the text.
func (s *Layout) Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := AfterSpace(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i = AfterSpace(arr, i+1); i < len(arr) && arr[i] != ']'; i = AfterSpace(arr, i) {
			end := s.After(arr, i)
			if end <= i || !yield(arr[i:end]) {
				return
			}
			i = AfterSpace(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
			i++
			i = AfterSpace(arr, i)
		}
	}
}

// Get is the function Get for a slice of the text.
func (s *Layout) Get(obj []byte, name string) []byte {
	var found []byte
	for k, v := range s.Members(obj) {
		if k.Is(name) {
			found = v
		}
	}
	return found
}
