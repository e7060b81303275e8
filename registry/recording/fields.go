package recording

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/rawjson"
)

const (
	// maxValues is the number of values of an argument that a filter compares.
	maxValues = 1000
	// inFlightWords are all words that UIs show for a request in flight.
	inFlightWords = "waits, " + RunningText
)

// Fields returns the fields of filters of traffic. row returns a record. bodies returns
// the params and the response of a record, or their beginnings. Only terms that need
// bodies call it. Both must be safe for concurrent use if the queries are.
func Fields(row func(i int) *registry.TrafficRecord, bodies func(i int) (params, response []byte)) []query.Field {
	text := func(name, help string, value func(*registry.TrafficRecord) string, aliases ...string) query.Field {
		return query.Field{Name: name, Aliases: aliases, Kind: query.Text, Help: help, Text: func(i int) string { return value(row(i)) }}
	}
	at := func(i int) time.Time { return lastTime(row(i)) }
	return []query.Field{
		text("server", "the server", func(r *registry.TrafficRecord) string { return r.Server }, "srv"),
		text("client", "the client", func(r *registry.TrafficRecord) string { return r.Client }),
		text("method", "such as tools/call or tools/*", func(r *registry.TrafficRecord) string { return r.Method }),
		text("name", "tool, prompt or URI", func(r *registry.TrafficRecord) string { return r.Name }),
		text("dir", "in: from a client; out: from a server", func(r *registry.TrafficRecord) string { return directionWord(r.Direction) }),
		text("status", "ok, running, cancelled, client left, notification, or an error code", func(r *registry.TrafficRecord) string {
			if r.Status == registry.StatusInFlight {
				return inFlightWords
			}
			return StatusText(r)
		}),
		{Name: "err", Kind: query.YesNo, Help: "failed: yes or no", YesNo: func(i int) bool { return IsFailure(row(i)) }},
		{Name: "error", Kind: query.Text, Costly: true, Help: "the error message", Text: func(i int) string {
			if r := row(i); IsFailure(r) {
				_, response := bodies(i)
				return ErrorText(r, response)
			}
			return ""
		}},
		{Name: "ms", Kind: query.Duration, Help: "duration: >500 (ms), >1s, <=2m", Number: func(i int) float64 {
			if r := row(i); !IsNotification(r) {
				return millis(r.Duration - r.UserWait)
			}
			return math.NaN()
		}},
		{Name: "size", Kind: query.Number, Help: "bytes of the response: >10k", Number: func(i int) float64 { return float64(Size(row(i))) }},
		{Name: "since", Kind: query.Since, Help: "sent since: 10m ago, 02:06, a date, RFC 3339", Time: at},
		{Name: "at", Kind: query.Range, Help: "sent at: 02:06..02:07, 02:06.., 23:50..00:10, also with dates", Time: at},
		{Name: "arg", Kind: query.Texts, Costly: true, Path: "NAME", Help: "an argument of the call, such as arg.path:src or arg.a.b:x", Texts: func(i int, path string) []string {
			params, _ := bodies(i)
			return Arguments(params, path)
		}},
		{Name: "body", Kind: query.Texts, Costly: true, Help: "text in the recorded params or response", Texts: func(i int, _ string) []string {
			params, response := bodies(i)
			return append(plainTexts(nil, params), plainTexts(nil, response)...)
		}},
		text("rule", `what rules did, such as rule:denied; -rule:"" for anything`, func(r *registry.TrafficRecord) string { return registry.RuleSummary(r.Events) }),
		text("session", "the client's session", func(r *registry.TrafficRecord) string { return r.Session }),
	}
}

// Words returns the text of a record that words of a filter search.
func Words(r *registry.TrafficRecord) string {
	text := r.Method + " " + r.Name
	if r.Status == registry.StatusInFlight {
		text += " " + inFlightWords
	}
	return text
}

// lastTime returns the time of the last of several equal notifications.
func lastTime(r *registry.TrafficRecord) time.Time {
	if r.Count > 1 {
		return r.Last
	}
	return r.Time
}

func directionWord(d registry.Direction) string {
	if d == registry.ToClient {
		return "out"
	}
	return "in"
}

// Arguments returns the values at a path of names in a call's arguments, or in the params
// of other requests. Arrays are searched, too. "" means all values. Strings are decoded;
// other values are JSON. Without valid JSON there are none. At most 1000 are returned.
func Arguments(params []byte, path string) []string {
	if len(params) == 0 || rawjson.Valid(params) != nil {
		return nil
	}
	return (&arguments{values: maxValues, depth: maxDepth}).of(params, path)
}

// AllArguments is Arguments without limits for valid params. Rules need it: no value may
// hide another.
func AllArguments(params []byte, path string) []string {
	return (&arguments{values: math.MaxInt, depth: math.MaxInt}).of(params, path)
}

// arguments collects up to a number of values, and to a depth.
type arguments struct {
	all           []string
	values, depth int
}

func (a *arguments) of(params []byte, path string) []string {
	if args := rawjson.Get(params, "arguments"); args != nil {
		params = args
	}
	a.collect(params, path, 0)
	return a.all
}

func (a *arguments) collect(value []byte, path string, depth int) {
	switch {
	case len(a.all) >= a.values || depth > a.depth:
	case rawjson.IsArray(value):
		for e := range rawjson.Elements(value) {
			a.collect(e, path, depth+1)
		}
	case rawjson.IsObject(value):
		if path == "" && depth > 0 {
			a.all = append(a.all, string(value))
		}
		for key, v := range rawjson.Members(value) {
			name := string(key.Name())
			if path == "" || path == name {
				a.collect(v, "", depth+1)
			} else if rest, ok := strings.CutPrefix(path, name+"."); ok {
				a.collect(v, rest, depth+1)
			}
		}
	case path == "":
		if s, ok := rawjson.String(value); ok {
			a.all = append(a.all, s)
		} else {
			a.all = append(a.all, string(value))
		}
	}
}

// plainTexts appends a body, and its text without the escapes of JSON if it has some.
func plainTexts(all []string, body []byte) []string {
	if len(body) == 0 {
		return all
	}
	text := string(body)
	all = append(all, text)
	if strings.IndexByte(text, '\\') < 0 {
		return all
	}
	return append(all, unescaped(text))
}

// unescaped replaces the escapes of JSON strings in a text that may be cut.
func unescaped(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for {
		before, rest, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if !found || rest == "" {
			return b.String()
		}
		n := 1
		switch rest[0] {
		case 'n', 'r', 't', 'b', 'f':
			b.WriteByte(' ')
		case 'u':
			var r rune
			r, n = escapedRune(rest)
			b.WriteRune(r)
		default:
			b.WriteByte(rest[0])
		}
		text = rest[n:]
	}
}

// escapedRune decodes text that begins with uXXXX, and a following surrogate.
func escapedRune(s string) (r rune, n int) {
	hex := func(s string) (rune, bool) {
		if len(s) < 5 || s[0] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(s[1:5], 16, 16)
		return rune(v), err == nil
	}
	r, ok := hex(s)
	switch {
	case !ok:
		return utf8.RuneError, 1
	case utf16.IsSurrogate(r) && len(s) > 5 && s[5] == '\\':
		low, _ := hex(s[6:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 11
		}
		return utf8.RuneError, 5
	}
	return r, 5
}
