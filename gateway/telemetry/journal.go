// Package telemetry records requests, notifications and usage for the UI and for metrics.
//
// Secrets are masked here. A [Journal] is stateless: records go to the registry, numbers
// to [Metrics] and to the [Meter] with its usage file. No method blocks, so read loops
// may call them. The package must not know why messages were sent or where they go.
package telemetry

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// maxBody is the maximum recorded body, in bytes.
const maxBody = 64 << 10

// Journal writes records and metrics. A nil Mask hides nothing.
type Journal struct {
	Registry *registry.Registry
	Metrics  *Metrics
	Mask     *config.Mask
	Meter    *Meter // nil: no usage
	// Profile returns the profile of a session for the sink, or ""; nil: none.
	Profile func(*downstream.Session) string

	sinksMu sync.Mutex
	sinks   atomic.Pointer[[]*Sink]
}

// Answer is the reply to a client's request.
type Answer struct {
	Body      []byte          // as sent by the server
	Shape     *rawjson.Layout // may be nil
	Edits     []rawjson.Edit  // for the client
	Parts     [][]byte        // the body as parts
	Code      int             // error code, 0 for a result
	Failed    bool            // the server did not answer
	UserAsked bool            // during the request
	UserWait  time.Duration   // for the user
	StartWait time.Duration   // for the server's start
	QueueWait time.Duration   // for a slot of the server's limit
	Tool      string          // original name, or ""
	Original  string          // the server's own name or URI, or ""
	Sent      []byte          // params as sent to the server, if they differ in more than the name
	Own       []byte          // the server's answer before repairs; nil: Body, if Answered
	Answered  bool            // the server answered; otherwise Goblin made Body
	Call      Call            // to the server
	Cause     uint64          // number of the call that created the task, or 0
	Events    []registry.RuleEvent
}

// Call is a request to a server: its id or 0, and its HTTP response or nil.
type Call interface {
	WireID() (id int64, answer *http.Response)
}

// headBuffers holds the start of answers in parts.
var headBuffers = sync.Pool{New: func() any {
	b := make([]byte, 2*maxBody)
	return &b
}}

// requestStatus treats a request whose client left as not failed.
func requestStatus(ok, cancelled, left bool, code int) (status string, _ int) {
	switch {
	case left:
		return registry.StatusLeft, 0
	case cancelled:
		return registry.StatusCancelled, 0
	}
	return StatusLabel(ok), code
}

// RecordRequest records an answered or cancelled request and returns its duration. label
// is the method in metrics, name the client's name for the target.
func (j *Journal) RecordRequest(x *downstream.Request, label, server, name string, a Answer) (took time.Duration) {
	start, client := x.Started(), x.ClientName()
	took = time.Since(start)
	ok := a.Code == 0 && !a.Failed
	cancelled, left := x.Cancelled(), x.ClientLeft()
	if cancelled || left || len(a.Events) > 0 {
		j.Metrics.addUntimed(label, server, ok)
	} else {
		j.Metrics.addRequest(label, server, ok, max(took-a.UserWait-a.StartWait, 0))
	}
	if cancelled {
		j.recordNotification(registry.ToServer, x.Number(), x.Session(), server, "notifications/cancelled", name, jsonrpc.CancelParams(x.ID(), x.CancelReason()))
	}
	body := a.Body
	size := len(a.Body)
	status, code := requestStatus(ok, cancelled, left, a.Code)
	if a.Parts != nil {
		head := headBuffers.Get().(*[]byte)
		defer headBuffers.Put(head)
		body, size = (*head)[:0], 0
		for _, p := range a.Parts {
			body = append(body, p[:min(len(p), cap(body)-len(body))]...)
			size += len(p)
		}
	}
	if len(body) <= maxBody { // as the client sees it
		if len(a.Edits) > 0 {
			body = rawjson.Splice(body, a.Edits...)
		}
		if status == StatusLabel(true) && x.Method() == "tools/call" && string(a.Shape.Get(body, "isError")) == "true" {
			status = registry.StatusToolError
		}
	}
	room := wireBuffers.Get().(*[]byte)
	defer wireBuffers.Put(room)
	*room = describeWire((*room)[:0], x, a.Call, a.Code)
	rec := registry.TrafficRecord{
		Number:       x.Number(),
		Wire:         j.Mask.Head(*room, registry.MaxWire),
		Time:         start,
		Session:      x.Session().ID(),
		Client:       client,
		Direction:    registry.ToServer,
		Server:       server,
		Method:       x.Method(),
		Name:         j.Mask.String(name),
		Original:     j.original(name, a.Original),
		Duration:     took,
		StartWait:    a.StartWait,
		QueueWait:    a.QueueWait,
		Size:         int64(size),
		Status:       status,
		Code:         code,
		UserAsked:    a.UserAsked,
		UserWait:     a.UserWait,
		Request:      j.Mask.Head(x.SentParams(), maxBody),
		Response:     j.Mask.Head(body, maxBody),
		RequestSize:  len(x.SentParams()),
		ResponseSize: size,
		Events:       j.maskEvents(a.Events),
	}
	if a.Tool != "" {
		j.Meter.Add(MeteredCallOf(&rec, a.Tool))
	}
	j.addOrigin(&rec, x, a.Cause)
	j.append(&rec, func() Bodies { return a.bodies(x, body) })
	return took
}

// maxEventText is the maximum size of the text of an event, in bytes.
const maxEventText = 1 << 10

func (j *Journal) maskEvents(events []registry.RuleEvent) []registry.RuleEvent {
	if len(events) == 0 {
		return nil
	}
	masked := slices.Clone(events)
	for i := range masked {
		masked[i].Text = string(j.Mask.Head([]byte(masked[i].Text), maxEventText))
	}
	return masked
}

