package archive

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goblin/gateway"
	"goblin/gateway/config"
	"goblin/gateway/policy"
	"goblin/gateway/telemetry"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Kinds are the names of lists in recordings.
var kinds = map[string]registry.Kind{
	"tools": registry.Tool, "prompts": registry.Prompt, "resources": registry.Resource,
	"templates": registry.Template, "skills": registry.Skill,
}

// loader applies lines to a registry.
type loader struct {
	o       Options
	reader  *recording.Reader
	archive *Archive
	reg     *registry.Registry
	at      time.Time // of the current line
	servers []string
	added   int // servers that the last settings do not name
	states  map[string]registry.ServerState
	running map[uint64]registry.InFlight
	size    int             // bytes of running
	omitted map[string]bool // reported kinds of omitted lines
	filter  *recording.Filter
	now     time.Time // of the filter
	file    string    // of the current line
	line    int
}

func newLoader(path string, r *recording.Reader, header *recording.Line, o Options) *loader {
	if o.Requests <= 0 {
		o.Requests = DefaultRequests
	}
	a := &Archive{Name: filepath.Base(path), Bodies: header.Bodies, details: make(map[string]recording.Line), large: make(map[uint64]largeBodies)}
	l := &loader{o: o, reader: r, archive: a, states: make(map[string]registry.ServerState), running: make(map[uint64]registry.InFlight), omitted: make(map[string]bool), now: time.Now()}
	cfg, err := parseSettings(header.Settings)
	if err != nil {
		cfg = &config.Config{}
		a.Problems = append(a.Problems, recording.Problem{File: a.Name, Line: 1, Text: err.Error() + "; names may differ from the recorded ones"})
	}
	options := gateway.RegistryOptions(cfg)
	options.Now = func() time.Time { return l.at }
	options.Traffic = registry.TrafficLimits{Requests: o.Requests, Notifications: maxNotifications, Bodies: maxBodies}
	options.CompleteBodies = a.completeBodies
	a.config, l.servers = cfg, options.Servers
	l.reg = registry.New(options)
	a.Registry = l.reg
	a.views = view.New(l.reg, nil, cfg)
	a.meter = telemetry.OpenMeter(telemetry.MeterOptions{Now: func() time.Time { return a.End }, Listed: a.listedTools})
	for _, name := range l.servers {
		if s, ok := cfg.Server(name); ok && s.Disabled {
			l.setState(name, registry.StateDisabled, "")
		}
	}
	return l
}

// add applies one line. folder holds the bodies of its file.
func (l *loader) add(line *recording.Line, folder string) {
	a := l.archive
	if !line.Time.IsZero() {
		line.Time = line.Time.Local()
		l.at = line.Time
		if line.Type != recording.TypeClient && (a.Start.IsZero() || line.Time.Before(a.Start)) { // clients connected earlier
			a.Start = line.Time
		}
	}
	end := line.Time
	if line.Took > 0 {
		rec := line.Record()
		end = end.Add(rec.Duration)
	}
	if end.After(a.End) {
		a.End = end
	}
	switch line.Type {
	case recording.TypeRecording:
		l.header(line)
	case recording.TypeServer:
		l.server(line)
	case recording.TypeState:
		l.addServer(line.Server)
		l.setState(line.Server, registry.State(line.State), line.Error)
	case recording.TypeList:
		l.list(line)
	case recording.TypeClient:
		if _, known := a.details[line.Session]; !known && len(a.details) >= maxSessions {
			l.omit("sessions", fmt.Sprintf("more than %s sessions at once", termtext.FormatCount(maxSessions)))
			return
		}
		l.reg.SetSession(registry.Session{ID: line.Session, Transport: line.Transport, Client: line.Client, Version: line.ClientVersion, Protocol: line.Protocol, Screen: line.Transport == screenTransport, Since: line.Time})
		a.details[line.Session] = recording.Line{Profile: line.Profile}
	case recording.TypeClosed:
		l.closeSession(line.Session)
	case recording.TypeRequest, recording.TypeNotification, recording.TypeRunning:
		l.traffic(line, folder)
	case recording.TypeDropped:
		a.Lost += line.Count
		a.log(line.Time, slog.LevelWarn, fmt.Sprintf("%s not recorded: %s", termtext.Count(line.Count, "event"), line.Error))
	case recording.TypeEnd:
		if line.Error != "" {
			a.log(line.Time, slog.LevelError, "the recording stopped: "+line.Error)
		}
	}
}

