// Package export writes recorded traffic in the formats of other programs.
//
// All functions are pure: they read a stream of lines and write to an [io.Writer]. Memory
// stays constant, except for small tables of sessions, of unanswered requests (har, otlp,
// html) and of parents (otlp). The page of html is limited, see [MaxPageCalls].
//
// All content is untrusted. Each format escapes it for its reader: shell, browser, JSON,
// TypeScript and Python.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Format is a format of exported traffic.
type Format string

// Values of [Format].
const (
	HAR   Format = "har"   // HTTP Archive 1.2, for browsers
	OTLP  Format = "otlp"  // OpenTelemetry traces, OTLP/JSON
	HTML  Format = "html"  // one page with the time line
	JSONL Format = "jsonl" // a recording in one file
	Curl  Format = "curl"  // a shell script
)

// Formats returns all formats.
func Formats() []Format { return []Format{HAR, OTLP, HTML, JSONL, Curl} }

// Extension returns the suffix of file names of a format.
func (f Format) Extension() string {
	switch f {
	case OTLP:
		return ".otlp.json"
	case Curl:
		return ".sh"
	}
	return "." + string(f)
}

// Limits of running requests that are held until their answers. Further ones are missing
// if they have no answer.
const (
	maxUnanswered     = 10_000
	maxUnansweredSize = 64 << 20 // bytes of params and names
)

// maxMillis is the longest duration of an export. Damaged recordings contain longer ones.
const maxMillis = float64(100 * 365 * 24 * time.Hour / time.Millisecond)

// Line is a line of a recording.
type Line = recording.Line

// Source is a stream of recorded lines, such as a [recording.Reader].
type Source interface {
	// Next returns io.EOF after the last line. The line is valid until the next call.
	Next() (*recording.Line, error)
	// Body returns a body, from its file if necessary.
	Body(b *recording.Body) ([]byte, error)
	Close() error
}

// Options changes an export. The zero value exports everything.
type Options struct {
	// Keep selects requests and notifications. Nil selects all. Other lines always stay.
	Keep func(l *recording.Line) bool
	// NoBodies removes params, answers and error texts.
	NoBodies bool
	// URL is the endpoint of curl commands; "" means [DefaultURL].
	URL string
	// Version is this Goblin's version.
	Version string
	// Progress receives the number of lines so far, every 1,000 lines. It may be nil.
	Progress func(lines int)
}

// DefaultURL is the address of "goblin serve".
const DefaultURL = "http://127.0.0.1:7331/mcp"

// Summary describes an export.
type Summary struct {
	Requests      int `json:"requests"`
	Notifications int `json:"notifications"`
	Unanswered    int `json:"unanswered"`    // requests without an answer, part of Requests
	MissingBodies int `json:"missingBodies"` // bodies whose files are missing or damaged
	CutBodies     int `json:"cutBodies"`     // bodies of which only the beginning is known
	LostLines     int `json:"lostLines"`     // lines that the recorder dropped
	Skipped       int `json:"skipped"`       // requests that the format cannot contain
	// Note is the limit that the export reached, or "".
	Note string `json:"note,omitempty"`
}

// Write exports the lines of a recording. open is called once, for [OTLP] twice, and must
// return the same lines each time.
func Write(ctx context.Context, w io.Writer, f Format, open func() (Source, error), o Options) (Summary, error) {
	write := map[Format]func(*walker, io.Writer) error{HAR: writeHAR, OTLP: writeOTLP, HTML: writeHTML, JSONL: writeJSONL, Curl: writeCurl}[f]
	if write == nil {
		return Summary{}, fmt.Errorf("unknown format %q; choose one of %v", f, Formats())
	}
	k := &walker{ctx: ctx, open: open, options: o}
	out := &errWriter{w: w}
	err := write(k, out)
	if err == nil {
		err = out.err
	}
	return k.sum, err
}

