package export

import (
	"bytes"
	"io"

	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/recording"
)

// records is a source of traffic records.
type records struct {
	before []recording.Line
	n      int
	get    func(i int) (registry.TrafficRecord, bool)
	next   int
}

// NewRecords returns a source of n traffic records after the lines before. get returns
// false for a record that was evicted meanwhile.
func NewRecords(before []recording.Line, n int, get func(i int) (registry.TrafficRecord, bool)) Source {
	return &records{before: before, n: n, get: get}
}

// NewLines returns a source of lines.
func NewLines(all []recording.Line) Source { return &records{before: all} }

func (r *records) Next() (*recording.Line, error) {
	if len(r.before) > 0 {
		l := r.before[0]
		r.before = r.before[1:]
		addOwn(&l)
		return &l, nil
	}
	for r.next < r.n {
		rec, ok := r.get(r.next)
		r.next++
		if !ok {
			continue
		}
		l := recording.NewLine(&rec)
		l.Params, l.Answer = bodyOf(rec.Request), bodyOf(rec.Response)
		addOwn(&l)
		return &l, nil
	}
	return nil, io.EOF
}

// addOwn adds the server's own answer, which the journal lacks: its URIs are those without
// the server's name. A replay needs it.
func addOwn(l *recording.Line) {
	if l.Type != recording.TypeRequest || l.Direction != "" || l.Server == "" {
		return
	}
	l.Answered = true
	if l.Answer == nil || l.Own != nil {
		return
	}
	if own := names.OwnURIs(l.Answer.JSON, l.Server); !bytes.Equal(own, l.Answer.JSON) {
		l.Own = bodyOf(own)
	}
}

func bodyOf(text []byte) *recording.Body {
	if len(text) == 0 {
		return nil
	}
	return &recording.Body{JSON: text, Size: len(text)}
}

func (r *records) Body(b *recording.Body) ([]byte, error) { return b.JSON, nil }
func (r *records) Close() error                           { return nil }