// header begins a file. It is followed by the current servers and sessions.
func (l *loader) header(line *recording.Line) {
	for _, s := range l.reg.Sessions() {
		l.closeSession(s.ID)
	}
	if !line.Bodies {
		l.archive.Bodies = false
	}
	if cfg, err := parseSettings(line.Settings); err == nil {
		for i := range cfg.Servers {
			l.addServer(cfg.Servers[i].Name)
		}
	}
}

func (l *loader) closeSession(id string) {
	l.reg.DropSession(id)
	delete(l.archive.details, id)
}

func (l *loader) addServer(name string) {
	if name == "" || name == registry.Local || slices.Contains(l.servers, name) {
		return
	}
	if len(l.servers) >= maxServers || l.added >= maxAdded {
		l.omit("servers", "too many servers")
		return
	}
	l.added++
	l.servers = append(l.servers, name)
	l.reg.SetServers(l.servers, l.archive.config.Overrides())
}

func (l *loader) setState(server string, state registry.State, failure string) {
	s := l.states[server]
	s.State, s.LastError, s.Since = state, failure, l.at
	if state == registry.StateReady {
		s.LastError = ""
	}
	l.states[server] = s
	l.reg.SetState(server, s)
}

func (l *loader) server(line *recording.Line) {
	l.addServer(line.Server)
	s := l.states[line.Server]
	if len(line.Handshake) > maxHandshake {
		l.omit("handshakes", "a handshake of more than "+termtext.Size(maxHandshake))
		line.Handshake = nil
	}
	info := rawjson.Get(line.Handshake, "serverInfo")
	s.Transport, s.ProtocolVersion = line.Transport, line.Protocol
	s.ServerName, s.ServerTitle, s.ServerVersion = rawjson.GetString(info, "name"), rawjson.GetString(info, "title"), rawjson.GetString(info, "version")
	s.Instructions, s.Capabilities = rawjson.GetString(line.Handshake, "instructions"), rawjson.Get(line.Handshake, "capabilities")
	s.Since, s.LastError, s.State = l.at, line.Error, registry.State(line.State)
	if line.State == "" {
		s.State = registry.StateReady
	}
	s.Listed = line.Lists != nil
	l.states[line.Server] = s
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		kind := kinds[key]
		switch items, recorded := line.Lists[key]; {
		case recorded:
			l.setList(line.Server, kind, items, false)
		case s.Listed: // empty, or not listed yet
			l.setList(line.Server, kind, nil, true)
		}
	}
	l.reg.SetState(line.Server, s)
}

// setList sets a list. first reports that its difference is no change of the server.
func (l *loader) setList(server string, kind registry.Kind, items []json.RawMessage, first bool) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return !l.permits(server, kind, item) })
	items = l.reader.Keep(server, kind.String(), items)
	all := make([][]byte, 0, len(items))
	for _, item := range items {
		all = append(all, item)
	}
	if first {
		l.reg.SetFirstList(server, kind, all)
		return
	}
	l.reg.SetList(server, kind, all)
}

// permits applies the filters of the recorded config.
func (l *loader) permits(server string, kind registry.Kind, item []byte) bool {
	s, ok := l.archive.config.Server(server)
	if !ok {
		return true
	}
	switch kind {
	case registry.Tool:
		return s.Tools.Match(rawjson.GetString(item, "name"))
	case registry.Prompt:
		return s.Prompts.Match(rawjson.GetString(item, "name"))
	case registry.Template:
		return policy.NewURIFilter(s.Resources).MatchTemplate(rawjson.GetString(item, "uriTemplate"))
	}
	return policy.NewURIFilter(s.Resources).Match(rawjson.GetString(item, "uri"))
}

