package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"goblin/registry"
	"goblin/registry/report"
)

// newExampleUI returns a UI over four servers with tools, prompts, resources and traffic.
func newExampleUI(t testing.TB, w, h int, env map[string]string, change ...func(*Options)) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"files", "github", "weather", "legacy"}, Now: clock.now})
	r := newTestUIWith(t, reg, clock, w, h, env, change...)
	r.backend.registry = finds(weather())
	r.setReady("files").setReady("github").setReady("weather")
	reg.SetState("legacy", registry.ServerState{State: registry.StateRetrying, Transport: "http", LastError: "connect \"legacy\": connection refused", Restarts: 3})
	var files []string
	for i := range 12 {
		files = append(files, fmt.Sprintf(`{"uri":"file:///srv/notes/day-%02d.md","name":"day-%02d.md","title":"Day %d","mimeType":"text/markdown","size":%d}`, i+1, i+1, i+1, 800*(i+1)))
	}
	files = append(
		files,
		`{"uri":"file:///srv/config.json","name":"config.json","mimeType":"application/json","size":512,"description":"What the office runs on"}`,
		`{"uri":"file:///srv/写真/猫🐈.png","name":"猫🐈.png","mimeType":"image/png","size":123456}`,
		`{"uri":"file:///srv/evil\u001b]0;owned\u0007\u202e.txt","name":"evil\u001b[2J","mimeType":"text/plain"}`,
		`{"uri":"file:///srv/a/very/long/path/that/does/not/fit/into/any/column/of/a/terminal/and/so/is/cut/in/its/middle/readme.md","name":"readme.md","mimeType":"text/markdown"}`,
	)
	r.setList("files", registry.Resource, files...)
	r.setList("files", registry.Template, `{"uriTemplate":"file:///srv/{+path}","name":"any file","description":"A file by its path"}`)
	r.setList("github", registry.Template, `{"uriTemplate":"repo://{owner}/{name}/readme","name":"readme","mimeType":"text/markdown"}`)
	r.setList("github", registry.Tool,
		`{"name":"create_issue","title":"Create an issue","description":"Creates an issue in a repository.\nIt is public.","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"One line"},"labels":{"type":"array","items":{"type":"string"}},"priority":{"enum":["low","high"]}},"required":["title"]},"annotations":{"openWorldHint":true}}`,
		`{"name":"delete_repo","description":"Deletes a repository","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"destructiveHint":true,"idempotentHint":true}}`,
		`{"name":"search","description":"Searches","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	r.setList("weather", registry.Tool, `{"name":"forecast","description":"Tomorrow's weather","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"annotations":{"readOnlyHint":true,"openWorldHint":true}}`)
	r.setList("github", registry.Prompt,
		`{"name":"review","title":"Review a change","description":"Reads a change with care","arguments":[{"name":"url","description":"Where it is","required":true},{"name":"tone"}]}`,
		`{"name":"standup","description":"What happened since yesterday"}`)
	reg.SetSession(registry.Session{ID: "me", Transport: "screen", Client: "goblin screen", Screen: true, Since: clock.now()})
	reg.SetSession(registry.Session{ID: "c1", Transport: "stdio", Client: "claude-code", Version: "2.1", Protocol: "2025-11-25", Since: clock.now()})
	reg.SetSession(registry.Session{ID: "c2", Transport: "http", Client: "inspector", Version: "0.17", Protocol: "2025-06-18", Since: clock.now()})
	reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/config.json", Status: registry.SubscriptionOn, Holders: 2, Sessions: []string{"me", "c1"}})
	reg.SetSubscription(registry.SubscriptionState{Server: "files", URI: "file:///srv/notes/day-03.md", Status: registry.SubscriptionRefused, Error: "too many watchers"})
	reg.ResourceUpdated("files", "file:///srv/config.json")
	reg.ResourceUpdated("files", "file:///srv/config.json")
	r.addTraffic()
	reg.Logs().Append(registry.LogRecord{Time: clock.now(), Server: "github", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: "listening \x1b[31mred\x1b[0m"})
	reg.Logs().Append(registry.LogRecord{Time: clock.now(), Source: registry.SourceGoblin, Level: slog.LevelWarn, Text: "Server does not answer server=legacy"})
	r.setAnswer("resources/read", `{"contents":[{"uri":"mcp://files/file:///srv/config.json","mimeType":"application/json","text":"{\"name\":\"office\",\"ports\":[80,443],\"deep\":{\"a\":null,\"b\":true}}"}]}`)
	r.setAnswer("tools/call", `{"content":[{"type":"text","text":"It will rain."}],"structuredContent":{"rain":true,"mm":4.5}}`)
	r.setAnswer("prompts/get", `{"description":"Review","messages":[{"role":"user","content":{"type":"text","text":"# Please\n\nreview **this**."}}]}`)
	r.serveSubscriptions()
	r.setAnswer("completion/complete", `{"completion":{"values":["goblin","gobbler"],"total":2}}`)
	r.backend.usage = exampleReport(clock.now())
	maps.Copy(r.backend.files, exampleSaved)
	r.refresh(registry.AllChanges)
	r.tick(time.Minute) // nothing counts as new
	return r
}

func (r *testUI) setAnswer(method, result string) {
	r.backend.mu.Lock()
	defer r.backend.mu.Unlock()
	r.backend.answers[method] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
}

func (r *testUI) setError(method, message string) {
	r.backend.mu.Lock()
	defer r.backend.mu.Unlock()
	r.backend.answers[method] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return nil, errors.New(message)
	}
}

