package stack

import (
	"context"

	"goblin/gateway/daemon"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

// Traffic implements [daemon.Gateway].
func (i *Stack) Traffic(ctx context.Context, q daemon.TrafficQuery) (daemon.TrafficAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	changes := i.registry.Watch(ctx, registry.Traffic)
	answer := i.traffic(&q)
	for q.Wait && len(answer.Lines) == 0 && answer.Dropped == 0 {
		if _, open := <-changes; !open {
			break // the client repeats the query
		}
		q.From = answer.Next
		answer = i.traffic(&q)
	}
	if q.Head {
		var err error
		if answer.Head, err = i.TrafficHead(); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

func (i *Stack) traffic(q *daemon.TrafficQuery) daemon.TrafficAnswer {
	journal := i.registry.Traffic()
	stats := journal.Stats()
	if q.From > stats.Next {
		q.From = 1 // of the previous daemon
	}
	answer := daemon.TrafficAnswer{Lines: []daemon.TrafficLine{}, Next: max(stats.Next, 1)}
	if q.From > 0 && stats.First > q.From {
		answer.Dropped = stats.First - q.From
	}
	window := journal.Window(max(q.From, 1), daemon.MaxTraffic+1)
	bodies := 0
	for n := range window {
		if n == daemon.MaxTraffic || bodies >= daemon.MaxTrafficBodies {
			answer.More = true
			return answer
		}
		r := &window[n]
		answer.Next = r.Seq + 1
		if q.Bodies || recording.IsFailure(r) {
			if full, ok := journal.Record(r.Seq); ok {
				r = &full
			}
		}
		bodies += len(r.Request) + len(r.Response) + len(r.Wire)
		answer.Lines = append(answer.Lines, trafficLine(r, q.Bodies))
	}
	if q.Running {
		running := i.gateway.Pending.All()
		for n := range running {
			answer.Running = append(answer.Running, trafficLine(&running[n].TrafficRecord, q.Bodies))
		}
	}
	return answer
}

func trafficLine(r *registry.TrafficRecord, bodies bool) daemon.TrafficLine {
	l := daemon.TrafficLine{Line: recording.NewLine(r)}
	l.Error = recording.ErrorText(r, r.Response)
	if bodies {
		l.Params, l.CutParams = recordedBody(r.Request)
		l.Answer, l.CutAnswer = recordedBody(r.Response)
	}
	return l
}

// recordedBody returns a body, or its beginning if it is not complete.
func recordedBody(text []byte) (whole *recording.Body, cut []byte) {
	switch {
	case len(text) == 0:
		return nil, nil
	case rawjson.Valid(text) != nil:
		return nil, text
	}
	return &recording.Body{JSON: text, Size: len(text)}, nil
}
