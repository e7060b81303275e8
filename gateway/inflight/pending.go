package inflight

import (
	"errors"
	"slices"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// listenMethod is a request that lasts as long as its client wants notifications.
const listenMethod = "subscriptions/listen"

// Pending knows the requests that wait for their answers, and ends what a user of
// Goblin wants ended.
type Pending struct {
	Table   *Table
	Clients *Clients
	Journal *telemetry.Journal
}

// All returns the requests of all sessions, the oldest first, with secrets masked. A request
// of a script has the server of the call that it was made for.
func (w *Pending) All() []registry.InFlight {
	t, j := w.Table, w.Journal
	servers := t.servers()
	var all []registry.InFlight
	for _, s := range w.Clients.All() {
		for _, x := range s.InFlight() {
			if x.Method() == listenMethod {
				continue
			}
			all = append(all, registry.InFlight{ID: x.Key(), TrafficRecord: registry.TrafficRecord{
				Time: x.Started(), Session: s.ID(), Client: x.ClientName(), Direction: registry.ToServer,
				Wire: telemetry.DescribeTransport(x), Server: servers[x], Method: x.Method(), Name: j.Mask.String(subject(x.SentParams())), Status: registry.StatusInFlight,
				Request: j.Mask.Head(x.SentParams(), maxParams), RequestSize: len(x.SentParams()),
			}})
		}
	}
	slices.SortStableFunc(all, func(a, b registry.InFlight) int { return a.Time.Compare(b.Time) })
	return all
}

const byUser = "by the user of Goblin's screen"

// Cancel cancels a request, and says so to both sides. It is false for one that is
// not under way any more.
func (w *Pending) Cancel(session, id string) bool {
	s := w.session(session)
	if s == nil {
		return false
	}
	for _, x := range s.InFlight() {
		if x.Key() == id && x.Method() != "initialize" {
			const reason = "cancelled " + byUser
			e := jsonrpc.Errorf(jsonrpc.CodeInternal, "The request was "+reason)
			e.Data = []byte(`{"code":"CANCELLED"}`)
			return x.Cancel(reason, jsonrpc.ToolErrorFrame(x.ID(), x.Method(), x.Modern() != nil, e), e.Code)
		}
	}
	return false
}

var errDisconnected = errors.New("disconnected " + byUser)

// Disconnect ends a session. It is false for one that is not there.
func (w *Pending) Disconnect(session string) bool {
	s := w.session(session)
	if s != nil {
		s.Close(errDisconnected)
	}
	return s != nil
}

func (w *Pending) session(id string) *downstream.Session {
	for _, s := range w.Clients.All() {
		if s.ID() == id {
			return s
		}
	}
	return nil
}

// maxParams is the number of bytes of params in the list of requests.
const maxParams = 64 << 10

// servers are those at which clients' requests are under way.
func (t *Table) servers() map[*downstream.Request]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := make(map[*downstream.Request]string)
	for _, l := range t.connections {
		for u := l.newest; u != nil; u = u.older {
			at[u.ClientRequest.Outer()] = l.Server.Name()
		}
	}
	return at
}

// subject names the object of a request in its client's words.
func subject(params []byte) string {
	for _, member := range []string{"name", "uri", "taskId"} {
		if text, ok := rawjson.String(rawjson.Get(params, member)); ok {
			return text
		}
	}
	return ""
}