// addTraffic records three requests and a notification.
func (r *testUI) addTraffic() {
	for i, rec := range []registry.TrafficRecord{
		{Session: "c1", Client: "claude-code", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: 3 * time.Millisecond, Size: 120, Status: "success", Request: []byte(`{"name":"weather_forecast","arguments":{"city":"Oslo"}}`), Response: []byte(`{"content":[{"type":"text","text":"It will rain."}]}`), Wire: []byte("i42\ns7\n")},
		{Session: "c2", Client: "inspector", Server: "files", Method: "resources/read", Name: "mcp://files/file:///srv/config.json", Duration: 700 * time.Microsecond, Size: 90, Status: "success", Request: []byte(`{"uri":"mcp://files/file:///srv/config.json"}`), Response: []byte(`{"contents":[]}`)},
		{Session: "c2", Client: "inspector", Server: "legacy", Method: "tools/call", Name: "legacy_run", Duration: 30 * time.Second, Status: "failure", Code: -32603, Request: []byte(`{"name":"legacy_run"}`), Response: []byte(`{"code":-32603,"message":"CONNECTION_ERROR: legacy"}`)},
		{Session: "c1", Client: "claude-code", Server: "files", Direction: registry.ToClient, Method: "notifications/resources/updated", Name: "mcp://files/file:///srv/config.json", Status: "notification", Request: []byte(`{"uri":"mcp://files/file:///srv/config.json"}`)},
	} {
		rec.Time = r.clock.now().Add(time.Duration(i) * time.Second)
		r.reg.Traffic().Append(rec)
	}
}

// plainEnv is a terminal without colours, colourEnv a modern one.
var (
	plainEnv  = map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"}
	colourEnv = map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"}
	asciiEnv  = map[string]string{"TERM": "vt100", "LANG": "C", "NO_COLOR": "1"}
)

// exampleReport returns usage figures for the servers of newExampleUI.
func exampleReport(now time.Time) report.Report {
	hour := make([]report.Minute, 60)
	for i := range hour {
		if i%7 < 4 {
			hour[i] = report.Minute{Calls: uint32(i % 13), Millis: float64(10 + i*i%90)}
		}
	}
	hour[50].Errors = 3
	figures := func(calls, errors uint64, p50, p95 float64, ago time.Duration, hour []report.Minute) report.Figures {
		return report.Figures{Calls: calls, Errors: errors, Bytes: calls * 1300, P50: p50, P95: p95, LastUsed: now.Add(-ago), Hour: hour}
	}
	spread := []report.Bin{{UpTo: 0.4, Calls: 3}, {UpTo: 1.6, Calls: 100}, {UpTo: 6.4, Calls: 400}, {UpTo: 12.8, Calls: 600}, {UpTo: 51, Calls: 90}, {UpTo: 410, Calls: 30}, {UpTo: 820, Calls: 11}}
	github := figures(1180, 37, 14, 500, time.Minute, hour)
	github.Spread, github.Waits, github.WaitedMs, github.Starts, github.StartMs, github.Cancelled = spread, 4, 72_000, 2, 3200, 9
	cursor := report.LimitsFor("cursor-vscode")
	return report.Report{
		Since: now.Add(-40 * 24 * time.Hour), Daemon: true, All: figures(1234, 37, 12.5, 480, time.Minute, hour),
		Latency: spread,
		Servers: []report.Server{
			{Name: "github", Tools: 3, UnusedTools: 1, Definitions: report.DefinitionSize(52_000), Figures: figures(1200, 37, 14, 500, time.Minute, hour)},
			{Name: "weather", Tools: 1, Definitions: report.DefinitionSize(900), Figures: figures(34, 0, 2.5, 8, 26*time.Hour, nil)},
		},
		Tools: []report.Tool{
			{Server: "github", Name: "search", Listed: "github_search", Definitions: report.DefinitionSize(41_000), Figures: github},
			{Server: "github", Name: "delete_everything", Listed: "github_delete_everything", Unused: true, Definitions: report.DefinitionSize(9000)},
			{Server: "github", Name: "create_issue", Listed: "github_create_issue", Definitions: report.DefinitionSize(2000), Figures: figures(20, 0, 300, 900, 3*time.Hour, nil)},
			{Server: "weather", Name: "forecast", Listed: "weather_forecast", Definitions: report.DefinitionSize(900), Figures: figures(34, 0, 2.5, 8, 26*time.Hour, nil)},
			{Server: "gone", Name: "evil\x1b[2J\u202e", Figures: figures(1, 1, 1, 1, 9*24*time.Hour, nil)},
		},
		Clients: []report.Client{
			{Name: "claude-code", Connected: true, Tools: 4, Instructions: 700, Definitions: report.DefinitionSize(52_900), Figures: figures(1100, 30, 12, 450, time.Minute, hour), Limits: report.LimitsFor("claude-code")},
			{
				Name: "cursor-vscode", Connected: true, Tools: 91, Instructions: 700, Definitions: report.DefinitionSize(52_900), Figures: figures(134, 7, 13, 700, 2*time.Hour, nil),
				Limits: cursor, Violations: cursor.Violations("cursor-vscode", report.ListSizes{Tools: 91}),
			},
			{Name: "", Figures: figures(5, 0, 1, 2, time.Hour, nil)},
		},
	}
}