// errWriter keeps the first error, so that formats check it once.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.w.Write(p)
	e.err = err
	return n, err
}

// exchange is a request or notification with its bodies. Its Number and Parent are unique
// in the export, because files of several processes get different ranges.
type exchange struct {
	*recording.Line
	params, answer []byte // nil if they are missing
	paramsCut      bool   // params are the beginning of JSON
	answerCut      bool
}

func (e *exchange) isNotification() bool { return e.Type == recording.TypeNotification }
func (e *exchange) isUnanswered() bool   { return e.Type == recording.TypeRunning }
func (e *exchange) toClient() bool       { return e.Direction != "" }

// size returns the approximate memory of a running request, in bytes.
func (e *exchange) size() int {
	n := len(e.params) + len(e.answer)
	for _, b := range []*recording.Body{e.Params, e.Answer, e.Sent, e.Own} {
		if b != nil {
			n += len(b.JSON)
		}
	}
	for _, text := range []string{e.Session, e.Client, e.Profile, e.Server, e.Method, e.Name, e.Original, e.Wire} {
		n += len(text)
	}
	return n
}

func (e *exchange) end() time.Time { return e.Time.Add(duration(e.Took)) }

// failed reports whether a request failed, and how: a code of JSON-RPC or a short word.
func (e *exchange) failed() (kind string, failed bool) {
	switch {
	case e.isNotification(), e.isUnanswered(), e.Outcome == "success" && e.Code == 0:
		return "", false
	case e.toClient() && e.Method == "roots/list" && e.Code == -32601: // the client has no roots
		return "", false
	case e.Code != 0:
		return fmt.Sprint(e.Code), true
	case e.Outcome == "tool error":
		return "tool_error", true
	case e.Outcome == "cancelled":
		return "cancelled", true
	case e.Outcome == "client left":
		return "client_disconnected", true
	}
	return "_OTHER", true
}

func duration(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)) // at most maxMillis
}

// walker reads the lines of an export.
type walker struct {
	ctx     context.Context
	open    func() (Source, error)
	options Options
	sum     Summary

	src        Source
	header     *recording.Line // the first one
	started    time.Time       // of the current file's process
	base, last uint64          // Numbers of the current process are above base
	running    map[uint64]*exchange
	held       int                         // bytes of running
	onOther    func(*recording.Line) error // gets lines without Number; may be nil
}

// each calls do for each selected request and notification, unanswered requests last.
func (k *walker) each(do func(*exchange) error) error {
	k.running, k.held = map[uint64]*exchange{}, 0
	err := k.lines(func(l *recording.Line) error {
		if l.Type == recording.TypeRequest {
			k.release(l.Number)
		}
		e := k.load(l)
		if l.Type == recording.TypeRunning {
			k.hold(e)
			return nil
		}
		k.count(e)
		return do(e)
	})
	if err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(k.running)) {
		k.count(k.running[n])
		if err := do(k.running[n]); err != nil {
			return err
		}
	}
	return nil
}

// hold keeps a running request until its answer.
func (k *walker) hold(e *exchange) {
	k.release(e.Number)
	if len(k.running) >= maxUnanswered || k.held+e.size() > maxUnansweredSize {
		k.sum.Note = "some unanswered requests are missing"
		return
	}
	k.held += e.size()
	k.running[e.Number] = e
}

func (k *walker) release(number uint64) {
	if e := k.running[number]; e != nil {
		k.held -= e.size()
		delete(k.running, number)
	}
}

func (k *walker) count(e *exchange) {
	switch {
	case e.isNotification():
		k.sum.Notifications++
		return
	case e.isUnanswered():
		k.sum.Unanswered++
	}
	k.sum.Requests++
}

