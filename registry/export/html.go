package export

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Limits of a page. Browsers hold all of it in memory.
const (
	// MaxPageCalls is the maximum number of requests and notifications.
	MaxPageCalls = 20_000
	// maxPageBody and maxPageBodies limit one body and all, in bytes.
	maxPageBody   = 32 << 10
	maxPageBodies = 64 << 20
	maxPageEvents = 5_000
	// maxEventText and maxEventTexts limit one text of an event and all, in bytes.
	maxEventText  = 1_000
	maxEventTexts = 16 << 20
	// maxDefinition, maxDefinitions and maxEntries limit the lists of servers: bytes of
	// one definition, of all, and the number of entries of one server.
	maxDefinition  = 4 << 10
	maxDefinitions = 8 << 20
	maxEntries     = 2_000
	maxPageServers = 1_000
)

var (
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
	//go:embed page/body.html
	pageBody string
)

// pageCall is a request or notification of the page. Times are in milliseconds.
type pageCall struct {
	Kind      int     `json:"k,omitempty"` // 1 is a notification, 2 is unanswered
	Number    uint64  `json:"n,omitempty"`
	Parent    uint64  `json:"up,omitempty"`
	Start     float64 `json:"t"` // since 1970
	Took      float64 `json:"d,omitempty"`
	StartWait float64 `json:"ws,omitempty"`
	QueueWait float64 `json:"wq,omitempty"`
	UserWait  float64 `json:"wu,omitempty"`
	Session   string  `json:"s,omitempty"`
	Client    string  `json:"c,omitempty"`
	Profile   string  `json:"pr,omitempty"`
	Server    string  `json:"v,omitempty"`
	Method    string  `json:"m"`
	Name      string  `json:"nm,omitempty"`
	Original  string  `json:"og,omitempty"`
	ToClient  bool    `json:"in,omitempty"`
	Failure   string  `json:"f,omitempty"` // why it failed
	Outcome   string  `json:"o,omitempty"`
	Rules     string  `json:"ru,omitempty"` // what rules did
	ClientID  string  `json:"ic,omitempty"`
	ServerID  string  `json:"is,omitempty"`
	Receivers int     `json:"r,omitempty"`
	Params    string  `json:"p,omitempty"`
	Answer    string  `json:"a,omitempty"`
	Sizes     [2]int  `json:"z"`           // whole sizes of the bodies
	Cut       [2]bool `json:"u,omitempty"` // bodies are cut
}

type pageEvent struct {
	Time   float64  `json:"t"`
	Type   string   `json:"y"`
	Server string   `json:"v,omitempty"`
	Text   string   `json:"x"`
	What   []string `json:"w,omitempty"`
	Bad    bool     `json:"b,omitempty"`
}

type pageServer struct {
	Name      string                 `json:"name"`
	Transport string                 `json:"transport,omitempty"`
	Protocol  string                 `json:"protocol,omitempty"`
	Title     string                 `json:"title,omitempty"`
	Lists     map[string][]pageEntry `json:"lists"`
	More      int                    `json:"more,omitempty"` // entries over the limit
}

type pageEntry struct {
	Name        string `json:"n"`
	Description string `json:"x,omitempty"`
	Definition  string `json:"j,omitempty"`
}

type page struct {
	list        listWriter
	bodies      int // bytes so far
	definitions int
	calls       int
	shown       int
	events      []pageEvent
	eventTexts  int // bytes
	moreEvents  int
	servers     map[string]*pageServer
}

