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

// Selection asks the user of a terminal which of several items to take.
type Selection struct {
	Title  string
	About  []string // what to know before
	Items  []SelectionItem
	Switch string // a question beside; "" for none
	On     bool   // its answer
}

// SelectionItem is one item of a Choice.
type SelectionItem struct {
	Cells []string // what it is
	Notes []string // shown while it is looked at
	On    bool
}

// SelectFunc asks the user of the terminal. ok is false if the user cancels.
type SelectFunc func(ctx context.Context, c *Selection) (ok bool, err error)

// initFlags has the flags of init.
type initFlags struct {
	from              []string
	dryRun, yes, keep bool
}

func (a *App) init() *cobra.Command {
	var n initFlags
	cmd := a.withJSON("print a JSON object; nothing is asked", &cobra.Command{
		Use:     "init",
		GroupID: cli.GroupConfig,
		Short:   "Take over the servers that your MCP clients have",
		Long: `Look for the config files of MCP clients on this machine, and make a config of the
servers in them. Servers that are the same become one; others that share a name get the
client's name behind it. Variables, inputs, filters of tools, timeouts and what is turned
off are taken over in Goblin's words. Goblin itself, servers of one project, and those of
an editor's own extensions are named and left out.

On a terminal you are asked which to take; without one, and with --yes, all are taken.
Nothing is started, and the files of the clients stay as they are. A config that is there
keeps all that it has: servers are added, and one copy of the file before is kept. A
client's file that cannot be read stops no other; the exit code is 1 then.

--keep-secrets moves keys and tokens that stand in plain text to where "goblin secret"
keeps its own, and has the config refer to them.

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
	flags.StringArrayVar(&n.from, "from", nil, "look only into the files of this `CLIENT`, or into this FILE; may be repeated")
	flags.BoolVar(&n.dryRun, "dry-run", false, "say what would be taken, and write nothing")
	flags.BoolVar(&n.yes, "yes", false, "take all without asking")
	flags.BoolVar(&n.keep, "keep-secrets", false, "keep secrets out of the config, as \"goblin secret\" does")
	_ = cmd.RegisterFlagCompletionFunc("from", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return clientconfig.Names(), cobra.ShellCompDirectiveDefault // or a file
	}) // there is such a flag
	return cmd
}

// clientsHelp lists the clients in lines of 78 cells, as a part of a help text.
func clientsHelp() string {
	return ansi.Wordwrap("Clients: "+strings.Join(clientconfig.Names(), ", ")+".", 78, "")
}

// importResult is the output of init: the servers that it found and what it did with them.
type importResult struct {
	Config  string           `json:"config"`
	Written bool             `json:"written"`
	Backup  string           `json:"backup,omitempty"` // of the config as it was
	Files   []clientFile     `json:"files"`
	Servers []importedServer `json:"servers"`
	Present []string         `json:"present,omitempty"` // what the config has already
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
	Was      string            `json:"was,omitempty"` // its name in the client, if that is another
	About    string            `json:"about"`
	From     []string          `json:"from"`
	Disabled bool              `json:"disabled,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Needs    map[string]string `json:"needs,omitempty"`   // variables to set, and what for
	Problem  string            `json:"problem,omitempty"` // why it cannot start by now
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

// importServers adds the servers of clients to the config.
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

// reportUnreadFiles reports the files that could not be read, after the others were imported.
func (a *App) reportUnreadFiles(found []clientconfig.FileServers) error {
	code := 0
	for i := range found {
		if err := found[i].Err; err != nil {
			a.Warn("%s: %s; fix that file, then run goblin init again", found[i].Title(), err)
			code = cli.CodeFailure
		}
	}
	if code != 0 {
		return errReported(code)
	}
	return nil
}

// writeConfig adds servers to a config and saves it, except in a dry run.
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

// readClients reads the files of the named clients, or of all.
func (a *App) readClients(cmd *cobra.Command, from []string) ([]clientconfig.FileServers, error) {
	folder, _ := os.Getwd() // where there is none, there is no project
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
				return nil, cli.Fail(cli.CodeNotFound, "%s has no config file here; it would be %s", c.Title, c.ConfigFile(m))
			}
			found = append(found, these...)
			continue
		}
		one := clientconfig.ReadFile(m, name)
		switch {
		case errors.Is(one.Err, fs.ErrNotExist) && !strings.ContainsAny(name, `./\`):
			return nil, cli.Usage(cmd, "there is no client %q%s", name, cli.Suggest(name, clientconfig.Names(), ""))
		case errors.Is(one.Err, fs.ErrNotExist):
			return nil, cli.Fail(cli.CodeNotFound, "there is no file %s", name)
		case errors.As(one.Err, &broken):
			return nil, cli.Fail(cli.CodeConfig, "%w", one.Err)
		case one.Err != nil: // it was named, so there is no doing without
			return nil, one.Err
		case one.None:
			return nil, cli.Fail(cli.CodeNotFound, "%s has no servers: neither a section such as \"mcpServers\" nor entries with a command or a URL", name)
		}
		found = append(found, one)
	}
	return found, nil
}

// add adds the servers in a file of a client.
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

// chooseServers asks the user which servers to add, and whether to store secrets elsewhere.
func (a *App) chooseServers(ctx context.Context, servers []clientconfig.Server, did *importResult, keep bool) ([]clientconfig.Server, bool, error) {
	c := Selection{Title: "Which servers shall " + did.Config + " have?", About: strings.Split(strings.TrimSuffix(did.filesText(), "\n"), "\n"), On: keep}
	secret := false
	for i := range servers {
		s := &servers[i]
		it := SelectionItem{Cells: []string{s.Name, s.Summary(), s.Titles()}, Notes: s.Notes, On: true}
		if s.Keys["disabled"] == true {
			it.Cells[2] += ", off there"
		}
		for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
			it.Notes = append(it.Notes, "needs the variable "+name+": "+s.Needs[name])
		}
		_, hidden := s.SplitSecrets(func(wanted, _ string) string { return wanted })
		if len(hidden) > 0 {
			secret = true
			it.Notes = append(it.Notes, termtext.Count(len(hidden), "secret")+" in plain text")
		}
		c.Items = append(c.Items, it)
	}
	if secret {
		c.Switch = "keep secrets out of the config"
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

// addAll adds servers to a config. With store, their secrets go there.
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
					return nil, fmt.Errorf("keep the secret %q: %w", secret.Name, err)
				}
				kept = append(kept, storedSecret{Name: secret.Name, Server: s.Name, Place: place})
			}
		case len(found) > 0:
			f.SetPrivate()
			s.Notes = append(s.Notes, "has "+termtext.Count(len(found), "secret")+" in plain text; --keep-secrets keeps those elsewhere")
		}
		if err := f.Add(configedit.Server{Name: s.Name, Comment: s.Comment(), Keys: keys}); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// replaceConfig writes a config and keeps one copy of the previous one. It removes older copies.
func (a *App) replaceConfig(ctx context.Context, f *configedit.File) (backup string, err error) {
	if !f.IsNew() {
		before, err := state.Read(f.RealPath(), maxConfig)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", f.Path(), err)
		}
		if backup, err = clientconfig.Backup(f.RealPath(), before, 0o600, time.Now()); err != nil {
			return "", fmt.Errorf("keep a copy of %s: %w", f.Path(), err)
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

// newImportedServer returns the output for a server that is in the config now.
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
		// Places are those of a file that may not be written yet.
		t.Problem = regexp.MustCompile(regexp.QuoteMeta(cfg.Path)+`:\d+: `).ReplaceAllString(t.Problem, "")
	}
	return t
}

// filesText lists the files that were read and the number of servers in each.
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

// text returns the result for users.
func (t *importResult) text(a *App, dry bool) string {
	var out strings.Builder
	if len(t.Files) == 0 {
		return "No MCP client has a config file here. goblin add adds a server by hand; goblin registry search finds some.\n"
	}
	out.WriteString(t.filesText())
	names, abouts := 0, 0
	for i := range t.Servers {
		names = max(names, termtext.Width(t.Servers[i].Name))
		abouts = min(max(abouts, termtext.Width(termtext.Line(t.Servers[i].About))), 50)
	}
	if len(t.Servers) > 0 {
		out.WriteString("\n")
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
	if len(t.Present) > 0 {
		fmt.Fprintf(&out, "\nThere already: %s\n", strings.Join(t.Present, ", "))
	}
	if len(t.Left) > 0 {
		out.WriteString("\nLeft out:\n")
		for _, l := range t.Left {
			fmt.Fprintf(&out, "  %s, of %s, %s\n", termtext.Name(l.Name), l.From, termtext.Line(l.Why))
		}
	}
	out.WriteString("\n")
	switch {
	case len(t.Servers) == 0:
		fmt.Fprintf(&out, "There is nothing to add to %s.\n", t.Config)
	case dry:
		fmt.Fprintf(&out, "%s would get %s. Nothing was written.\n", t.Config, termtext.Count(len(t.Servers), "server"))
	default:
		fmt.Fprintf(&out, "%s has %s more.\n", t.Config, termtext.Count(len(t.Servers), "server"))
		if t.Backup != "" {
			fmt.Fprintf(&out, "As it was: %s\n", t.Backup)
		}
		for _, s := range t.Secrets {
			fmt.Fprintf(&out, "The secret %s is in %s.\n", s.Name, s.Place)
		}
	}
	for _, s := range t.Servers {
		for _, name := range slices.Sorted(maps.Keys(s.Needs)) {
			fmt.Fprintf(&out, "%s needs the variable %s: %s\n", s.Name, name, termtext.Line(s.Needs[name]))
		}
	}
	if len(t.Servers) > 0 && !dry {
		names := t.clients()
		if len(names) == 0 {
			names = []string{"CLIENT"}
		}
		fmt.Fprintf(&out, "Next: %s, to have them all in your clients by Goblin alone.\n", a.CommandLine("install", names...)+" --replace")
	}
	return out.String()
}

// clients returns the clients whose servers were added.
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
