package jsonrpc

import (
	"bytes"
	"maps"
	"slices"
)

// lane is a queue before that of the Outbox, for chatter: what one party says that
// nobody waits for. With each write a little of the next lane moves to the end of the
// queue, so that neither answers nor the chatter of others wait for it. As long as no
// more than one turn's waits in all, everything goes in the order in which it came.
type lane struct {
	name  string
	queue [][]byte
	first uint64            // number of queue[0]
	keys  map[string]uint64 // key → number of a frame that may be replaced
	bytes int64
}

// maxTurn is how many bytes a lane may write, besides its last frame, before it is
// the next one's turn.
const maxTurn = 32 << 10

// QueuePosition is a place in a lane. The zero Mark is of what does not wait.
type QueuePosition struct {
	lane *lane
	n    uint64
}

// Lane is the name of the lane, "" for that of the zero Mark.
func (m QueuePosition) Lane() string {
	if m.lane == nil {
		return ""
	}
	return m.lane.name
}

// IsBlocked reports whether there was something to wait for when the Mark was made.
func (m QueuePosition) IsBlocked() bool { return m.lane != nil }

// SendLow queues a frame behind all frames that are given to Send, and behind those of
// its lane. With a key it replaces a frame of that key that still waits there. The
// Mark is for those that must not go before it; see [SendQueue.SendAfter].
func (o *SendQueue) SendLow(name, key string, frame []byte) QueuePosition {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closing {
		return QueuePosition{}
	}
	if key == "" && o.try != nil && !o.writing && len(o.queue) == 0 && len(o.lanes) == 0 {
		n, err := o.try.TryWrite(frame)
		switch {
		case err != nil:
			o.fail(err)
			return QueuePosition{}
		case n == len(frame):
			return QueuePosition{}
		case n > 0:
			o.push(frame[n:]) // nothing may come in between
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
	o.put(l, frame)
	return QueuePosition{l, n}
}

// put queues a frame in a lane.
func (o *SendQueue) put(l *lane, frame []byte) {
	l.queue = append(l.queue, frame)
	l.bytes += int64(len(frame))
	o.countLocked(int64(len(frame)))
	o.poke()
}

// SendAfter sends a frame, given in parts, that must not go before the frames of
// the marks. It reports false, and sends nothing, when none of them waits: then the
// frame can be sent in any way.
func (o *SendQueue) SendAfter(marks []QueuePosition, parts ...[]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inOrder()
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
		o.put(waits[0].lane, bytes.Join(parts, nil))
		return true
	}
	for _, m := range waits {
		if m.n >= m.lane.first { // no earlier mark was later in the same lane
			o.move(m.lane, int(m.n-m.lane.first)+1)
		}
	}
	o.push(bytes.Join(parts, nil))
	return true
}

// inOrder moves what waits in lanes before what is about to be sent, if it is
// little.
func (o *SendQueue) inOrder() {
	for len(o.lanes) > 0 && o.unsent.Load() <= maxTurn {
		o.move(o.lanes[0], len(o.lanes[0].queue))
	}
}

// turn moves the next frames of one lane to the queue.
func (o *SendQueue) turn() {
	if len(o.lanes) == 0 {
		return
	}
	l := o.lanes[0]
	n, size := 0, 0
	for n < len(l.queue) && size < maxTurn {
		size += len(l.queue[n])
		n++
	}
	o.move(l, n)
	if len(l.queue) > 0 {
		o.lanes = append(o.lanes[1:], l)
	}
}

// move takes the first frames of a lane to the end of the queue.
func (o *SendQueue) move(l *lane, n int) {
	for _, f := range l.queue[:n] {
		o.queue = append(o.queue, f)
		l.bytes -= int64(len(f))
	}
	clear(l.queue[:n]) // or they would stay as long as the lane
	l.queue, l.first = l.queue[n:], l.first+uint64(n)
	maps.DeleteFunc(l.keys, func(_ string, at uint64) bool { return at < l.first })
	if len(l.queue) == 0 {
		o.lanes = slices.DeleteFunc(o.lanes, func(other *lane) bool { return other == l })
	}
}

// LaneBytes is how many bytes wait in a lane.
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
