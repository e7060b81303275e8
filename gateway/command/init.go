package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/secrets"
	"goblin/gateway/state"
	"goblin/registry/termtext"
)

// Selection is a choice of several items for the user of a terminal.
type Selection struct {
	Title  string
	About  []string // text above the items
	Items  []SelectionItem
	Switch string // an additional yes-no question, or ""
	On     bool   // its answer
}

// SelectionItem is one item of a Selection.
type SelectionItem struct {
	Cells []string // columns
	Notes []string // shown while the item has the cursor
	On    bool
}

// SelectFunc lets the user choose. ok is false if the user cancels.
type SelectFunc func(ctx context.Context, c *Selection) (ok bool, err error)

type initFlags struct {
	from              []string
	dryRun, yes, keep bool
}

func (a *App) init() *cobra.Command {
	var n initFlags
	cmd := a.withJSON("print a JSON object; don't ask", &cobra.Command{
		Use:     "init",
		GroupID: cli.GroupConfig,
		Short:   "Import servers from your MCP clients",
		Long: `Import the servers of all MCP clients on this machine. Identical servers are
merged; different ones with the same name get the client's name as a suffix.
Variables, filters, timeouts and disabled servers are converted. Goblin itself,
project-only servers and editor extensions are listed but skipped.

On a terminal you choose the servers. An existing config is backed up and only
added to. Client files stay unchanged, and no server is started. If a client's
file can't be read, the exit code is 1; the others are still imported.

` + clientsHelp(),
		Example: `  goblin init
  goblin init --dry-run
  goblin init --from cursor --from claude-desktop --yes
  goblin init --from .vscode/mcp.json --config goblin.yaml --keep-secrets`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.importServers(cmd, &n)
		},
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&n.from, "from", nil, "import only from this `CLIENT` or FILE; may be repeated")
	flags.BoolVar(&n.dryRun, "dry-run", false, "show what would be imported; write nothing")
	flags.BoolVar(&n.yes, "yes", false, "import all servers without asking")
	flags.BoolVar(&n.keep, "keep-secrets", false, "store plain-text secrets like \"goblin secret set\", and refer to them in the config")
	_ = cmd.RegisterFlagCompletionFunc("from", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return clientconfig.Names(), cobra.ShellCompDirectiveDefault // or a file
	}) // unreachable: the flag exists
	return cmd
}

func clientsHelp() string {
	return ansi.Wordwrap("Clients: "+strings.Join(clientconfig.Names(), ", ")+".", 78, "")
}

type importResult struct {
	Config  string           `json:"config"`
	Written bool             `json:"written"`
	Backup  string           `json:"backup,omitempty"` // of the previous config
	Files   []clientFile     `json:"files"`
	Servers []importedServer `json:"servers"`
	Present []string         `json:"present,omitempty"` // servers that the config already had
	Left    []skippedServer  `json:"left,omitempty"`
	Secrets []storedSecret   `json:"secrets,omitempty"`
}

type clientFile struct {
	Client  string `json:"client,omitempty"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Servers int    `json:"servers"`
	Error   string `json:"error,omitempty"`
}

type importedServer struct {
	Name     string            `json:"name"`
	Was      string            `json:"was,omitempty"` // its name in the client, if different
	About    string            `json:"about"`
	From     []string          `json:"from"`
	Disabled bool              `json:"disabled,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Needs    map[string]string `json:"needs,omitempty"`   // variables to set, and their purpose
	Problem  string            `json:"problem,omitempty"` // why it cannot start yet
}

type skippedServer struct {
	Name string `json:"name"`
	From string `json:"from"`
	Why  string `json:"why"`
}

type storedSecret struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Place  string `json:"place"`
}

