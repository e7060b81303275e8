package recording

import (
	"time"

	"goblin/registry"
)

const toClient = "client"

// NewLine returns the line of a request or notification, without bodies.
func NewLine(rec *registry.TrafficRecord) Line {
	l := Line{
		Type: TypeRequest, Time: rec.Time, Number: rec.Number, Parent: rec.Parent,
		Session: rec.Session, Client: rec.Client, Profile: rec.Profile, Server: rec.Server,
		Method: rec.Method, Name: rec.Name, Original: rec.Original,
		Took: millis(rec.Duration), UserWait: millis(rec.UserWait), StartWait: millis(rec.StartWait), QueueWait: millis(rec.QueueWait),
		UserAsked: rec.UserAsked, Outcome: rec.Status, Code: rec.Code, Receivers: rec.Receivers,
		RequestSize: rec.RequestSize, ResponseSize: rec.ResponseSize, Wire: string(rec.Wire), Rules: rec.Events,
	}
	if rec.Direction == registry.ToClient {
		l.Direction = toClient
	}
	switch rec.Status {
	case registry.StatusNotification:
		l.Type = TypeNotification
	case registry.StatusInFlight:
		l.Type = TypeRunning
	}
	return l
}

// Record returns the request or notification of a line. Bodies in files are nil.
func (l *Line) Record() registry.TrafficRecord {
	rec := registry.TrafficRecord{
		Time: l.Time, Number: l.Number, Parent: l.Parent,
		Session: l.Session, Client: l.Client, Profile: l.Profile, Server: l.Server,
		Method: l.Method, Name: l.Name, Original: l.Original,
		Duration: duration(l.Took), UserWait: duration(l.UserWait), StartWait: duration(l.StartWait), QueueWait: duration(l.QueueWait),
		UserAsked: l.UserAsked, Status: l.Outcome, Code: l.Code, Receivers: l.Receivers,
		RequestSize: l.RequestSize, ResponseSize: l.ResponseSize, Size: int64(l.ResponseSize), Wire: []byte(l.Wire), Events: l.Rules,
	}
	if l.Direction == toClient {
		rec.Direction = registry.ToClient
	}
	if l.Params != nil {
		rec.Request = l.Params.JSON
	}
	if l.Answer != nil {
		rec.Response = l.Answer.JSON
	}
	return rec
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func duration(ms float64) time.Duration {
	const most = float64(1 << 62)
	if ns := ms * float64(time.Millisecond); ns > 0 && ns < most {
		return time.Duration(ns)
	}
	return 0
}