// addOrigin sets the cause and, for sinks, the profile of a request.
func (j *Journal) addOrigin(rec *registry.TrafficRecord, x *downstream.Request, cause uint64) {
	if rec.Parent = cause; x.Outer() != x {
		rec.Parent = x.Outer().Number()
	}
	if j.Profile != nil && j.HasSinks() {
		rec.Profile = j.Profile(x.Session())
	}
}

// bodies returns the complete bodies of a request. body is its recorded answer, which may
// be cut.
func (a *Answer) bodies(x *downstream.Request, body []byte) Bodies {
	all := Bodies{Request: x.SentParams(), Response: body, Sent: a.Sent, Answered: a.Answered}
	switch {
	case a.Parts != nil:
		all.Response = bytes.Join(a.Parts, nil)
	case len(a.Body) > maxBody && len(a.Edits) > 0:
		all.Response = rawjson.Splice(a.Body, a.Edits...)
	}
	switch {
	case !a.Answered:
	case a.Own != nil:
		all.Answer = a.Own
	case len(a.Edits) > 0:
		all.Answer = a.Body
	}
	return all
}

// original returns the masked original name if it differs from the name.
func (j *Journal) original(name, original string) string {
	if original == name {
		return ""
	}
	return j.Mask.String(original)
}

// RecordServerRequest records a request from a server. s may be nil, as may ids and cause,
// the request that it belongs to.
func (j *Journal) RecordServerRequest(cause *downstream.Request, s *downstream.Session, server, method string, params, result []byte, err *jsonrpc.Error, start time.Time, ids *jsonrpc.RelayedIDs) {
	rec := registry.TrafficRecord{
		Time: start, Direction: registry.ToClient, Server: server, Method: method,
		Duration: time.Since(start), Status: StatusLabel(err == nil), Parent: number(cause), Number: downstream.NewNumber(),
	}
	if ids != nil {
		rec.Wire = registry.AppendWord(registry.AppendWord(nil, registry.ClientID, ids.Client()), registry.ServerID, ids.Server)
	}
	if s != nil {
		rec.Session, rec.Client = s.ID(), s.Name()
	}
	if err != nil {
		rec.Code, result = err.Code, err.Object()
		if s != nil && s.Context().Err() != nil {
			rec.Status, rec.Code = registry.StatusLeft, 0
		}
	}
	rec.Request, rec.RequestSize = j.Mask.Head(params, maxBody), len(params)
	rec.Response, rec.ResponseSize = j.Mask.Head(result, maxBody), len(result)
	rec.Size = int64(len(result))
	j.append(&rec, func() Bodies { return Bodies{Request: params, Response: result} })
}

// RecordNotification records a notification. s is nil if it reached no client.
func (j *Journal) RecordNotification(way registry.Direction, s *downstream.Session, server, method, name string, params []byte) {
	j.recordNotification(way, 0, s, server, method, name, params)
}

// RecordCausedNotification records a notification to the client of the request that
// caused it.
func (j *Journal) RecordCausedNotification(cause *downstream.Request, server, method, name string, params []byte) {
	j.recordNotification(registry.ToClient, number(cause), cause.Session(), server, method, name, params)
}

// RecordTaskNotification records a notification about a task. cause is the number of the
// call that created the task.
func (j *Journal) RecordTaskNotification(cause uint64, s *downstream.Session, server, method, task string, params []byte) {
	j.recordNotification(registry.ToClient, cause, s, server, method, task, params)
}

func (j *Journal) recordNotification(way registry.Direction, parent uint64, s *downstream.Session, server, method, name string, params []byte) {
	rec := j.notification(way, server, method, params)
	rec.Name, rec.Parent = j.Mask.String(name), parent
	if s != nil {
		rec.Session, rec.Client = s.ID(), s.Name()
	}
	j.append(&rec, func() Bodies { return Bodies{Request: params} })
}

// number returns the number of the client's own request, or 0.
func number(cause *downstream.Request) uint64 {
	if cause == nil {
		return 0
	}
	return cause.Number()
}

func (j *Journal) notification(way registry.Direction, server, method string, params []byte) registry.TrafficRecord {
	return registry.TrafficRecord{
		Time: time.Now(), Direction: way, Server: server, Method: method,
		Status: registry.StatusNotification, Request: j.Mask.Head(params, maxBody), RequestSize: len(params),
	}
}

// maxRecipientRecords is the number of sessions with separate records of a notification.
// More share one.
const maxRecipientRecords = 20

// Receiver is a notified session, with its name for the subject.
type Receiver struct {
	Session *downstream.Session
	Name    string
}

// RecordBroadcast records one notification to several sessions.
func (j *Journal) RecordBroadcast(server, method, name string, params []byte, to []Receiver) {
	if len(to) == 0 {
		return
	}
	rec := j.notification(registry.ToClient, server, method, params)
	if len(to) > maxRecipientRecords {
		rec.Name, rec.Receivers = j.Mask.String(name), len(to)
		j.append(&rec, func() Bodies { return Bodies{Request: params} })
		return
	}
	for _, r := range to {
		rec.Session, rec.Client, rec.Name = r.Session.ID(), r.Session.Name(), j.Mask.String(r.Name)
		j.append(&rec, func() Bodies { return Bodies{Request: params} })
	}
}

// RecordLog records a notifications/message of a server.
func (j *Journal) RecordLog(server string, level slog.Level, params []byte) {
	data := rawjson.Get(params, "data")
	text, ok := rawjson.String(data)
	if !ok {
		text = string(data)
	}
	if logger := rawjson.GetString(params, "logger"); logger != "" {
		text = logger + ": " + text
	}
	j.Registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: server, Source: registry.SourceMessage, Level: level, Text: j.Mask.String(text),
	})
}
