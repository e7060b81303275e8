package replay

import (
	"context"
	"fmt"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Recorded tasks (2025-11-25) are replayed like all requests: their ids are in the
// recorded answers. For clients without tasks, the gateway may run a tool as a task. Only
// its final answer is recorded, so the task is made here.

// maxTasks is the number of tasks that are made. They are never removed.
const maxTasks = 10_000

type task struct {
	call    *call
	created time.Time
	done    chan struct{}
	cancel  context.CancelFunc
}

func (s *session) createdTask(c *call) bool {
	text, err := s.store.get(c.answer)
	return err != nil || c.isError || rawjson.Path(text, "task", taskMember) != nil
}

// startTask answers with a task and plays the call meanwhile.
func (s *session) startTask(x *exchange, c *call) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.states++
	id := fmt.Sprintf("goblin-replay-%d", s.states)
	t := &task{call: c, created: time.Now(), done: make(chan struct{}), cancel: cancel}
	full := len(s.tasks) >= maxTasks
	if !full {
		s.tasks[id] = t
	}
	s.mu.Unlock()
	if full {
		cancel()
		s.answer(x, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "more than %d tasks", maxTasks))
		return
	}
	s.answer(x, rawjson.SetMember([]byte("{}"), "task", t.state(id, "working")), nil)
	s.running.Go(func() {
		defer cancel()
		defer close(t.done)
		for i := range c.steps {
			if !s.sleep(ctx, c.steps[i].wait) {
				return
			}
			s.perform(ctx, x, &c.steps[i])
		}
		s.sleep(ctx, c.wait)
	})
}

// handleTask answers a request about a task that was made here.
func (s *session) handleTask(x *exchange) bool {
	id := rawjson.GetString(x.params, taskMember)
	s.mu.Lock()
	t := s.tasks[id]
	s.mu.Unlock()
	if t == nil {
		return false
	}
	switch x.method {
	case "tasks/result":
		s.spawn(x, func(ctx context.Context) {
			select {
			case <-t.done:
				s.sendAnswer(x, t.call)
			case <-ctx.Done():
			}
		})
	case "tasks/cancel":
		t.cancel()
		s.answer(x, t.state(id, "cancelled"), nil)
	case "tasks/get":
		status := "completed"
		select {
		case <-t.done:
		default:
			status = "working"
		}
		s.answer(x, t.state(id, status), nil)
	default:
		return false
	}
	return true
}

func (t *task) state(id, status string) []byte {
	at := t.created.UTC().Format(time.RFC3339)
	state := rawjson.Object(taskMember, id, "status", status, "createdAt", at, "lastUpdatedAt", at)
	return rawjson.SetMember(rawjson.SetMember(state, "ttl", []byte("null")), "pollInterval", []byte("100"))
}
