package telemetry

import (
	"slices"

	"goblin/registry"
)

// Sink receives every record after the traffic journal, for recordings and traces. Record
// runs on read loops: it never blocks, changes nothing, and copies what it needs. Secrets in rec are
// masked, those in full are not.
type Sink interface {
	Record(rec *registry.TrafficRecord, full Bodies)
}

// Bodies contains the complete bodies of a record, unmasked.
type Bodies struct {
	// Request contains the params and Response the result or error object, both as the
	// client sees them.
	Request, Response []byte
	// Sent contains the params as the server got them, if they differ in more than the
	// name or URI. Otherwise it is nil.
	Sent []byte
	// Answer contains the server's own result or error object if Response differs.
	// Otherwise it is nil.
	Answer []byte
	// Answered reports whether the server answered a client's request. If not, Goblin
	// made the response.
	Answered bool
}

// AddSink adds a sink until remove is called. Records in progress may still reach it
// afterwards.
func (j *Journal) AddSink(s Sink) (remove func()) {
	added := &s
	j.changeSinks(func(all []*Sink) []*Sink { return append(all, added) })
	return func() {
		j.changeSinks(func(all []*Sink) []*Sink {
			return slices.DeleteFunc(all, func(one *Sink) bool { return one == added })
		})
	}
}

// HasSinks reports whether records need Sent and Own of [Answer].
func (j *Journal) HasSinks() bool { return j.sinks.Load() != nil }

func (j *Journal) changeSinks(change func([]*Sink) []*Sink) {
	j.sinksMu.Lock()
	defer j.sinksMu.Unlock()
	var all []*Sink
	if now := j.sinks.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = change(all); len(all) == 0 {
		j.sinks.Store(nil)
		return
	}
	j.sinks.Store(&all)
}

// append writes a record to the traffic journal and to the sinks. Without sinks, full is
// not called.
func (j *Journal) append(rec *registry.TrafficRecord, full func() Bodies) {
	rec.Seq = j.Registry.Traffic().Append(*rec)
	all := j.sinks.Load()
	if all == nil {
		return
	}
	kept, bodies := *rec, full() // keeps rec itself on the stack
	for _, s := range *all {
		(*s).Record(&kept, bodies)
	}
}
