package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/display"
	"goblin/gateway/instance"
	"goblin/registry"
)

// quietTime is how long a server's state must have settled before a change of
// it is told.
const quietTime = 300 * time.Millisecond

// Running is a gateway in this process.
type Running interface {
	Status() instance.Status
	List(ctx context.Context, q instance.ListQuery) ([]instance.Item, error)
	Changed(ctx context.Context) <-chan struct{}
}

// Summary is a running gateway on a terminal in plain lines: its servers, how
// to connect to it, and what happens to the servers.
type Summary struct {
	W       io.Writer // failures to write are ignored: nobody may be looking
	Columns int       // of the terminal; 0: not known
	Config  *config.Config
	Exe     string // path of this program
	Log     string // path of the log; empty: it is on stderr
	End     string // how it ends, in one line

	app *App
}

// Summary makes a summary that is written to w.
func (a *App) Summary(w io.Writer, columns int, cfg *config.Config, exe, log string) *Summary {
	return &Summary{W: w, Columns: columns, Config: cfg, Exe: exe, Log: log, End: "Ctrl-C stops the servers and ends.", app: a}
}

// Live shows a gateway of this process until ctx ends. It waits for the
// servers as long as a client's list would.
func (s *Summary) Live(ctx context.Context, r Running) {
	changed := r.Changed(ctx)
	defer func() {
		for range changed { // ends with ctx
		}
	}()
	name := configName(s.Config)
	if s.Config.Demo {
		name = "the built-in demo"
	}
	s.printf("Goblin %s, with %s. Starting %s …\n\n", s.app.Version.Version, name, count(s.startable(), "server"))
	if _, err := r.List(ctx, instance.ListQuery{Kind: "tools"}); err != nil {
		return
	}
	status := r.Status()
	told := map[string]string{}
	for _, server := range status.Servers {
		told[server.Name] = s.state(server)
	}
	s.connect(status)
	s.servers(status) // last, so that a small terminal still shows it
	s.printf("%s\n", s.End)
	for {
		select {
		case <-ctx.Done():
			s.printf("\nStopping %s …\n", count(s.startable(), "server"))
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			continue
		case <-time.After(quietTime):
		}
		for _, server := range r.Status().Servers {
			if !server.Listed && server.State == string(registry.StateReady) {
				continue // it is told when there is something to tell
			}
			if now := s.state(server); now != told[server.Name] {
				told[server.Name] = now
				s.printf("%s  %s\n", time.Now().Format("15:04:05"), display.Line(server.Name+" is "+now))
			}
		}
	}
}

// Goodbye is the last line.
func (s *Summary) Goodbye() { s.printf("Goodbye.\n") }

// Host shows a host that is another process.
func (s *Summary) Host(status instance.Status) {
	s.printf("Goblin %s runs already: pid %d, up %s, %s connected.\n\n",
		display.Line(status.Version), status.PID, age(status.Started), count(len(status.Sessions), "client"))
	s.connect(status)
	s.servers(status) // last, so that a small terminal still shows it
	s.printf("\"goblin status\" tells more, \"goblin stop\" ends it.\n")
}

func (s *Summary) printf(format string, args ...any) { fmt.Fprintf(s.W, format, args...) }

func (s *Summary) startable() int {
	n := 0
	for i := range s.Config.Servers {
		if startable(&s.Config.Servers[i]) {
			n++
		}
	}
	return n
}

func (s *Summary) servers(status instance.Status) {
	if len(status.Servers) == 0 {
		s.printf("There are no servers yet. Add one to %s.\n\n", configName(s.Config))
		return
	}
	for i := range status.Servers {
		status.Servers[i].Error = s.app.mask.String(status.Servers[i].Error)
	}
	_ = serverTable(status.Servers).render(s.W, s.Columns) // see W
	s.printf("\n")
}

// state is a server's state and what it offers, in one line.
func (s *Summary) state(server instance.Server) string {
	if server.State != string(registry.StateReady) {
		return server.State + because(s.app.mask.String(server.Error))
	}
	return fmt.Sprintf("%s: %s, %s, %s, %s", server.State, count(server.Tools, "tool"), count(server.Prompts, "prompt"),
		count(server.Resources, "resource"), count(server.Templates, "template"))
}

// connect says how clients get here.
func (s *Summary) connect(status instance.Status) {
	s.printf("To give all of this to a client, put this into its MCP config:\n\n%s\n\n", s.entry())
	if s.temporary() {
		s.printf("(\"go run\" deletes its program at the end; \"go install .\" keeps it as goblin.)\n\n")
	}
	if status.Address != "" {
		s.printf("HTTP clients: %s\n", display.Line(status.Address))
	}
	s.printf("From a shell: goblin list tools, goblin read URI, goblin call TOOL\n")
	if s.Log != "" {
		s.printf("Log:          %s\n", s.Log)
	}
	s.printf("\n")
	if s.Config.Demo {
		s.printf(demoHint, defaultConfig(s.app.Getenv))
	}
}

const demoHint = `This is the demo, because no config was found. Write your own to
%s, for example

  servers:
    files:
      command: npx
      args: [-y, "@modelcontextprotocol/server-filesystem", /srv]

and check it with "goblin validate".

`

// defaultConfig is where a config is looked for.
func defaultConfig(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "goblin", "config.yaml")
}

// temporary reports whether this program is gone when it has ended.
func (s *Summary) temporary() bool { return strings.Contains(s.Exe, "go-build") }

// entry is what clients that start programs need, in the form that most of
// them read.
func (s *Summary) entry() string {
	exe := s.Exe
	if s.temporary() || exe == "" {
		exe = "goblin"
	}
	args := []string{"stdio"}
	// A client has another environment and another working directory.
	if s.app.ConfigFlag != "" || s.app.Getenv("GOBLIN_CONFIG") != "" {
		path := s.Config.Path
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		args = append(args, "--config", path)
	}
	// Strings cannot fail to encode.
	command, _ := json.Marshal(exe)
	list := make([]string, len(args))
	for i, arg := range args {
		quoted, _ := json.Marshal(arg)
		list[i] = string(quoted)
	}
	return fmt.Sprintf("  {\n    \"mcpServers\": {\n      \"goblin\": {\"command\": %s, \"args\": [%s]}\n    }\n  }", command, strings.Join(list, ", "))
}