// list applies the changes of a list to the server's own definitions.
func (l *loader) list(line *recording.Line) {
	kind, ok := kinds[line.List]
	if !ok || line.Server == "" {
		return
	}
	l.addServer(line.Server)
	changed := make(map[string]json.RawMessage, len(line.Added))
	for _, item := range line.Added {
		changed[ownName(kind, item)] = item
	}
	var items []json.RawMessage
	for e := range l.reg.Load().Server(line.Server, kind) {
		now, replaced := changed[e.Name]
		switch {
		case slices.Contains(line.Removed, e.Name):
		case replaced:
			items = append(items, now)
			delete(changed, e.Name)
		default:
			items = append(items, e.Own())
		}
	}
	for _, item := range line.Added {
		if _, ok := changed[ownName(kind, item)]; ok {
			items = append(items, item)
		}
	}
	from := l.reg.ListChanges().Stats().Next
	l.setList(line.Server, kind, items, len(line.Changes) == 0 && l.reg.Load().ServerCount(line.Server, kind) == 0)
	if l.reg.ListChanges().Stats().Next == from { // recorded without definitions
		// The line before may already have had the definitions.
		last := l.reg.ListChanges().Window(from-min(from, uint64(len(line.Changes))), -1)
		for _, c := range line.Changes {
			if slices.ContainsFunc(last, func(o registry.ListChange) bool {
				return o.Server == line.Server && o.Kind == kind && o.Name == c.Name && o.Op == c.Op && line.Time.Sub(o.Time) < time.Second
			}) {
				continue
			}
			l.reg.ListChanges().Append(registry.ListChange{Time: line.Time, Server: line.Server, Kind: kind, Name: c.Name, Op: c.Op, What: c.What})
		}
	}
}

func ownName(kind registry.Kind, item []byte) string {
	switch kind {
	case registry.Resource, registry.Skill:
		return rawjson.GetString(item, "uri")
	case registry.Template:
		return rawjson.GetString(item, "uriTemplate")
	}
	return rawjson.GetString(item, "name")
}

func (l *loader) traffic(line *recording.Line, folder string) {
	rec := line.Record()
	selected := !l.o.NoTraffic && l.filter.Matches(line, l.now)
	if line.Type == recording.TypeRunning {
		if !selected {
			return
		}
		rec.Status = registry.StatusInFlight
		l.addRunning(&rec)
		return
	}
	l.removeRunning(rec.Number)
	if !selected {
		return
	}
	if line.Type == recording.TypeRequest {
		l.archive.Requests++
	}
	large := largeBodies{folder: folder, params: line.Params, answer: line.Answer}
	hasLarge := l.placeholder(line.Params, &rec.Request, &rec.RequestSize, folder)
	hasLarge = l.placeholder(line.Answer, &rec.Response, &rec.ResponseSize, folder) || hasLarge
	seq := l.reg.Traffic().Append(rec)
	if hasLarge {
		l.archive.large[seq] = large
		if len(l.archive.large) > 2*l.o.Requests {
			l.dropLarge()
		}
	}
	l.side(line, &rec)
}

func (l *loader) addRunning(rec *registry.TrafficRecord) {
	l.removeRunning(rec.Number)
	n := runningSize(rec)
	if len(l.running) >= maxRunning || l.size+n > maxRunningBytes {
		l.omit("running", fmt.Sprintf("more than %s requests without an answer, or %s of them", termtext.FormatCount(maxRunning), termtext.Size(maxRunningBytes)))
		return
	}
	l.size += n
	l.running[rec.Number] = registry.InFlight{TrafficRecord: *rec, ID: fmt.Sprintf("n%d", rec.Number)}
}

func (l *loader) removeRunning(number uint64) {
	if one, ok := l.running[number]; ok {
		l.size -= runningSize(&one.TrafficRecord)
		delete(l.running, number)
	}
}

func runningSize(rec *registry.TrafficRecord) int {
	n := len(rec.Request) + len(rec.Wire)
	for _, text := range []string{rec.Session, rec.Client, rec.Profile, rec.Server, rec.Method, rec.Name, rec.Original} {
		n += len(text)
	}
	return n
}

// omit reports once that lines of a kind exceed a limit.
func (l *loader) omit(kind, limit string) {
	if !l.omitted[kind] {
		l.omitted[kind] = true
		l.problem("%s; the rest is omitted", limit)
	}
}

// placeholder sets the size of a body in a file of its own. It reports a missing file.
func (l *loader) placeholder(b *recording.Body, text *[]byte, size *int, folder string) bool {
	if b == nil || b.File == "" {
		return false
	}
	*text, *size = nil, b.Size
	if b.File == recording.Omitted {
		return false
	}
	if len(b.File) < 2 || !isHex(b.File) {
		l.problem("invalid reference to a body: %q", b.File)
		return false
	}
	if _, err := os.Stat(filepath.Join(folder, b.File[:2], b.File)); err != nil {
		l.problem("body %s… of %s is missing", b.File[:min(8, len(b.File))], termtext.Size(int64(b.Size)))
		return false
	}
	return true
}

func isHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// maxProblems is the number of described problems of this package.
const maxProblems = 20

func (l *loader) problem(format string, args ...any) {
	a := l.archive
	if len(a.Problems) >= maxProblems {
		a.More++
		return
	}
	a.Problems = append(a.Problems, recording.Problem{File: l.file, Line: l.line, Text: fmt.Sprintf(format, args...)})
}

// dropLarge forgets the bodies of evicted requests.
func (l *loader) dropLarge() {
	first := l.reg.Traffic().Stats().First
	for seq := range l.archive.large {
		if seq < first {
			delete(l.archive.large, seq)
		}
	}
}

// side derives usage, contents and logs from traffic, as the gateway did.
func (l *loader) side(line *recording.Line, rec *registry.TrafficRecord) {
	switch {
	case rec.Direction == registry.ToClient && rec.Method == "notifications/message":
		l.logMessage(rec)
	case rec.Direction != registry.ToServer || line.Type != recording.TypeRequest:
	case rec.Method == "tools/call":
		own := rec.Original
		if own == "" {
			own = rec.Name
		}
		l.archive.meter.Add(telemetry.MeteredCallOf(rec, own))
	case rec.Method == "resources/read":
		l.content(line, rec)
	}
}

// content stores a read resource for the detail of the pane Resources.
func (l *loader) content(line *recording.Line, rec *registry.TrafficRecord) {
	if rec.Status != "success" || line.Answer == nil || line.Answer.File != "" {
		return
	}
	target, err := l.reg.ResolveResource(rec.Name)
	if err != nil || target.Entry == nil || target.Entry.Kind != registry.Resource {
		return
	}
	e := target.Entry
	l.reg.Contents().Put(&registry.Invocation{Kind: e.Kind, Server: e.Server, Name: e.Name, Listed: e.Listed, Result: rec.Response, Success: true, Time: rec.Time, Duration: rec.Duration})
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo, "warning": slog.LevelWarn,
	"error": slog.LevelError, "critical": slog.LevelError, "alert": slog.LevelError, "emergency": slog.LevelError,
}

func (l *loader) logMessage(rec *registry.TrafficRecord) {
	data := rawjson.Get(rec.Request, "data")
	if data == nil {
		return
	}
	text, ok := rawjson.String(data)
	if !ok {
		text = string(data)
	}
	if logger := rawjson.GetString(rec.Request, "logger"); logger != "" {
		text = logger + ": " + text
	}
	l.reg.Logs().Append(registry.LogRecord{Time: rec.Time, Server: rec.Server, Source: registry.SourceMessage, Level: levels[rawjson.GetString(rec.Request, "level")], Text: text})
}

// finish reports problems and keeps the requests that were in flight at the end.
func (l *loader) finish(r *recording.Reader) {
	a := l.archive
	l.at = a.End
	first, more := r.Problems()
	a.Problems, a.More = append(a.Problems, first...), a.More+more
	for _, p := range a.Problems {
		a.log(a.End, slog.LevelWarn, "not readable: "+p.String())
	}
	if a.More > 0 {
		a.log(a.End, slog.LevelWarn, termtext.Count(a.More, "further problem"))
	}
	if !a.Bodies {
		a.log(a.End, slog.LevelInfo, "params and answers were not recorded; record.bodies was false")
	}
	known := make(map[string]bool)
	for _, s := range l.reg.Sessions() {
		known[s.ID] = true
	}
	for _, one := range l.running {
		if known[one.Session] {
			a.running = append(a.running, one)
		}
	}
	slices.SortFunc(a.running, func(x, y registry.InFlight) int { return x.Time.Compare(y.Time) })
	l.dropLarge()
	stats := l.reg.Traffic().Stats()
	for _, rec := range l.reg.Traffic().Window(stats.First, -1) {
		if rec.Status != registry.StatusNotification {
			a.Kept++
		}
	}
	if a.Kept < a.Requests {
		a.log(a.End, slog.LevelInfo, fmt.Sprintf("%d of %d requests are shown; --requests and a filter select others", a.Kept, a.Requests))
	}
}
