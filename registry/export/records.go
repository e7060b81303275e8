package export

import (
	"io"

	"goblin/registry"
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

func (r *records) Next() (*recording.Line, error) {
	if len(r.before) > 0 {
		l := r.before[0]
		r.before = r.before[1:]
		return &l, nil
	}
	for r.next < r.n {
		rec, ok := r.get(r.next)
		r.next++
		if !ok {
			continue
		}
		l := recording.NewLine(&rec)
		l.Answered = rec.Server != "" && l.Type == recording.TypeRequest
		l.Params, l.Answer = bodyOf(rec.Request), bodyOf(rec.Response)
		return &l, nil
	}
	return nil, io.EOF
}

func bodyOf(text []byte) *recording.Body {
	if len(text) == 0 {
		return nil
	}
	return &recording.Body{JSON: text, Size: len(text)}
}

func (r *records) Body(b *recording.Body) ([]byte, error) { return b.JSON, nil }
func (r *records) Close() error                           { return nil }
