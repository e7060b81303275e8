package jsonrpc

import (
	"bytes"
	"maps"
	"slices"
)

// lane is a low-priority queue of one source. Lanes take turns of maxTurn bytes after the
// main queue, so nothing waits long. While all lanes hold at most maxTurn bytes, frames
// keep their order.
type lane struct {
	name  string
	queue [][]byte
	first uint64            // number of queue[0]
	keys  map[string]uint64 // numbers of replaceable frames
	bytes int64
}

// maxTurn is the number of bytes per turn, plus one frame.
const maxTurn = 32 << 10

// QueuePosition is a frame's position in a lane. It is zero if the frame was written or
// dropped.
type QueuePosition struct {
	lane *lane
	n    uint64
}

// Lane returns the lane's name, or "".
func (m QueuePosition) Lane() string {
	if m.lane == nil {
		return ""
	}
	return m.lane.name
}

// IsBlocked reports whether the frame was unsent when SendLow returned.
func (m QueuePosition) IsBlocked() bool { return m.lane != nil }

// SendLow queues a frame in a lane, after all frames of Send. It replaces an unsent frame
// with the same key, unless key is "". Use the position for [SendQueue.SendAfter].
func (o *SendQueue) SendLow(name, key string, frame []byte) QueuePosition {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closing {
		return QueuePosition{}
	}
	if key == "" && o.trySink != nil && !o.writing && len(o.queue) == 0 && len(o.lanes) == 0 {
		n, err := o.trySink.TryWrite(frame)
		switch {
		case err != nil:
			o.failLocked(err)
			return QueuePosition{}
		case n == len(frame):
			return QueuePosition{}
		case n > 0:
			o.pushLocked(frame[n:]) // nothing may come in between
			return QueuePosition{}
		}
	}
	at := slices.IndexFunc(o.lanes, func(l *lane) bool { return l.name == name })
	if at < 0 {
		at = len(o.lanes)
		o.lanes = append(o.lanes, &lane{name: name, keys: make(map[string]uint64)})
	}
	l := o.lanes[at]
	if n, ok := l.keys[key]; ok {
		old := &l.queue[n-l.first]
		grown := int64(len(frame) - len(*old))
		*old = frame
		l.bytes += grown
		o.countLocked(grown)
		return QueuePosition{l, n}
	}
	n := l.first + uint64(len(l.queue))
	if key != "" {
		l.keys[key] = n
	}
	o.pushLaneLocked(l, frame)
	return QueuePosition{l, n}
}

func (o *SendQueue) pushLaneLocked(l *lane, frame []byte) {
	l.queue = append(l.queue, frame)
	l.bytes += int64(len(frame))
	o.countLocked(int64(len(frame)))
	o.signal()
}

// SendAfter sends a frame in parts after the given positions. It returns false and sends
// nothing if none is unsent.
func (o *SendQueue) SendAfter(marks []QueuePosition, parts ...[]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLanesLocked()
	var waits []QueuePosition
	for _, m := range marks {
		if m.lane != nil && m.n >= m.lane.first {
			waits = append(waits, m)
		}
	}
	switch {
	case len(waits) == 0 || o.err != nil || o.closing:
		return false
	case len(waits) == 1:
		o.pushLaneLocked(waits[0].lane, bytes.Join(parts, nil))
		return true
	}
	for _, m := range waits {
		if m.n >= m.lane.first { // not moved by an earlier position
			o.moveLocked(m.lane, int(m.n-m.lane.first)+1)
		}
	}
	o.pushLocked(bytes.Join(parts, nil))
	return true
}

// flushLanesLocked moves all lanes to the queue if few bytes are unsent.
func (o *SendQueue) flushLanesLocked() {
	for len(o.lanes) > 0 && o.unsent.Load() <= maxTurn {
		o.moveLocked(o.lanes[0], len(o.lanes[0].queue))
	}
}

func (o *SendQueue) takeTurnLocked() {
	if len(o.lanes) == 0 {
		return
	}
	l := o.lanes[0]
	n, size := 0, 0
	for n < len(l.queue) && size < maxTurn {
		size += len(l.queue[n])
		n++
	}
	o.moveLocked(l, n)
	if len(l.queue) > 0 {
		o.lanes = append(o.lanes[1:], l)
	}
}

func (o *SendQueue) moveLocked(l *lane, n int) {
	for _, f := range l.queue[:n] {
		o.queue = append(o.queue, f)
		l.bytes -= int64(len(f))
	}
	clear(l.queue[:n]) // do not retain them
	l.queue, l.first = l.queue[n:], l.first+uint64(n)
	maps.DeleteFunc(l.keys, func(_ string, at uint64) bool { return at < l.first })
	if len(l.queue) == 0 {
		o.lanes = slices.DeleteFunc(o.lanes, func(other *lane) bool { return other == l })
	}
}

// LaneBytes returns the number of unsent bytes in a lane.
func (o *SendQueue) LaneBytes(name string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		if l.name == name {
			return l.bytes
		}
	}
	return 0
}