func (a *App) importServers(cmd *cobra.Command, n *initFlags) error {
	found, err := a.readClients(cmd, n.from)
	if err != nil {
		return err
	}
	f, err := a.editableConfig(configedit.Open)
	if err != nil {
		return err
	}
	did := importResult{Config: fileName(f.Path()), Files: []clientFile{}, Servers: []importedServer{}}
	for i := range found {
		did.add(&found[i])
	}
	servers, present := clientconfig.Merge(found, func(name string) map[string]any {
		if keys := f.Keys(name); keys != nil {
			return clientconfig.WithSecrets(keys, a.Secrets().Get)
		}
		return nil
	})
	for i := range present {
		if name := present[i].Name; !slices.Contains(did.Present, name) {
			did.Present = append(did.Present, name)
		}
	}
	keep := n.keep
	if a.InTTY && a.ErrTTY && a.Choose != nil && !n.yes && !n.dryRun && !a.asJSON && len(servers) > 0 {
		servers, keep, err = a.chooseServers(cmd.Context(), servers, &did, keep)
		if err != nil {
			return err
		}
	}
	if err := a.writeConfig(cmd.Context(), f, servers, keep, n.dryRun, &did); err != nil {
		return err
	}
	if err := a.printResult(did, did.text(a, n.dryRun)); err != nil {
		return err
	}
	return a.reportUnreadFiles(found)
}

func (a *App) reportUnreadFiles(found []clientconfig.FileServers) error {
	code := 0
	for i := range found {
		if err := found[i].Err; err != nil {
			a.Warn("%s: %s; fix the file and run \"goblin init\" again", found[i].Title(), err)
			code = cli.CodeFailure
		}
	}
	if code != 0 {
		return errReported(code)
	}
	return nil
}

func (a *App) writeConfig(ctx context.Context, f *configedit.File, servers []clientconfig.Server, keep, dryRun bool, did *importResult) (err error) {
	var kept *secrets.Transaction
	if keep && !dryRun {
		kept = a.Secrets().Begin()
		defer func() {
			if err != nil {
				err = errors.Join(err, kept.Rollback())
			}
		}()
	}
	did.Secrets, err = a.addAll(f, servers, kept)
	if err != nil {
		return err
	}
	cfg, err := config.Parse(f.Path(), f.Text(), os.LookupEnv)
	if err != nil {
		return err
	}
	for i := range servers {
		did.Servers = append(did.Servers, newImportedServer(&servers[i], cfg))
	}
	if dryRun || len(servers) == 0 {
		return nil
	}
	if did.Backup, err = a.replaceConfig(ctx, f); err != nil {
		return err
	}
	did.Written = true
	return nil
}

