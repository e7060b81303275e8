package tui

import (
	"cmp"
	"path"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// exampleConfig is a minimal config.
const exampleConfig = `servers:
  files:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", "${HOME}"]
  remote:
    url: https://example.com/mcp
    headers:
      Authorization: Bearer ${REMOTE_TOKEN}
`

// setup is the page about adding servers and connecting clients.
type setup struct {
	uicontext.BaseDialog
	app   *app
	view  *viewer.View
	theme *theme.Theme // theme of the drawn page
	w     int
}

func newSetup(a *app) uicontext.Dialog { return &setup{app: a, view: viewer.NewView(a.Theme)} }

func (d *setup) Heading() string          { return "Setup" }
func (d *setup) Where() string            { return uicontext.PositionText(d.view) }
func (d *setup) Size(w, h int) (int, int) { return min(w, 92), h }

func (d *setup) Lines(w, h int) []string {
	if d.theme != d.app.Theme || d.w != w {
		old := d.view
		d.theme, d.w, d.view = d.app.Theme, w, viewer.NewView(d.app.Theme)
		// One page of fixed text may be built here.
		if doc, err := viewer.Build(d.app.Ctx, d.theme, d.app.setupBlocks(), viewer.Options{Width: w, Depth: -1}); err == nil {
			d.view.Show(doc, false)
		}
		first, _, _ := old.Position()
		d.view.Lines(w, h)
		d.view.Scroll(first - 1)
	}
	return d.view.Lines(w, h)
}

func (d *setup) Keys() keys.Table {
	copied := func(text func() string, what string) func() tea.Cmd {
		return func() tea.Cmd { return d.app.Copy(text(), what) }
	}
	return append(keys.Scrolling("scroll", func() keys.Scroller { return d.view }),
		keys.Binding{ID: "setup.entry", Hint: "copy the client's entry", Long: "Copy what a client's config has to say", Run: copied(func() string { return string(d.app.clientEntry()) }, "the client's entry")},
		keys.Binding{ID: "setup.example", Hint: "copy the example config", Long: "Copy the example of a config", Run: copied(func() string { return exampleConfig }, "the example config")},
		keys.Binding{ID: "setup.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }})
}

func (d *setup) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.view.Scroll, msg)
	return nil
}

// defaultConfig is the default path of the config.
const defaultConfig = "~/.config/goblin/config.yaml"

// gettingStarted returns the first steps.
func (a *app) gettingStarted() []viewer.Section {
	title := ""
	var b strings.Builder
	if a.o.Daemon.Demo {
		title = "Getting started"
		b.WriteString("This is the built-in demo: its servers come with Goblin and change by themselves. Try:\n\n" +
			"- **4**, then **j** **s**: watches the clock tick\n" +
			"- **2**, then **/** `count` **Enter** **c**: opens the form of a tool; **C-s** calls it\n" +
			"- **5**: what happened; **/** filters here, too: words, `server:`, `-word`, `~fuzzy`\n\n" +
			"Your own servers: **:setup** shows an example of a config. It goes to " + defaultConfig + ".\n")
	} else {
		b.WriteString("No servers are configured. Name one in the config; it starts when the file is saved:\n\n" +
			"- **:setup** shows an example and how clients start Goblin; **y** and **Y** copy there\n" +
			"- **?** shows all keys\n" +
			"- **q** quits\n\n" +
			"The config: " + cmp.Or(a.o.Daemon.Config, defaultConfig) + "\n")
	}
	return []viewer.Section{{Title: title, Kind: viewer.Markdown, Text: b.String()}}
}

// setupBlocks returns the content of the page.
func (a *app) setupBlocks() []viewer.Section {
	where := cmp.Or(a.o.Daemon.Config, defaultConfig)
	if a.o.Daemon.Demo {
		where = defaultConfig
	}
	f := []viewer.Field{{Label: "config", Value: where}}
	if where == defaultConfig {
		f = append(f, viewer.Field{Label: "or", Value: "$XDG_CONFIG_HOME/goblin/config.yaml, $GOBLIN_CONFIG, goblin --config FILE"})
	}
	if a.o.Daemon.Demo {
		f = append(f, viewer.Field{Label: "now", Value: "the built-in demo, as there is no config there"})
	}
	follow := "A running Goblin follows edits of its servers.\n"
	if a.o.Daemon.Demo {
		follow = "Write it, then start Goblin again.\n"
	}
	blocks := []viewer.Section{
		{Title: "Your servers", Kind: viewer.Fields, Fields: f},
		{Kind: viewer.Text, Text: strings.TrimSuffix(exampleConfig, "\n")},
		{Kind: viewer.Markdown, Text: "`command` is a program that speaks MCP on stdin and stdout, `url` a remote server. " +
			"`${NAME}` stands for a variable of the environment.\n\n" +
			"A JSON file with `mcpServers`, as Claude Desktop has it, works as it is: `goblin --config servers.json`. " +
			"An entry for Goblin itself is off.\n\n" +
			"`goblin validate` reports all mistakes in one run. " + follow},
		{Title: "Your clients", Kind: viewer.Markdown, Text: "`goblin init` takes over the servers that your clients have; `goblin install CLIENT` puts Goblin into " +
			"a client's config, `goblin uninstall` takes it out. Each client starts Goblin, and all of them share one. " +
			"Its entry (**y** copies it):\n"},
		{Kind: viewer.JSON, Data: a.clientEntry()},
		{Kind: viewer.Markdown, Text: "VS Code calls it `servers` instead of `mcpServers`, with `\"type\": \"stdio\"` in the entry.\n"},
	}
	if a.o.Daemon.Address != "" {
		blocks = append(blocks, viewer.Section{Title: "Over HTTP", Kind: viewer.Fields, Fields: []viewer.Field{{Label: "URL", Value: httpURL(a.o.Daemon.Address)}}})
	}
	return append(blocks, viewer.Section{Kind: viewer.Note, Text: a.KeyOf("setup.close") + " closes this page."})
}

// httpURL returns the endpoint at an address.
func httpURL(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + path.Join(address, "mcp")
}

// clientEntry returns Goblin's entry for a client's config.
func (a *app) clientEntry() []byte {
	type entry struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	text, _ := termtext.EncodeJSON(map[string]any{"mcpServers": map[string]entry{"goblin": {a.o.Daemon.Command[0], a.o.Daemon.Command[1:]}}}, "  ") // strings always encode
	return []byte(text)
}
