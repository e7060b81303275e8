package downstream

import (
	"bytes"
	"errors"
	"sync"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// Only revision 2025-03-26 has batches: arrays of messages. Their answers are sent as one
// array, in order of completion.

const (
	batchRevision = "2025-03-26"
	// maxBatch is the maximum number of messages in a batch.
	maxBatch = 1000
)

func isBatch(err error) bool { return errors.Is(err, jsonrpc.ErrBatch) }

type batch struct {
	stream // of the batch, for all other frames
	limit  int64

	mu           sync.Mutex
	pending      int // unanswered requests, plus one while reading the batch
	answers      [][]byte
	size         int64
	reservation  memlimit.Reservation
	predecessors []jsonrpc.QueuePosition // the answers must follow these frames
}

func (b *batch) answer(frame []byte, _ int, _ *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	b.addAnswer(frame, after)
}

func (b *batch) abandon() { b.addAnswer(nil, nil) }

func (b *batch) addPending() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending++
}

// addAnswer adds an answer, or nil for an abandoned request. It sends the array after the
// last one, or earlier parts above the client's limits.
func (b *batch) addAnswer(frame []byte, after []jsonrpc.QueuePosition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if frame != nil {
		frame = bytes.TrimSuffix(frame, []byte("\n"))
		b.answers, b.size = append(b.answers, frame), b.size+int64(len(frame))
	}
	b.predecessors = append(b.predecessors, after...)
	b.pending--
	if b.pending > 0 && b.size <= b.limit && b.reservation.Resize(b.size) {
		return
	}
	b.reservation.Resize(0)
	all := joinAnswers(b.answers)
	some := len(b.answers) > 0
	b.answers, b.size = nil, 0
	switch {
	case b.pending > 0:
		b.send(all)
	case some:
		b.stream.answer(all, 0, nil, b.predecessors)
	default:
		b.stream.abandon()
	}
}

func joinAnswers(answers [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(answers, []byte(","))...), "]\n"...)
}

// serveBatch serves a batch and sends the answers to out. It calls hold before each
// request, and the returned release after it; hold may be nil. It reports whether there
// will be an answer.
func (s *Session) serveBatch(frame []byte, out stream, of *memoryShare, hold func() (release func())) (answers bool) {
	b := &batch{stream: out, limit: s.opt.Limits.Unsent, pending: 1}
	b.reservation.SetOwner(of.Owner)
	refuse := func(frame []byte) {
		answers = true
		b.addPending()
		b.addAnswer(frame, nil)
	}
	for message := range rawjson.Elements(frame) {
		m, err := jsonrpc.ParseWithin(message, s.opt.Limits.Depth)
		switch {
		case err != nil:
			if answer := s.malformedReply(err); answer != nil {
				refuse(answer)
			}
		case m.IsNotification():
			s.handleNotification(m.Method, m.Params)
		case m.IsResponse():
			s.handleResponse(&m)
		case m.Method == "initialize", isModernRequest(&m, true):
			refuse(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: %s is not allowed in a batch; send it alone", truncate(m.Method)).Frame(m.ID))
		default:
			answers = true
			b.addPending()
			var release func()
			if hold != nil {
				release = hold()
			}
			x, fault := s.begin(&m, nil, b, of, release)
			if fault == nil {
				x.serve(nil)
				continue
			}
			if release != nil {
				release()
			}
			b.addAnswer(fault.Frame(m.ID), nil)
		}
	}
	b.addAnswer(nil, nil)
	return answers
}

// rejectBatch returns the answers to a refused batch, for each request and malformed
// message or for the batch. It returns nil if the batch is allowed. protocol is "" before
// the handshake.
func rejectBatch(frame []byte, protocol string, depth int) (answers [][]byte) {
	n := 0
	for range rawjson.Elements(frame) {
		n++
	}
	whole := func(format string, args ...any) [][]byte {
		return [][]byte{jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: "+format, args...).Frame(nil)}
	}
	switch {
	case n == 0:
		return whole("the batch is empty")
	case n > maxBatch:
		return whole("the batch has %d messages, at most %d are allowed; send smaller batches", n, maxBatch)
	case protocol == batchRevision:
		return nil
	}
	why := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: only revision %s allows batches; send one message at a time", batchRevision)
	for message := range rawjson.Elements(frame) {
		m, err := jsonrpc.ParseWithin(message, depth)
		var bad *jsonrpc.ParseError
		switch {
		case errors.As(err, &bad):
			answers = append(answers, bad.Reply().Frame(bad.ID))
		case m.IsRequest():
			answers = append(answers, why.Frame(m.ID))
		}
	}
	if answers == nil {
		return [][]byte{why.Frame(nil)}
	}
	return answers
}