func (a *App) readClients(cmd *cobra.Command, from []string) ([]clientconfig.FileServers, error) {
	folder, _ := os.Getwd() // without it, there is no project
	m := clientconfig.CurrentMachine(a.Getenv, folder)
	var found []clientconfig.FileServers
	var broken *clientconfig.BrokenError
	if len(from) == 0 {
		for _, c := range clientconfig.All {
			found = append(found, c.Read(m)...)
		}
		return found, nil
	}
	for _, name := range from {
		if c := clientconfig.Find(name); c != nil {
			these := c.Read(m)
			if len(these) == 0 {
				return nil, cli.Fail(cli.CodeNotFound, "%s has no config file; expected at %s", c.Title, c.ConfigFile(m))
			}
			found = append(found, these...)
			continue
		}
		one := clientconfig.ReadFile(m, name)
		switch {
		case errors.Is(one.Err, fs.ErrNotExist) && !strings.ContainsAny(name, `./\`):
			return nil, cli.Usage(cmd, "no client %q%s", name, cli.Suggest(name, clientconfig.Names(), ""))
		case errors.Is(one.Err, fs.ErrNotExist):
			return nil, cli.Fail(cli.CodeNotFound, "no file %s", name)
		case errors.As(one.Err, &broken):
			return nil, cli.Fail(cli.CodeConfig, "%w", one.Err)
		case one.Err != nil: // a named file must be readable
			return nil, one.Err
		case one.None:
			return nil, cli.Fail(cli.CodeNotFound, "%s has no servers: no section like \"mcpServers\" and no entries with a command or URL", name)
		}
		found = append(found, one)
	}
	return found, nil
}

func (t *importResult) add(f *clientconfig.FileServers) {
	one := clientFile{Title: f.Title(), File: f.File, Servers: len(f.Servers)}
	if f.Client != nil {
		one.Client = f.Client.Name
	}
	if f.Err != nil {
		one.Error = f.Err.Error()
	}
	t.Files = append(t.Files, one)
	for _, l := range f.Skipped {
		t.Left = append(t.Left, skippedServer{Name: l.Name, From: f.Title(), Why: l.Reason})
	}
}

func (a *App) chooseServers(ctx context.Context, servers []clientconfig.Server, did *importResult, keep bool) ([]clientconfig.Server, bool, error) {
	c := Selection{Title: "Which servers should be added to " + did.Config + "?", About: strings.Split(strings.TrimSuffix(did.filesText(), "\n"), "\n"), On: keep}
	secret := false
	for i := range servers {
		s := &servers[i]
		it := SelectionItem{Cells: []string{s.Name, s.Summary(), s.Titles()}, Notes: s.Notes, On: true}
		if s.Keys["disabled"] == true {
			it.Cells[2] += ", disabled there"
		}
		for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
			it.Notes = append(it.Notes, "needs variable "+name+": "+s.Needs[name])
		}
		_, hidden := s.SplitSecrets(func(wanted, _ string) string { return wanted })
		if len(hidden) > 0 {
			secret = true
			it.Notes = append(it.Notes, termtext.Count(len(hidden), "secret")+" in plain text")
		}
		c.Items = append(c.Items, it)
	}
	if secret {
		c.Switch = "store secrets outside the config"
	}
	ok, err := a.Choose(ctx, &c)
	if err == nil && !ok {
		err = cli.Fail(cli.CodeFailure, "nothing was written")
	}
	var wanted []clientconfig.Server
	for i := range c.Items {
		if c.Items[i].On {
			wanted = append(wanted, servers[i])
		}
	}
	return wanted, c.On, err
}

// addAll adds servers to a config. If store is not nil, their secrets are stored there.
func (a *App) addAll(f *configedit.File, servers []clientconfig.Server, store *secrets.Transaction) (kept []storedSecret, err error) {
	for i := range servers {
		s := &servers[i]
		split, found := s.SplitSecrets(store.FreeName)
		keys := s.Keys
		switch {
		case store != nil:
			keys = split
			for _, secret := range found {
				place, err := store.Set(secret.Name, secret.Value)
				if err != nil {
					return nil, fmt.Errorf("store secret %q: %w", secret.Name, err)
				}
				kept = append(kept, storedSecret{Name: secret.Name, Server: s.Name, Place: place})
			}
		case len(found) > 0:
			f.SetPrivate()
			s.Notes = append(s.Notes, "has "+termtext.Count(len(found), "secret")+" in plain text; use --keep-secrets to store secrets elsewhere")
		}
		if err := f.Add(configedit.Server{Name: s.Name, Comment: s.Comment(), Keys: keys}); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// replaceConfig writes a config, keeps one backup of the previous one and removes older
// ones.
func (a *App) replaceConfig(ctx context.Context, f *configedit.File) (backup string, err error) {
	if !f.IsNew() {
		before, err := state.Read(f.RealPath(), maxConfig)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", f.Path(), err)
		}
		if backup, err = clientconfig.Backup(f.RealPath(), before, 0o600, time.Now()); err != nil {
			return "", fmt.Errorf("back up %s: %w", f.Path(), err)
		}
	}
	if err := a.save(ctx, f); err != nil {
		if backup != "" {
			err = errors.Join(err, os.Remove(backup))
		}
		return "", err
	}
	if backup != "" {
		clientconfig.RemoveCopies(f.RealPath(), backup)
	}
	return backup, nil
}

func newImportedServer(s *clientconfig.Server, cfg *config.Config) importedServer {
	t := importedServer{Name: s.Name, About: s.Summary(), From: s.Clients, Disabled: s.Keys["disabled"] == true, Notes: s.Notes, Needs: s.Needs}
	if s.OriginalName != s.Name {
		t.Was = s.OriginalName
	}
	if t.From == nil {
		t.From = []string{}
	}
	if entry, ok := cfg.Server(s.Name); ok {
		t.Problem = entry.Problem
		// Remove the position: the file may not be written yet.
		t.Problem = regexp.MustCompile(regexp.QuoteMeta(cfg.Path)+`:\d+: `).ReplaceAllString(t.Problem, "")
	}
	return t
}

func (t *importResult) filesText() string {
	var out strings.Builder
	width := 0
	for _, f := range t.Files {
		width = max(width, termtext.Width(f.Title))
	}
	for _, f := range t.Files {
		what := termtext.Count(f.Servers, "server")
		if f.Error != "" {
			what = f.Error
		} else {
			what = f.File + ", " + what
		}
		fmt.Fprintf(&out, "%s  %s\n", termtext.Pad(f.Title, width), termtext.Line(what))
	}
	return out.String()
}

// serversText lists the servers with their notes, after an empty line.
func (t *importResult) serversText() string {
	if len(t.Servers) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n")
	names, abouts := 0, 0
	for i := range t.Servers {
		names = max(names, termtext.Width(t.Servers[i].Name))
		abouts = min(max(abouts, termtext.Width(termtext.Line(t.Servers[i].About))), 50)
	}
	for i := range t.Servers {
		s := &t.Servers[i]
		from := strings.Join(s.From, ", ")
		if s.Disabled {
			from += ", disabled"
		}
		fmt.Fprintf(&out, "%s  %s  %s\n", termtext.Pad(s.Name, names), termtext.Pad(termtext.Cut(termtext.Line(s.About), abouts), abouts), from)
		for _, note := range s.Notes {
			fmt.Fprintf(&out, "%s  %s\n", strings.Repeat(" ", names), termtext.Line(note))
		}
		if s.Problem != "" {
			fmt.Fprintf(&out, "%s  cannot start yet: %s\n", strings.Repeat(" ", names), termtext.Line(s.Problem))
		}
	}
	return out.String()
}

func (t *importResult) text(a *App, dry bool) string {
	var out strings.Builder
	if len(t.Files) == 0 {
		return "No MCP client has a config file on this machine. Add servers with \"goblin add\", or find some with \"goblin registry search\".\n"
	}
	out.WriteString(t.filesText())
	out.WriteString(t.serversText())
	if len(t.Present) > 0 {
		fmt.Fprintf(&out, "\nAlready in the config: %s\n", strings.Join(t.Present, ", "))
	}
	if len(t.Left) > 0 {
		out.WriteString("\nSkipped:\n")
		for _, l := range t.Left {
			fmt.Fprintf(&out, "  %s (%s): %s\n", termtext.Name(l.Name), l.From, termtext.Line(l.Why))
		}
	}
	out.WriteString("\n")
	switch {
	case len(t.Servers) == 0:
		fmt.Fprintf(&out, "Nothing to add to %s.\n", t.Config)
	case dry:
		fmt.Fprintf(&out, "Would add %[2]s to %[1]s. Nothing was written.\n", t.Config, termtext.Count(len(t.Servers), "server"))
	default:
		fmt.Fprintf(&out, "Added %[2]s to %[1]s.\n", t.Config, termtext.Count(len(t.Servers), "server"))
		if t.Backup != "" {
			fmt.Fprintf(&out, "Backup: %s\n", t.Backup)
		}
		for _, s := range t.Secrets {
			fmt.Fprintf(&out, "Stored secret %s in %s.\n", s.Name, s.Place)
		}
	}
	for _, s := range t.Servers {
		for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
			fmt.Fprintf(&out, "%s needs variable %s: %s\n", s.Name, name, termtext.Line(s.Needs[name]))
		}
	}
	if len(t.Servers) > 0 && !dry {
		names := t.clients()
		if len(names) == 0 {
			names = []string{"CLIENT"}
		}
		fmt.Fprintf(&out, "Next: %s\n", a.CommandLine("install", names...)+" --replace")
	}
	return out.String()
}

func (t *importResult) clients() (names []string) {
	for _, s := range t.Servers {
		for _, name := range s.From {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