// lines calls do for each selected line with a Number or of a notification, and onOther
// for the others.
func (k *walker) lines(do func(*recording.Line) error) (err error) {
	if k.src, err = k.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.src.Close()) }()
	k.header, k.base, k.last, k.started = nil, 0, 0, time.Time{}
	for n := 1; ; n++ {
		l, err := k.src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = k.ctx.Err()
		}
		if err != nil {
			return err
		}
		if k.options.Progress != nil && n%1000 == 0 {
			k.options.Progress(n)
		}
		if err := k.line(l, do); err != nil {
			return err
		}
	}
}

func (k *walker) line(l *recording.Line, do func(*recording.Line) error) error {
	switch l.Type {
	case recording.TypeRequest, recording.TypeRunning, recording.TypeNotification:
		keep := k.options.Keep == nil || k.options.Keep(l)
		k.renumber(l)
		if !keep {
			if l.Type == recording.TypeRequest {
				k.release(l.Number)
			}
			return nil
		}
		return do(l)
	case recording.TypeRecording:
		if k.header == nil {
			k.header = l
		}
		if l.Started.IsZero() || !l.Started.Equal(k.started) {
			k.base, k.started = k.last, l.Started
		}
	case recording.TypeDropped:
		k.sum.LostLines += max(l.Count, 0)
	}
	if k.onOther != nil {
		return k.onOther(l)
	}
	return nil
}

func (k *walker) renumber(l *recording.Line) {
	if l.Number > math.MaxUint64/2 || l.Parent > math.MaxUint64/2 { // damaged
		l.Number, l.Parent = 0, 0
	}
	if l.Number > 0 {
		l.Number += k.base
		k.last = max(k.last, l.Number)
	}
	if l.Parent > 0 {
		l.Parent += k.base
	}
}

// load reads the bodies of a line.
func (k *walker) load(l *recording.Line) *exchange {
	e := &exchange{Line: l}
	for _, ms := range []*float64{&l.Took, &l.StartWait, &l.QueueWait, &l.UserWait} {
		*ms = min(max(*ms, 0), maxMillis)
	}
	if k.options.NoBodies {
		l.Params, l.Answer, l.Sent, l.Own, l.Error = nil, nil, nil, nil, ""
		l.Rules = registry.WithoutQuotes(l.Rules)
		return e
	}
	e.params, e.paramsCut = k.body(l.Params)
	e.answer, e.answerCut = k.body(l.Answer)
	return e
}

func (k *walker) body(b *recording.Body) (text []byte, cut bool) {
	if b == nil {
		return nil, false
	}
	text, err := k.src.Body(b)
	if err != nil {
		k.sum.MissingBodies++
		return nil, false
	}
	if len(text) == 0 {
		return nil, false
	}
	if cut = !json.Valid(text); cut {
		k.sum.CutBodies++
	}
	return text, cut
}

// message returns the JSON-RPC request with params, or the notification.
func (e *exchange) message() []byte {
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}{"2.0", e.id(), e.Method, whole(e.params, e.paramsCut)})
}

// response returns the JSON-RPC response, or nil without one.
func (e *exchange) response() []byte {
	body := whole(e.answer, e.answerCut)
	if body == nil || e.isNotification() || e.isUnanswered() {
		return nil
	}
	r := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}{Version: "2.0", ID: e.id()}
	if isErrorObject(body, e.Code) {
		r.Error = body
	} else {
		r.Result = body
	}
	return encode(r)
}

func whole(body []byte, cut bool) json.RawMessage {
	if cut {
		return nil
	}
	return body
}

func isErrorObject(body []byte, code int) bool {
	if code != 0 {
		return true
	}
	var e struct {
		Code    *int    `json:"code"`
		Message *string `json:"message"`
	}
	return json.Unmarshal(body, &e) == nil && e.Code != nil && e.Message != nil
}

// encode returns JSON without characters that terminals interpret, on one line.
func encode(v any) []byte {
	text, err := termtext.EncodeJSON(v, "")
	if err != nil { // a part is not JSON, which load rules out
		return []byte("null")
	}
	return []byte(text)
}
