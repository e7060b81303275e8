package timeline

import (
	"cmp"
	"slices"
	"time"

	"goblin/registry"
)

// lane is the number of calls in flight at one server over time.
type lane struct {
	server  string
	changes []change // in order of time
	last    time.Time
}

// change is the number of calls from a time on.
type change struct {
	at    int64 // nanoseconds since 1970
	calls int
}

type laneEvents struct{ starts, ends []int64 }

// newLanes returns the lanes of all servers, the last used one first. queue is the lane of
// calls that waited for a slot.
func newLanes(calls []*Call) (all []lane, queue lane) {
	events := map[string]*laneEvents{}
	used := map[string]time.Time{}
	waits := &laneEvents{}
	for _, c := range calls {
		r := c.Record
		if r.Direction != registry.ToServer || r.Server == "" {
			continue
		}
		e := events[r.Server]
		if e == nil {
			e = &laneEvents{}
			events[r.Server] = e
		}
		queued := r.Time.Add(bounded(r.StartWait))
		sent := queued.Add(bounded(r.QueueWait))
		if r.QueueWait > 0 {
			waits.add(queued, sent)
		}
		if isRunning(r) {
			e.starts = append(e.starts, sent.UnixNano())
		} else {
			e.add(sent, end(r, r.Time))
		}
		if r.Time.After(used[r.Server]) {
			used[r.Server] = r.Time
		}
	}
	for server, e := range events {
		all = append(all, lane{server, e.changes(), used[server]})
	}
	slices.SortFunc(all, func(a, b lane) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.server, b.server)) })
	return all, lane{changes: waits.changes()}
}

func (e *laneEvents) add(start, end time.Time) {
	if end.After(start) {
		e.starts, e.ends = append(e.starts, start.UnixNano()), append(e.ends, end.UnixNano())
	}
}

func (e *laneEvents) changes() []change {
	all := make([]change, 0, len(e.starts)+len(e.ends))
	for _, at := range e.starts {
		all = append(all, change{at, 1})
	}
	for _, at := range e.ends {
		all = append(all, change{at, -1})
	}
	// At the same time, an end comes first: the calls follow each other.
	slices.SortFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.calls, b.calls)) })
	n := 0
	for i := range all {
		n += all[i].calls
		all[i].calls = n
	}
	return all
}

// peaks returns the greatest number of calls in each cell up to a time, and the greatest
// of all.
func (l *lane) peaks(a axis, upTo time.Time) (cells []int, most int) {
	cells = make([]int, min(a.cells, max(int(a.at(upTo)+1), 0)))
	i, calls := 0, 0
	for cell := range cells {
		from, to := a.time(cell).UnixNano(), a.time(cell+1).UnixNano()
		if cell == 0 {
			i, _ = slices.BinarySearchFunc(l.changes, from, func(c change, at int64) int { return cmp.Compare(c.at, at) })
			if i > 0 {
				calls = l.changes[i-1].calls
			}
		}
		peak := calls
		for ; i < len(l.changes) && l.changes[i].at < to; i++ {
			calls = l.changes[i].calls
			peak = max(peak, calls)
		}
		cells[cell] = peak
		most = max(most, peak)
	}
	return cells, most
}
