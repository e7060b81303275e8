package export

import (
	"io"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
)

// records is a source of traffic records.
type records struct {
	before []recording.Line
	n      int
	get    func(i int) (registry.TrafficRecord, bool)
	next   int
}

// NewRecords returns a source of n traffic records after the lines before. get returns
// false for a record that was evicted meanwhile.
func NewRecords(before []recording.Line, n int, get func(i int) (registry.TrafficRecord, bool)) Source {
	return &records{before: before, n: n, get: get}
}

// NewLines returns a source of lines.
func NewLines(all []recording.Line) Source { return &records{before: all} }

func (r *records) Next() (*recording.Line, error) {
	if len(r.before) > 0 {
		l := r.before[0]
		r.before = r.before[1:]
		return &l, nil
	}
	for r.next < r.n {
		rec, ok := r.get(r.next)
		r.next++
		if !ok {
			continue
		}
		l := recording.NewLine(&rec)
		l.Answered = rec.Server != "" && l.Type == recording.TypeRequest
		l.Params, l.Answer = bodyOf(rec.Request), bodyOf(rec.Response)
		return &l, nil
	}
	return nil, io.EOF
}

func bodyOf(text []byte) *recording.Body {
	if len(text) == 0 {
		return nil
	}
	return &recording.Body{JSON: text, Size: len(text)}
}

func (r *records) Body(b *recording.Body) ([]byte, error) { return b.JSON, nil }
func (r *records) Close() error                           { return nil }

// Origin returns the lines that precede the records of a running gateway: a header, and
// the servers and sessions. It contains no lists, which may hold secrets.
func Origin(r *registry.Registry, now time.Time) []recording.Line {
	all := []recording.Line{{Type: recording.TypeRecording, Time: now, Version: recording.Version, Bodies: true}}
	for _, s := range r.States() {
		handshake := encode(map[string]any{"serverInfo": map[string]string{"name": s.ServerName, "title": s.ServerTitle, "version": s.ServerVersion}, "protocolVersion": s.ProtocolVersion})
		all = append(all, recording.Line{Type: recording.TypeServer, Time: now, Server: s.Name, Transport: s.Transport, Protocol: s.ProtocolVersion, Handshake: handshake})
	}
	for _, s := range r.Sessions() {
		if !s.Screen {
			all = append(all, recording.Line{Type: recording.TypeClient, Time: s.Since, Session: s.ID, Client: s.Client, ClientVersion: s.Version, Transport: s.Transport, Protocol: s.Protocol})
		}
	}
	return all
}
