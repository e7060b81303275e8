package timeline

import (
	"cmp"
	"slices"
	"time"

	"goblin/registry"
)

// Usual is the median duration of earlier calls of the same target, without failures and
// without waiting times.
type Usual struct {
	Median time.Duration
	Calls  int
}

// A call is slow if it lasts several times the median of enough calls, and noticeably
// longer.
const (
	minUsualCalls = 3
	minFactor     = 3
	minExcess     = 20 * time.Millisecond
	// maxUsual is the maximum number of durations per target; older ones are dropped.
	maxUsual = 501
)

// Factor returns how many times as long as usual a duration is, or 0 if it is not
// remarkable.
func (u Usual) Factor(took time.Duration) int {
	if u.Calls < minUsualCalls || took-u.Median < minExcess {
		return 0
	}
	f := int(took / max(u.Median, time.Microsecond))
	if f < minFactor {
		return 0
	}
	return f
}

// Work returns the duration of a request without waiting for the user, the server's start
// and a slot. now ends requests in flight.
func Work(r *registry.TrafficRecord, now time.Time) time.Duration {
	took := end(r, now).Sub(r.Time)
	return max(took-bounded(r.UserWait)-bounded(r.StartWait)-bounded(r.QueueWait), 0)
}

type usualKey struct{ server, method, name string }

type usualTable map[usualKey]*durations

// durations are the last durations of a target, also in ascending order.
type durations struct{ recent, sorted []time.Duration }

// next returns the median of the calls so far and adds the call.
func (t usualTable) next(r *registry.TrafficRecord) Usual {
	key := usualKey{r.Server, r.Method, r.Name}
	d := t[key]
	if d == nil {
		d = &durations{}
		t[key] = d
	}
	u := d.usual()
	if countsAsUsual(r) {
		d.add(Work(r, r.Time))
	}
	return u
}

func countsAsUsual(r *registry.TrafficRecord) bool {
	return r.Status == "success" && (!r.UserAsked || r.UserWait > 0)
}

func (d *durations) usual() Usual {
	if len(d.sorted) == 0 {
		return Usual{}
	}
	return Usual{Median: d.sorted[(len(d.sorted)-1)/2], Calls: len(d.sorted)}
}

func (d *durations) add(took time.Duration) {
	if len(d.recent) >= maxUsual {
		i, _ := slices.BinarySearch(d.sorted, d.recent[0])
		d.sorted = slices.Delete(d.sorted, i, i+1)
		d.recent = d.recent[1:]
	}
	d.recent = append(d.recent, took)
	i, _ := slices.BinarySearch(d.sorted, took)
	d.sorted = slices.Insert(d.sorted, i, took)
}

// UsualOf returns the median of the records before r. It reads all of them.
func UsualOf(r *registry.TrafficRecord, records []*registry.TrafficRecord) Usual {
	d := &durations{}
	var before []*registry.TrafficRecord
	for _, o := range records {
		if o.Method == r.Method && o.Name == r.Name && o.Server == r.Server && o.Time.Before(r.Time) && countsAsUsual(o) {
			before = append(before, o)
		}
	}
	slices.SortStableFunc(before, func(a, b *registry.TrafficRecord) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	for _, o := range before {
		d.add(Work(o, o.Time))
	}
	return d.usual()
}