// writeHTML writes a page without references to other files. Its policy allows only its
// own script and style, by their hashes, and no connections. json.Marshal escapes <, >
// and & in the data, so that no text closes the script element.
func writeHTML(k *walker, w io.Writer) error {
	p := &page{list: listWriter{w: w}, events: []pageEvent{}, servers: map[string]*pageServer{}}
	k.onOther = p.note
	p.list.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '` + sourceHash(pageScript) + `'; style-src '` + sourceHash(pageStyle) + `'; base-uri 'none'; form-action 'none'">` + "\n" +
		`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n" +
		`<meta name="color-scheme" content="dark light">` + "\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>Goblin traffic</title>\n<style>" + pageStyle + "</style>\n</head>\n<body>\n" +
		pageBody + `<script type="application/json" id="data">{"calls":[`)
	err := k.each(func(e *exchange) error {
		p.calls++
		if p.shown == MaxPageCalls {
			return nil
		}
		p.shown++
		return p.list.add(p.call(e))
	})
	if err != nil {
		return err
	}
	if p.calls > p.shown {
		k.sum.Note = fmt.Sprintf("the page shows the first %d of %d requests and notifications; use a filter", p.shown, p.calls)
	}
	meta, err := json.Marshal(p.meta(k))
	if err != nil {
		return err
	}
	p.list.raw("],\n\"meta\":" + termtext.JSON(string(meta)) + "}</script>\n<script>" + pageScript + "</script>\n</body>\n</html>\n")
	return p.list.err
}

func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *page) meta(k *walker) any {
	m := struct {
		Goblin   string        `json:"goblin,omitempty"`
		Exporter string        `json:"exporter,omitempty"`
		Config   string        `json:"config,omitempty"`
		Note     string        `json:"note,omitempty"`
		Lost     int           `json:"lost,omitempty"`
		Events   []pageEvent   `json:"events"`
		More     int           `json:"moreEvents,omitempty"`
		Servers  []*pageServer `json:"servers"`
	}{
		Exporter: k.options.Version, Note: k.sum.Note, Lost: k.sum.LostLines, Events: p.events, More: p.moreEvents, Servers: []*pageServer{},
	}
	if k.header != nil {
		m.Goblin, m.Config = k.header.Goblin, k.header.Config
	}
	for _, name := range slices.Sorted(maps.Keys(p.servers)) {
		m.Servers = append(m.Servers, p.servers[name])
	}
	return m
}

func (p *page) call(e *exchange) pageCall {
	c := pageCall{
		Number: e.Number, Parent: e.Parent, Start: millis(e.Time), Took: e.Took, StartWait: e.StartWait, QueueWait: e.QueueWait, UserWait: e.UserWait,
		Session: e.Session, Client: e.Client, Profile: e.Profile, Server: e.Server, Method: e.Method, Name: e.Name, Original: e.Original,
		ToClient: e.toClient(), Outcome: e.Outcome, Rules: registry.RuleSummary(e.Rules), Receivers: e.Receivers, Sizes: [2]int{e.RequestSize, e.ResponseSize},
		ClientID: registry.WireID([]byte(e.Wire), registry.ClientID), ServerID: registry.WireID([]byte(e.Wire), registry.ServerID),
	}
	switch {
	case e.isNotification():
		c.Kind = 1
	case e.isUnanswered():
		c.Kind = 2
	}
	if kind, failed := e.failed(); failed {
		c.Failure = cmp.Or(failureText(e), kind)
	}
	c.Params, c.Cut[0] = p.body(e.params, e.paramsCut)
	c.Answer, c.Cut[1] = p.body(e.answer, e.answerCut)
	return c
}

// failureText describes a failure with the server's message.
func failureText(e *exchange) string {
	var answer struct {
		Message string `json:"message"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(e.answer, &answer) != nil {
		return e.Outcome
	}
	text := answer.Message
	if len(answer.Content) > 0 {
		text = cmp.Or(text, answer.Content[0].Text)
	}
	if e.Code != 0 {
		text = fmt.Sprintf("%d %s", e.Code, text)
	}
	return cmp.Or(termtext.Truncate(termtext.Line(text), 200), e.Outcome)
}

func (p *page) body(text []byte, cut bool) (string, bool) {
	room := min(maxPageBody, maxPageBodies-p.bodies)
	if len(text) > room {
		text, cut = []byte(termtext.Truncate(string(text[:room]), room)), true
	}
	p.bodies += len(text)
	return string(text), cut
}

func millis(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

// note collects the lines that are no requests.
func (p *page) note(l *recording.Line) error {
	e := pageEvent{Time: millis(l.Time), Type: string(l.Type), Server: l.Server}
	switch l.Type {
	case recording.TypeServer:
		p.addServer(l)
		e.Text = "connected"
	case recording.TypeState:
		e.Text, e.Bad = l.State, l.Error != ""
		if l.Error != "" {
			e.What = []string{l.Error}
		}
	case recording.TypeList:
		e.Text = fmt.Sprintf("%s changed", cmp.Or(l.List, "list"))
		for _, c := range l.Changes[:min(len(l.Changes), 100)] {
			if len(c.What) == 0 {
				e.What = append(e.What, c.Op+" "+c.Name)
			}
			for _, what := range c.What[:min(len(c.What), 20)] {
				e.What = append(e.What, c.Name+": "+what)
			}
		}
		if len(l.Changes) == 0 {
			e.What = append(e.What, fmt.Sprintf("%d added or changed, %d removed", len(l.Added), len(l.Removed)))
		}
	case recording.TypeClient:
		e.Text = cmp.Or(l.Client, "client") + " " + l.ClientVersion + " connected, session " + l.Session
	case recording.TypeClosed:
		e.Text = "session " + l.Session + " closed"
	case recording.TypeDropped:
		e.Text, e.Bad = fmt.Sprintf("%d lines were not recorded: %s", l.Count, l.Error), true
	default:
		return nil
	}
	e.Text = shorten(e.Text)
	size := len(e.Text) + len(e.Server)
	for i := range e.What {
		e.What[i] = shorten(e.What[i])
		size += len(e.What[i])
	}
	if len(p.events) == maxPageEvents || p.eventTexts+size > maxEventTexts {
		p.moreEvents++
		return nil
	}
	p.eventTexts += size
	p.events = append(p.events, e)
	return nil
}

// shorten does not keep the rest of the text in memory.
func shorten(text string) string {
	if len(text) <= maxEventText {
		return text
	}
	return strings.Clone(termtext.Truncate(text, maxEventText))
}

// addServer keeps the latest lists of a server.
func (p *page) addServer(l *recording.Line) {
	if p.servers[l.Server] == nil && len(p.servers) >= maxPageServers {
		return
	}
	s := &pageServer{Name: l.Server, Transport: shorten(l.Transport), Protocol: shorten(l.Protocol), Lists: map[string][]pageEntry{}}
	var handshake struct {
		Info struct {
			Name, Title, Version string
		} `json:"serverInfo"`
	}
	if json.Unmarshal(l.Handshake, &handshake) == nil {
		s.Title = shorten(cmp.Or(handshake.Info.Title, handshake.Info.Name) + " " + handshake.Info.Version)
	}
	n := 0
	for _, kind := range slices.Sorted(maps.Keys(l.Lists)) {
		for _, raw := range l.Lists[kind] {
			if n++; n > maxEntries || p.definitions > maxDefinitions {
				s.More++
				continue
			}
			var d struct{ Name, URI, URITemplate, Description string }
			if json.Unmarshal(raw, &d) != nil {
				continue
			}
			e := pageEntry{Name: cmp.Or(d.URI, d.URITemplate, d.Name), Description: termtext.Truncate(d.Description, 500)}
			if len(raw) <= maxDefinition {
				e.Definition = string(rawjson.OneLine(raw))
			}
			p.definitions += len(e.Name) + len(e.Description) + len(e.Definition)
			s.Lists[kind] = append(s.Lists[kind], e)
		}
	}
	p.servers[l.Server] = s
}
