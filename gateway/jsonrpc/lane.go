package jsonrpc

import (
	"bytes"
	"slices"
)

// lane is a queue beside that of the Outbox, for chatter: what one party says
// that nobody waits for. Of each lane a little is written in turn, so that neither
// answers nor the chatter of others wait for it. As long as no more than one
// turn's waits in all, everything goes in the order in which it came.
type lane struct {
	name  string
	queue [][]byte
	first uint64            // number of queue[0]
	keys  map[string]uint64 // key → number of a frame that may be replaced
	bytes int64
}

// laneKey is a key of a lane.
type laneKey struct{ lane, key string }

// maxTurn is how many bytes a lane may write, besides its last frame, before it is
// the next one's turn.
const maxTurn = 32 << 10

// Mark is a place in a lane. The zero Mark is of what does not wait.
type Mark struct {
	lane *lane
	n    uint64
}

// Lane is the name of the lane, "" for that of the zero Mark.
func (m Mark) Lane() string {
	if m.lane == nil {
		return ""
	}
	return m.lane.name
}

// Waits reports whether there was something to wait for when the Mark was made.
func (m Mark) Waits() bool { return m.lane != nil }

func (m Mark) waits() bool { return m.lane != nil && m.n >= m.lane.first }

// Chat queues a frame behind all frames that are given to Send, and behind those of
// its lane. With a key it replaces a frame of that key that still waits there. The
// Mark is for those that must not go before it; see [Outbox.SendAfter].
func (o *Outbox) Chat(name, key string, frame []byte) Mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closing {
		return Mark{}
	}
	if key == "" && o.try != nil && !o.writing && len(o.queue) == 0 && len(o.lanes) == 0 {
		n, err := o.try.TryWrite(frame)
		switch {
		case err != nil:
			o.fail(err)
		case n > 0 && n < len(frame):
			o.push(frame[n:]) // nothing may come in between
		case n == 0:
			return o.chat(name, key, frame)
		}
		return Mark{}
	}
	return o.chat(name, key, frame)
}

func (o *Outbox) chat(name, key string, frame []byte) Mark {
	if at, ok := o.keys[laneKey{name, key}]; ok {
		o.countLocked(int64(len(frame) - len(o.queue[at])))
		o.queue[at] = frame
		return Mark{}
	}
	at := slices.IndexFunc(o.lanes, func(l *lane) bool { return l.name == name })
	if at < 0 {
		at = len(o.lanes)
		o.lanes = append(o.lanes, &lane{name: name})
	}
	l := o.lanes[at]
	if n, ok := l.keys[key]; ok {
		old := &l.queue[n-l.first]
		grown := int64(len(frame) - len(*old))
		*old = frame
		l.bytes += grown
		o.countLocked(grown)
		return Mark{l, n}
	}
	n := l.first + uint64(len(l.queue))
	if key != "" {
		if l.keys == nil {
			l.keys = make(map[string]uint64)
		}
		l.keys[key] = n
	}
	o.put(l, frame)
	return Mark{l, n}
}

// put queues a frame in a lane.
func (o *Outbox) put(l *lane, frame []byte) {
	l.queue = append(l.queue, frame)
	l.bytes += int64(len(frame))
	o.countLocked(int64(len(frame)))
	o.poke()
}

// SendAfter sends a frame, given in parts, that must not go before the frames of
// the marks. It reports false, and sends nothing, when none of them waits: then the
// frame can be sent in any way.
func (o *Outbox) SendAfter(marks []Mark, parts ...[]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inOrder()
	var waits []Mark
	queued := uint64(0) // what has moved into the queue
	for _, m := range marks {
		switch {
		case m.waits():
			waits = append(waits, m)
		case m.lane != nil:
			queued = max(queued, o.moved[m.lane.name])
		}
	}
	switch {
	case len(waits) == 0 || o.err != nil || o.closing:
		return false
	case len(waits) == 1:
		l := waits[0].lane
		if queued > max(o.taken, o.moved[l.name]) {
			o.moved[l.name] = queued
		}
		o.put(l, bytes.Join(parts, nil))
		return true
	}
	for _, m := range waits {
		if m.waits() {
			o.move(m.lane, int(m.n-m.lane.first)+1)
		}
	}
	o.lanes = slices.DeleteFunc(o.lanes, func(l *lane) bool { return len(l.queue) == 0 })
	o.push(bytes.Join(parts, nil))
	return true
}

// inOrder moves what waits in lanes before what is about to be sent, if it is
// little.
func (o *Outbox) inOrder() {
	if len(o.lanes) == 0 || o.unsent.Load() > maxTurn {
		return
	}
	for _, l := range o.lanes {
		for key, n := range l.keys {
			if o.keys == nil {
				o.keys = make(map[laneKey]int)
			}
			o.keys[laneKey{l.name, key}] = len(o.queue) + int(n-l.first)
		}
		o.move(l, len(l.queue))
	}
	o.lanes = nil
}

// move takes the first frames of a lane to the end of the queue. Those behind them
// wait until they have gone out.
func (o *Outbox) move(l *lane, n int) {
	o.queue = l.take(n, o.queue)
	if o.moved == nil {
		o.moved = make(map[string]uint64)
	}
	o.moved[l.name] = o.taken + uint64(len(o.queue))
}

// Waiting is how many bytes wait in a lane.
func (o *Outbox) Waiting(name string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		if l.name == name {
			return l.bytes
		}
	}
	return 0
}

// turn adds the next frames of one lane to a batch.
func (o *Outbox) turn(batch [][]byte) [][]byte {
	at := slices.IndexFunc(o.lanes, func(l *lane) bool { return o.moved[l.name] <= o.taken })
	if at < 0 {
		return batch
	}
	l := o.lanes[at]
	delete(o.moved, l.name)
	n, size := 0, 0
	for n < len(l.queue) && size < maxTurn {
		size += len(l.queue[n])
		n++
	}
	batch = l.take(n, batch)
	o.lanes = slices.Delete(o.lanes, at, at+1)
	if len(l.queue) > 0 {
		o.lanes = append(o.lanes, l)
	}
	return batch
}

// take moves the first n frames to the end of batch.
func (l *lane) take(n int, batch [][]byte) [][]byte {
	for _, f := range l.queue[:n] {
		batch = append(batch, f)
		l.bytes -= int64(len(f))
	}
	clear(l.queue[:n]) // or they would stay as long as the queue
	l.queue, l.first = l.queue[n:], l.first+uint64(n)
	for key, at := range l.keys {
		if at < l.first {
			delete(l.keys, key)
		}
	}
	return batch
}
