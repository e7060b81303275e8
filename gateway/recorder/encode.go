package recorder

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
)

const (
	// maxMasked is the size of the server's own bodies up to which read loops mask them,
	// in bytes. The writer masks larger ones.
	maxMasked = 8 << 10
	// maxBody is the largest recorded body in bytes. Larger ones are omitted.
	maxBody = 16 << 20
)

var lineBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, maxLineGuess)
	return &b
}}

// encodedBodies contains valid, masked JSON without line breaks, or nil.
type encodedBodies struct{ params, answer, sent, own []byte }

// inlineBodies returns the bodies of a record as they are written. It returns false if
// one takes too long for a read loop.
func inlineBodies(mask *config.Mask, rec *registry.TrafficRecord, full *telemetry.Bodies) (b encodedBodies, ok bool) {
	if len(full.Request) > recording.MaxInline || len(full.Response) > recording.MaxInline || len(full.Sent) > maxMasked || len(full.Answer) > maxMasked {
		return b, false
	}
	for _, one := range []struct {
		to        *[]byte
		masked, b []byte
	}{
		{&b.params, rec.Request, full.Request},
		{&b.answer, rec.Response, full.Response},
		{&b.sent, mask.Head(full.Sent, len(full.Sent)), full.Sent},
		{&b.own, mask.Head(full.Answer, len(full.Answer)), full.Answer},
	} {
		if len(one.b) == 0 {
			continue
		}
		if bytes.IndexByte(one.b, '\n') >= 0 || bytes.IndexByte(one.b, '\r') >= 0 {
			return b, false
		}
		if *one.to = one.masked; !bytes.Equal(one.masked, one.b) {
			*one.to = repairJSON(one.masked)
		}
	}
	return b, true
}

// repairJSON returns a masked text as JSON in one line. Hiding a number breaks the
// syntax; the body then becomes a string.
func repairJSON(masked []byte) []byte {
	if rawjson.Valid(masked) != nil {
		return rawjson.Quote(string(masked))
	}
	if bytes.IndexByte(masked, '\n') < 0 && bytes.IndexByte(masked, '\r') < 0 {
		return masked
	}
	var line bytes.Buffer
	if err := json.Compact(&line, masked); err != nil {
		return rawjson.Quote(string(masked))
	}
	return line.Bytes()
}

// appendRecord appends the line of a request or notification, equal to the JSON of
// [recording.NewLine] with bodies. It is faster than encoding/json by an order of
// magnitude, and runs on read loops.
func appendRecord(dst []byte, rec *registry.TrafficRecord, answered bool, b encodedBodies) []byte {
	kind := recording.TypeRequest
	switch rec.Status {
	case registry.StatusNotification:
		kind = recording.TypeNotification
	case registry.StatusInFlight:
		kind = recording.TypeRunning
	}
	dst = append(append(append(dst, `{"type":"`...), kind...), `","time":"`...)
	dst = append(rec.Time.UTC().AppendFormat(dst, time.RFC3339Nano), '"')
	dst = appendText(dst, "session", rec.Session)
	dst = appendText(dst, "client", rec.Client)
	dst = appendText(dst, "profile", rec.Profile)
	dst = appendText(dst, "server", rec.Server)
	dst = appendNumber(dst, "n", rec.Number)
	dst = appendNumber(dst, "parent", rec.Parent)
	if rec.Direction == registry.ToClient {
		dst = append(dst, `,"direction":"client"`...)
	}
	dst = appendText(dst, "method", rec.Method)
	dst = appendText(dst, "name", rec.Name)
	dst = appendText(dst, "original", rec.Original)
	dst = appendMillis(dst, "took", rec.Duration)
	dst = appendMillis(dst, "userWait", rec.UserWait)
	dst = appendMillis(dst, "startWait", rec.StartWait)
	dst = appendMillis(dst, "queueWait", rec.QueueWait)
	dst = appendTrue(dst, "userAsked", rec.UserAsked)
	dst = appendText(dst, "outcome", rec.Status)
	if rec.Code != 0 {
		dst = strconv.AppendInt(append(dst, `,"code":`...), int64(rec.Code), 10)
	}
	dst = appendNumber(dst, "receivers", uint64(rec.Receivers))
	dst = appendTrue(dst, "answered", answered)
	dst = appendNumber(dst, "requestSize", uint64(rec.RequestSize))
	dst = appendNumber(dst, "responseSize", uint64(rec.ResponseSize))
	dst = appendText(dst, "wire", string(rec.Wire))
	dst = appendRules(dst, rec.Events)
	dst = appendRaw(dst, "params", b.params)
	dst = appendRaw(dst, "answer", b.answer)
	dst = appendRaw(dst, "sent", b.sent)
	dst = appendRaw(dst, "own", b.own)
	return append(dst, "}\n"...)
}

func appendName(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}

func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return rawjson.AppendString(appendName(dst, name), text)
}

func appendNumber(dst []byte, name string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendUint(appendName(dst, name), n, 10)
}

func appendTrue(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(appendName(dst, name), "true"...)
}

func appendMillis(dst []byte, name string, d time.Duration) []byte {
	if d <= 0 {
		return dst
	}
	dst = strconv.AppendInt(appendName(dst, name), int64(d/time.Millisecond), 10)
	if rest := d % time.Millisecond; rest > 0 {
		dst = append(dst, '.')
		for unit := 100 * time.Microsecond; rest > 0; unit /= 10 {
			dst = append(dst, '0'+byte(rest/unit))
			rest %= unit
		}
	}
	return dst
}

func appendRules(dst []byte, events []registry.RuleEvent) []byte {
	if len(events) == 0 {
		return dst
	}
	dst = append(appendName(dst, "rules"), '[')
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"time":"`...)
		dst = append(events[i].Time.UTC().AppendFormat(dst, time.RFC3339Nano), '"')
		dst = appendNumber(dst, "rule", events[i].Rule)
		dst = appendText(dst, "text", events[i].Text)
		dst = append(appendTrue(dst, "quotes", events[i].Quotes), '}')
	}
	return append(dst, ']')
}

func appendRaw(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(appendName(dst, name), value...)
}

// appendLine appends any line, by encoding/json.
func appendLine(dst []byte, l *recording.Line) ([]byte, error) {
	to := bytes.NewBuffer(dst)
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false) // definitions stay as the server wrote them
	err := e.Encode(l)
	return to.Bytes(), err
}
