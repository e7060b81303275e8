package replay

import (
	"context"
	"fmt"
	"time"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/recording"
)

// Filter selects requests of a recording, in the filter language of the UI. Nil selects
// all. It is not safe for concurrent use.
type Filter struct {
	query  *query.Query
	now    time.Time
	record registry.TrafficRecord
	load   func() (params, response []byte)
}

// ParseFilter parses a filter. It fails if a term is invalid.
func ParseFilter(text string) (*Filter, error) {
	f := &Filter{now: time.Now()}
	f.query = query.Parse(text, recording.Fields(
		func(int) *registry.TrafficRecord { return &f.record },
		func(int) (params, response []byte) { return f.load() }))
	if problem := f.query.Problem(); problem != "" {
		return nil, fmt.Errorf("filter %q: %s", text, problem)
	}
	return f, nil
}

func (f *Filter) selects(r *recording.Reader, line *recording.Line) bool {
	if f == nil || f.query.IsEmpty() {
		return true
	}
	f.record = line.Record()
	f.load = func() (params, response []byte) {
		params, _ = r.Body(line.Params) // a missing body matches nothing
		response, _ = r.Body(line.Answer)
		return params, response
	}
	found, err := f.query.Match(context.Background(), query.NewIndex(1, func(int) string { return recording.Words(&f.record) }), f.now)
	return err == nil && len(found) > 0
}
