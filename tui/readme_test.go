package tui

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/uicontext"
)

// newDemoUI returns a UI over the lists of the demo servers.
func newDemoUI(t *testing.T, w, h int) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"notes", "clock", "library"}, Now: clock.now})
	require.NoError(t, reg.AddResource(registry.ServersResource(reg)))
	r := newTestUIWith(t, reg, clock, w, h, plainEnv)
	r.app.o.Daemon = Daemon{Demo: true, Owner: true, Command: []string{"goblin", "stdio"}}
	clear(r.app.UsedPanes) // as when it has just been started
	r.setReady("notes").setReady("clock").setReady("library")
	r.setList("clock", registry.Resource,
		`{"uri":"clock://moon","name":"moon","mimeType":"text/plain"}`,
		`{"uri":"clock://now","name":"now","title":"The time now","description":"Date and time in UTC. Subscribe to it: it changes every second.","mimeType":"text/plain"}`,
		`{"uri":"clock://now.json","name":"now.json","mimeType":"application/json"}`,
		`{"uri":"clock://uptime","name":"uptime","mimeType":"text/plain"}`,
		`{"uri":"clock://zones","name":"zones","mimeType":"application/json"}`)
	r.setList("clock", registry.Template, `{"uriTemplate":"clock://zones/{zone}","name":"zone"}`)
	r.setList("library", registry.Template, `{"uriTemplate":"library://books/{author}/{title}","name":"book"}`, `{"uriTemplate":"library://search{?q,limit}","name":"search"}`)
	var books, notes, tools, prompts []string
	for n := range 72 {
		books = append(books, fmt.Sprintf(`{"uri":"library://bookplates/%02d.svg","name":"plate %d","mimeType":"image/svg+xml"}`, n+1, n))
	}
	for n := len(books); n < 2000; n++ {
		books = append(books, fmt.Sprintf(`{"uri":"library://books/%d","name":"book %d"}`, n, n))
	}
	r.setList("library", registry.Resource, books...)
	for n := range 6 {
		notes = append(notes, fmt.Sprintf(`{"uri":"note:///%d","name":"note %d"}`, n, n))
	}
	r.setList("notes", registry.Resource, notes...)
	for n := range 24 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","inputSchema":{"type":"object"}}`, n))
	}
	for n := range 5 {
		prompts = append(prompts, fmt.Sprintf(`{"name":"prompt_%d"}`, n))
	}
	r.setList("library", registry.Tool, tools...)
	r.setList("library", registry.Prompt, prompts...)
	reg.SetSession(registry.Session{ID: "me", Transport: "screen", Screen: true, Since: clock.now()})
	for _, id := range []string{"claude", "cursor"} {
		reg.SetSession(registry.Session{ID: id, Transport: "stdio", Client: id, Since: clock.now()})
	}
	r.backend.answers["resources/read"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		now := r.clock.now()
		r.clock.advance(700 * time.Microsecond)
		return json.RawMessage(now.Format(`{"contents":[{"uri":"mcp://clock/clock://now","mimeType":"text/plain","text":"Monday, 2 January 2006, 15:04:05 UTC"}]}`)), nil
	}
	r.serveSubscriptions()
	r.refresh(registry.AllChanges)
	r.tick(time.Minute) // what was new is not any more
	return r
}

// The picture in the README is the screen after the first keys that it names.
func TestGoldenPictureOfTheReadme(t *testing.T) {
	t.Parallel()
	r := newDemoUI(t, 112, 21).keys("4 j s enter")
	for range 3 {
		r.clock.advance(time.Second)
		r.reg.ResourceUpdated("clock", "clock://now")
		r.refresh(registry.AllChanges)
	}
	r.app.Flash = uicontext.Flash{}
	r.clearSearchTimes()
	picture := trimmed(r.screen())
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(readme), "```text\n")
	shown, after, found := strings.Cut(rest, "\n```")
	require.True(t, found, "the README has a picture")
	if *update {
		require.NoError(t, os.WriteFile("../README.md", []byte(before+"```text\n"+picture+"\n```"+after), 0o644))
		return
	}
	require.Equal(t, shown, picture, "go test ./tui -run Golden -update draws it anew")
}

// trimmed takes the blanks off the ends of lines.
func trimmed(screen string) string {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
