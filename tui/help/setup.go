package help

import (
	"cmp"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const exampleConfig = `servers:
  files:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", "${HOME}"]
  remote:
    url: https://example.com/mcp
    headers:
      Authorization: Bearer ${REMOTE_TOKEN}
`

// Setup is the page about servers and clients.
type Setup struct {
	uicontext.BaseDialog
	app   *uicontext.Context
	about About
	view  *viewer.View
	theme *theme.Theme // of the drawn page
	w     int
}

// About is the config of a UI.
type About struct {
	Config string // path, or ""
	Demo   bool
}

// NewSetup returns the setup page.
func NewSetup(a *uicontext.Context, about About) *Setup {
	return &Setup{app: a, about: about, view: viewer.NewView(a.Theme)}
}

func (d *Setup) Heading() string { return "Setup" }

// Where returns the scroll position.
func (d *Setup) Where() string { return uicontext.PositionText(d.view) }

func (d *Setup) Size(w, h int) (int, int) { return min(w, 92), h }

func (d *Setup) Lines(w, h int) []string {
	if d.theme != d.app.Theme || d.w != w {
		old := d.view
		d.theme, d.w, d.view = d.app.Theme, w, viewer.NewView(d.app.Theme)
		// One page of fixed text may be built here.
		if doc, err := viewer.Build(d.app.Ctx, d.theme, d.blocks(), viewer.Options{Width: w, Depth: -1}); err == nil {
			d.view.Show(doc, false)
		}
		first, _, _ := old.Position()
		d.view.Lines(w, h)
		d.view.Scroll(first - 1)
	}
	return d.view.Lines(w, h)
}

func (d *Setup) Keys() keys.Table {
	copied := func(text func() string, what string) func() tea.Cmd {
		return func() tea.Cmd { return d.app.Copy(text(), what) }
	}
	return append(keys.Scrolling("scroll", func() keys.Scroller { return d.view }),
		keys.Binding{ID: "setup.entry", Hint: "copy client entry", Long: "Copy the entry for a client's config", Run: copied(func() string { return string(clientEntry(d.app.Endpoint.Command)) }, "the client's entry")},
		keys.Binding{ID: "setup.example", Hint: "copy example config", Long: "Copy the example config", Run: copied(func() string { return exampleConfig }, "the example config")},
		keys.Binding{ID: "setup.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }})
}

func (d *Setup) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.view.Scroll, msg)
	return nil
}

const defaultConfig = "~/.config/goblin/config.yaml"

// GettingStarted returns the text of a UI without servers or with the demo.
func GettingStarted(about About) []viewer.Section {
	title := ""
	var b strings.Builder
	if about.Demo {
		title = "Getting started"
		b.WriteString("This is the built-in demo. Its servers come with Goblin and keep changing. Try:\n\n" +
			"- **4**, then **j** **s**: watch the clock tick\n" +
			"- **2**, then **/** `count` **Enter** **c**: open the form of a tool; **C-s** calls it\n" +
			"- **5**: see what happened; **/** filters by words, `server:`, `-word`, `~fuzzy`\n\n" +
			"To add your own servers, see **:setup**. The config is " + defaultConfig + ".\n")
	} else {
		b.WriteString("No servers are configured. Add one to the config; it starts when you save the file:\n\n" +
			"- **:setup** shows an example and how to connect clients; **y** and **Y** copy them\n" +
			"- **?** shows all keys\n" +
			"- **q** quits\n\n" +
			"Config: " + cmp.Or(about.Config, defaultConfig) + "\n")
	}
	return []viewer.Section{{Title: title, Kind: viewer.Markdown, Text: b.String()}}
}

func (d *Setup) blocks() []viewer.Section {
	where := cmp.Or(d.about.Config, defaultConfig)
	if d.about.Demo {
		where = defaultConfig
	}
	f := []viewer.Field{{Label: "config", Value: where}}
	if where == defaultConfig {
		f = append(f, viewer.Field{Label: "or", Value: "$XDG_CONFIG_HOME/goblin/config.yaml, $GOBLIN_CONFIG, goblin --config FILE"})
	}
	if d.about.Demo {
		f = append(f, viewer.Field{Label: "now", Value: "the built-in demo, because that file is missing"})
	}
	follow := "A running daemon applies edits of servers at once.\n"
	if d.about.Demo {
		follow = "Save it, then restart Goblin.\n"
	}
	blocks := []viewer.Section{
		{Title: "Your servers", Kind: viewer.Fields, Fields: f},
		{Kind: viewer.Text, Text: strings.TrimSuffix(exampleConfig, "\n")},
		{Kind: viewer.Markdown, Text: "`command` starts a local server (stdio); `url` is a remote one. " +
			"`${NAME}` is replaced by an environment variable.\n\n" +
			"A JSON file with `mcpServers`, as in Claude Desktop, works unchanged: `goblin --config servers.json`. " +
			"Entries that would start Goblin itself are ignored.\n\n" +
			"The UI lists mistakes as an alert (`:alert`); so does `goblin validate` in a shell. " + follow},
		{Title: "Your clients", Kind: viewer.Markdown, Text: "`goblin init` imports the servers of your clients. `goblin install CLIENT` adds Goblin to " +
			"a client's config; `goblin uninstall` removes it. Each client starts Goblin, and all share one daemon. " +
			"The entry (**y** copies it):\n"},
		{Kind: viewer.JSON, Data: clientEntry(d.app.Endpoint.Command)},
		{Kind: viewer.Markdown, Text: "VS Code uses `servers` instead of `mcpServers`, and `\"type\": \"stdio\"` in the entry.\n"},
	}
	if url := d.app.Endpoint.URL; url != "" {
		blocks = append(blocks, viewer.Section{Title: "Over HTTP", Kind: viewer.Fields, Fields: []viewer.Field{{Label: "URL", Value: url}}})
	}
	return append(blocks, viewer.Section{Kind: viewer.Note, Text: d.app.KeyOf("setup.close") + " closes this page."})
}

func clientEntry(command []string) []byte {
	type entry struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	text, _ := termtext.EncodeJSON(map[string]any{"mcpServers": map[string]entry{"goblin": {command[0], command[1:]}}}, "  ") // strings always encode
	return []byte(text)
}
