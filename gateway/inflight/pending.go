package inflight

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// listenMethod is excluded: it stays open as long as its client wants notifications.
const listenMethod = "subscriptions/listen"

// Pending lists requests in flight, and cancels requests or disconnects sessions for the
// user.
type Pending struct {
	Table   *Table
	Clients *Clients
	Journal *telemetry.Journal
	// Stops calls f with each request that waits for a decision of the user; nil: none.
	Stops func(f func(number uint64, server string, waited time.Duration))
}

// All returns the requests of all sessions, the oldest first, with secrets masked. A
// script's request has the server of the call that it was made for.
func (w *Pending) All() []registry.InFlight {
	t, j := w.Table, w.Journal
	waits := t.waits()
	stopped := w.stopped()
	var all []registry.InFlight
	for _, s := range w.Clients.All() {
		for _, x := range s.InFlight() {
			if x.Method() == listenMethod {
				continue
			}
			at := waits[x]
			if s, ok := stopped[x.Number()]; ok {
				at = wait{cmp.Or(at.server, s.server), at.user + s.user}
			}
			all = append(all, registry.InFlight{ID: x.Key(), TrafficRecord: registry.TrafficRecord{
				Number: x.Number(),
				Time:   x.Started(), Session: s.ID(), Client: x.ClientName(), Direction: registry.ToServer,
				Wire: telemetry.DescribeTransport(x), Server: at.server, UserWait: at.user, UserAsked: at.user > 0, Method: x.Method(), Name: j.Mask.String(subject(x.SentParams())), Status: registry.StatusInFlight,
				Request: j.Mask.Head(x.SentParams(), maxParams), RequestSize: len(x.SentParams()),
			}})
		}
	}
	slices.SortStableFunc(all, func(a, b registry.InFlight) int { return a.Time.Compare(b.Time) })
	return all
}

func (w *Pending) stopped() map[uint64]wait {
	all := make(map[uint64]wait)
	if w.Stops != nil {
		w.Stops(func(number uint64, server string, waited time.Duration) {
			all[number] = wait{server, max(waited, all[number].user)}
		})
	}
	return all
}

const byUser = "by the user in Goblin's UI"

// Cancel cancels a request and notifies both sides. It returns false if the request is no
// longer in flight.
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

// Disconnect closes a session. It returns false if the session is unknown.
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

const maxParams = 64 << 10

// wait is the server that a request waits for, and the time that users were prompted.
type wait struct {
	server string
	user   time.Duration
}

func (t *Table) waits() map[*downstream.Request]wait {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := make(map[*downstream.Request]wait)
	for _, l := range t.connections {
		for u := l.newest; u != nil; u = u.older {
			x := u.ClientRequest.Outer()
			at[x] = wait{l.Server.Name(), max(at[x].user, u.PromptTime())}
		}
	}
	return at
}

func subject(params []byte) string {
	for _, member := range []string{"name", "uri", "taskId"} {
		if text, ok := rawjson.String(rawjson.Get(params, member)); ok {
			return text
		}
	}
	return ""
}
