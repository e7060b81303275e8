package export

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// maxPages is the maximum number of pages of a HAR file. Entries of further sessions have
// no page.
const maxPages = 10_000

const harTime = "2006-01-02T15:04:05.000Z07:00"

type harPage struct {
	Started string         `json:"startedDateTime"`
	ID      string         `json:"id"`
	Title   string         `json:"title"`
	Timings map[string]int `json:"pageTimings"`
}

type harEntry struct {
	Page     string      `json:"pageref,omitempty"`
	Started  string      `json:"startedDateTime"`
	Time     float64     `json:"time"`
	Request  harRequest  `json:"request"`
	Response harResponse `json:"response"`
	Cache    struct{}    `json:"cache"`
	Timings  harTimings  `json:"timings"`
	MCP      mcpFields   `json:"_mcp"`
}

type harRequest struct {
	Method      string      `json:"method"`
	URL         string      `json:"url"`
	HTTPVersion string      `json:"httpVersion"`
	Cookies     []struct{}  `json:"cookies"`
	Headers     []nameValue `json:"headers"`
	Query       []struct{}  `json:"queryString"`
	Body        harText     `json:"postData"`
	HeadersSize int         `json:"headersSize"`
	BodySize    int         `json:"bodySize"`
}

type harText struct {
	Mime string `json:"mimeType"`
	Text string `json:"text"`
}

type harContent struct {
	Size int    `json:"size"`
	Mime string `json:"mimeType"`
	Text string `json:"text,omitempty"`
}

type harResponse struct {
	Status      int         `json:"status"`
	StatusText  string      `json:"statusText"`
	HTTPVersion string      `json:"httpVersion"`
	Cookies     []struct{}  `json:"cookies"`
	Headers     []nameValue `json:"headers"`
	Content     harContent  `json:"content"`
	Redirect    string      `json:"redirectURL"`
	HeadersSize int         `json:"headersSize"`
	BodySize    int         `json:"bodySize"`
}

// harTimings holds milliseconds. -1 is unknown.
type harTimings struct {
	Blocked float64 `json:"blocked"`
	DNS     float64 `json:"dns"`
	Connect float64 `json:"connect"`
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
	SSL     float64 `json:"ssl"`
}

// mcpFields is the member _mcp of an entry. Durations are in milliseconds.
type mcpFields struct {
	Type      recording.Type  `json:"type"`
	Number    uint64          `json:"n,omitempty"`
	Parent    uint64          `json:"parent,omitempty"`
	Session   string          `json:"session,omitempty"`
	Client    string          `json:"client,omitempty"`
	Profile   string          `json:"profile,omitempty"`
	Server    string          `json:"server,omitempty"`
	Direction string          `json:"direction"` // "server" or "client": the receiver
	Method    string          `json:"method"`
	Name      string          `json:"name,omitempty"`
	Original  string          `json:"original,omitempty"`
	ClientID  json.RawMessage `json:"clientId,omitempty"`
	ServerID  json.RawMessage `json:"serverId,omitempty"`
	Outcome   string          `json:"outcome,omitempty"`
	Code      int             `json:"code,omitempty"`
	StartWait float64         `json:"startWait,omitempty"`
	QueueWait float64         `json:"queueWait,omitempty"`
	UserWait  float64         `json:"userWait,omitempty"`
	Receivers int             `json:"receivers,omitempty"`

	Rules []registry.RuleEvent `json:"rules,omitempty"`
	// ServerRequest and ServerResponse are the headers between Goblin and the server.
	ServerRequest  []nameValue `json:"serverRequestHeaders,omitempty"`
	ServerResponse []nameValue `json:"serverResponseHeaders,omitempty"`
}

func writeHAR(k *walker, w io.Writer) error {
	list := listWriter{w: w}
	pages := map[string]*harPage{}
	k.onOther = func(l *recording.Line) error {
		if l.Type == recording.TypeClient {
			addPage(pages, l, cmp.Or(l.Client, "client")+" "+l.ClientVersion)
		}
		return nil
	}
	creator := encode(nameVersion{"Goblin", cmp.Or(k.options.Version, "unknown")})
	list.raw(`{"log":{"version":"1.2","creator":` + string(creator) + `,"comment":"MCP traffic; fields of MCP are in _mcp","entries":[`)
	err := k.each(func(e *exchange) error {
		if e.Session != "" {
			addPage(pages, e.Line, cmp.Or(e.Client, "client"))
		}
		entry := newHAREntry(e)
		if pages[e.Session] != nil {
			entry.Page = pages[e.Session].ID
		}
		return list.add(entry)
	})
	if err != nil {
		return err
	}
	all := make([]*harPage, 0, len(pages))
	for _, p := range pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *harPage) int { return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID)) })
	list.raw(`],"pages":` + string(encode(all)) + "}}\n")
	return list.err
}

type nameVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func addPage(pages map[string]*harPage, l *recording.Line, title string) {
	if l.Session == "" || pages[l.Session] != nil || len(pages) == maxPages {
		return
	}
	pages[l.Session] = &harPage{
		Started: l.Time.Format(harTime), ID: l.Session, Title: title + " (session " + l.Session + ")",
		Timings: map[string]int{"onContentLoad": -1, "onLoad": -1},
	}
}

func newHAREntry(e *exchange) harEntry {
	request := e.message()
	response := e.response()
	blocked := min(e.StartWait+e.QueueWait, e.Took)
	entry := harEntry{
		Started: e.Time.Format(harTime), Time: e.Took, MCP: newMCPFields(e),
		Timings: harTimings{Blocked: -1, DNS: -1, Connect: -1, SSL: -1, Wait: e.Took - blocked},
		Request: harRequest{
			Method: "POST", URL: pseudoURL(e.Line), HTTPVersion: "HTTP/1.1", Cookies: []struct{}{}, Query: []struct{}{},
			Body: harText{Mime: "application/json", Text: string(request)}, HeadersSize: -1, BodySize: len(request),
		},
		Response: harResponse{
			HTTPVersion: "HTTP/1.1", Cookies: []struct{}{}, HeadersSize: -1, BodySize: -1,
			Content: harContent{Size: len(response), Mime: "application/json", Text: string(response)},
		},
	}
	if blocked > 0 {
		entry.Timings.Blocked = blocked
	}
	if response != nil {
		entry.Response.BodySize = len(response)
	}
	first, headers := e.headers(registry.FromClient)
	entry.Request.Headers = headers
	if len(first) > 2 {
		entry.Request.Method, entry.Request.HTTPVersion = first[0], first[len(first)-1]
	}
	entry.Response.Status, entry.Response.StatusText = harStatus(e)
	first, entry.Response.Headers = e.headers(registry.WireToClient)
	if len(first) > 1 {
		entry.Response.HTTPVersion = first[0]
	}
	return entry
}

// harStatus returns a status of HTTP for the outcome, so that browsers mark failures.
func harStatus(e *exchange) (status int, text string) {
	switch kind, failed := e.failed(); {
	case e.isUnanswered():
		return 0, "running"
	case e.isNotification():
		return 202, "Accepted"
	case !failed:
		return 200, "OK"
	case kind == "cancelled", kind == "client_disconnected":
		return 499, e.Outcome
	case e.Code != 0:
		return 500, "JSON-RPC error " + strconv.Itoa(e.Code)
	}
	return 500, e.Outcome
}

func newMCPFields(e *exchange) mcpFields {
	m := mcpFields{
		Type: e.Type, Number: e.Number, Parent: e.Parent, Session: e.Session, Client: e.Client, Profile: e.Profile, Server: e.Server,
		Direction: "server", Method: e.Method, Name: e.Name, Original: e.Original,
		ClientID: e.idAt(registry.ClientID), ServerID: e.idAt(registry.ServerID), Outcome: e.Outcome, Code: e.Code,
		StartWait: e.StartWait, QueueWait: e.QueueWait, UserWait: e.UserWait, Receivers: e.Receivers, Rules: e.Rules,
	}
	if e.toClient() {
		m.Direction = "client"
	}
	_, m.ServerRequest = e.headers(registry.WireToServer)
	_, m.ServerResponse = e.headers(registry.FromServer)
	return m
}

// pseudoURL returns the same URL for the same target: exchanges of most transports have
// none.
func pseudoURL(l *recording.Line) string {
	path := "/" + url.PathEscape(cmp.Or(l.Server, "goblin")) + "/" + l.Method
	if l.Name != "" {
		path += "/" + url.PathEscape(l.Name)
	}
	return (&url.URL{Scheme: "http", Host: "goblin.local", Path: unescaped(path), RawPath: path}).String()
}

func unescaped(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil { // a method with a stray %
		return path
	}
	return plain
}

// listWriter writes the elements of a JSON array. It keeps the first error.
type listWriter struct {
	w    io.Writer
	some bool
	err  error
}

func (l *listWriter) raw(text string) {
	if l.err == nil {
		_, l.err = io.WriteString(l.w, text)
	}
}

func (l *listWriter) add(v any) error {
	text, err := json.Marshal(v) // escapes HTML, for pages
	if err != nil {
		return err
	}
	before := "\n"
	if l.some {
		before = ",\n"
	}
	l.some = true
	l.raw(before + termtext.JSON(string(text)))
	return l.err
}
