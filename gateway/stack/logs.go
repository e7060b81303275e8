package stack

import (
	"context"
	"time"

	"goblin/gateway/daemon"
	"goblin/registry"
)

const logWait = 20 * time.Second

// Logs implements [daemon.Gateway].
func (i *Stack) Logs(ctx context.Context, q daemon.LogQuery) (daemon.LogAnswer, error) {
	if err := i.checkServer(q.Server); err != nil {
		return daemon.LogAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	changes := i.registry.Watch(ctx, registry.Logs)
	answer := i.logs(&q)
	for q.Wait && len(answer.Records) == 0 && answer.Dropped == 0 {
		if _, open := <-changes; !open {
			break // the client repeats the query
		}
		q.From = answer.Next
		answer = i.logs(&q)
	}
	return answer, nil
}

func (i *Stack) logs(q *daemon.LogQuery) daemon.LogAnswer {
	journal := i.registry.Logs()
	stats := journal.Stats()
	if q.From > stats.Next {
		q.From = 1 // of the previous daemon
	}
	answer := daemon.LogAnswer{Records: []daemon.LogRecord{}, Next: max(stats.Next, 1)}
	last := min(q.Last, daemon.MaxLogs)
	if q.From == 0 && last <= 0 {
		return answer
	}
	window := journal.Window(max(q.From, 1), daemon.MaxLogs)
	for n := range window {
		r := &window[n]
		answer.Next = r.Seq + 1
		if q.Server == "" || q.Server == r.Server || q.Server == registry.Local && r.Server == "" {
			answer.Records = append(answer.Records, daemon.LogRecord{
				Time: r.Time, Level: r.Level.String(), Source: r.Source, Server: r.Server, Session: r.Session, Text: r.Text,
			})
		}
	}
	switch {
	case q.From == 0:
		answer.Records = answer.Records[max(len(answer.Records)-last, 0):]
	case len(window) > 0 && q.Server == "":
		answer.Dropped = answer.Next - q.From - uint64(len(window))
	}
	return answer
}

// Changes implements [daemon.Gateway].
func (i *Stack) Changes(_ context.Context, q daemon.ChangeQuery) (daemon.ChangeAnswer, error) {
	if err := i.checkServer(q.Server); err != nil {
		return daemon.ChangeAnswer{}, err
	}
	answer := daemon.SelectChanges(i.registry.ListChanges(), &q)
	answer.From = i.started
	return answer, nil
}
