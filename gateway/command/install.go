package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/registry/termtext"
)

type installFlags struct {
	replace, print, dryRun bool
}

func (a *App) install() *cobra.Command {
	var n installFlags
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "install CLIENT...",
		GroupID: cli.GroupConfig,
		Short:   "Add Goblin to MCP clients",
		Long: `Add an entry "goblin", which runs "goblin stdio", to the config file of each
client. The rest of the file stays unchanged, and a backup is kept beside it.
"goblin uninstall" restores the file byte for byte.

--replace also removes the servers that Goblin now runs. It keeps servers that
"goblin init" imported only in part, that changed since, or that can't start.
Servers without cached lists are started once, so that the first client gets
complete lists (without a terminal, for at most 10 s).

` + clientsHelp(),
		Example: `  goblin install claude-code
  goblin install cursor vscode --replace --dry-run
  goblin install --print zed`,
		ValidArgsFunction: a.completeClients,
		Args:              clientArgs("install"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n.print {
				return a.printEntries(args)
			}
			command, entryArgs, err := a.clientCommand()
			if err != nil {
				return err
			}
			served, lame, err := a.servedEntries(n.replace)
			if err != nil {
				return err
			}
			err = a.changeClients(cmd.Context(), args, &n, func(c *clientconfig.Client, m clientconfig.Machine) (*clientconfig.Change, error) {
				ch, err := c.Install(m, config.StateFolder(a.Getenv), command, entryArgs, c.ServedNames(m, served))
				if err != nil {
					return nil, err
				}
				notes := []string{ch.Note}
				if stay := c.ServedNames(m, lame); len(stay) > 0 {
					notes = append(notes, "kept (Goblin can't start them yet): "+strings.Join(stay, ", "))
				}
				if stay := c.PartlyServed(m, slices.Concat(served, lame)); len(stay) > 0 {
					notes = append(notes, "kept (only imported in part, see goblin init): "+strings.Join(stay, ", "))
				}
				ch.Note = strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
				return ch, nil
			})
			if err == nil && !n.dryRun {
				err = a.cacheLists(cmd.Context())
			}
			return err
		},
	})
	flags := cmd.Flags()
	flags.BoolVar(&n.replace, "replace", false, "also remove the servers that Goblin now runs")
	flags.BoolVar(&n.dryRun, "dry-run", false, "show the changes; write nothing")
	flags.BoolVar(&n.print, "print", false, "print the entry, to add it by hand; write nothing")
	return cmd
}

func (a *App) uninstall() *cobra.Command {
	var n installFlags
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "uninstall CLIENT...",
		GroupID: cli.GroupConfig,
		Short:   "Remove Goblin from MCP clients",
		Long: `Remove Goblin from the config file of each client. A file that is unchanged since
"goblin install" is restored byte for byte, including the servers removed by
--replace, and the backup is deleted. Otherwise only Goblin's entry is removed,
and the backup stays. An entry "goblin" with another command is kept.`,
		Example:           "  goblin uninstall claude-code\n  goblin uninstall cursor vscode --dry-run",
		Annotations:       cli.NoConfigAnnotations(),
		ValidArgsFunction: a.completeClients,
		Args:              clientArgs("uninstall"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeClients(cmd.Context(), args, &n, func(c *clientconfig.Client, m clientconfig.Machine) (*clientconfig.Change, error) {
				return c.Uninstall(m, config.StateFolder(a.Getenv))
			})
		},
	})
	cmd.Flags().BoolVar(&n.dryRun, "dry-run", false, "show the changes; write nothing")
	return cmd
}

func (a *App) completeClients(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	left := slices.DeleteFunc(clientconfig.Names(), func(name string) bool { return slices.Contains(args, name) })
	return left, cobra.ShellCompDirectiveNoFileComp
}

func clientArgs(word string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usage(cmd, "%s needs a client: %s", word, strings.Join(clientconfig.Names(), ", "))
		}
		for _, name := range args {
			if clientconfig.Find(name) == nil {
				return cli.Usage(cmd, "no client %q%s", name, cli.Suggest(name, clientconfig.Names(), ""))
			}
		}
		return nil
	}
}

// clientCommand returns the command by which clients start this program. Its path stays
// valid after an update.
func (a *App) clientCommand() (command string, args []string, err error) {
	exe := a.program
	if exe == "" {
		if exe, err = cli.Program(); err != nil {
			return "", nil, err
		}
	}
	path, err := a.FindConfig()
	if err != nil {
		return "", nil, err
	}
	if path == "" {
		a.Warn("no config yet: clients will see the demo servers. Run \"goblin init\" or \"goblin add\" first.")
	}
	words := a.ClientCommand(&config.Config{Path: path, Demo: path == ""}, exe)
	if !filepath.IsAbs(words[0]) {
		return "", nil, errors.New("clients can't start a program that \"go run\" built and will delete; run \"go install\" and use the installed goblin")
	}
	return words[0], words[1:], nil
}

// servedEntries returns the enabled servers of the config, with secret references
// resolved. lame has the servers that cannot start.
func (a *App) servedEntries(wanted bool) (served, lame []map[string]any, err error) {
	if !wanted {
		return nil, nil, nil
	}
	f, err := a.editableConfig(configedit.Open)
	if err != nil {
		return nil, nil, err
	}
	cfg := &config.Config{}
	if !f.IsNew() {
		if cfg, err = a.LoadFile(f.Path()); err != nil {
			return nil, nil, err
		}
	}
	if len(cfg.Servers) == 0 {
		return nil, nil, cli.Fail(cli.CodeConfig, "%s has no servers; import them with \"goblin init\" first", fileName(f.Path()))
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		keys := f.Keys(s.Name)
		switch entry := clientconfig.WithSecrets(keys, a.Secrets().Get); {
		case keys == nil, s.Disabled:
		case s.Problem != "":
			lame = append(lame, entry)
		default:
			served = append(served, entry)
		}
	}
	return served, lame, nil
}

type clientChange struct {
	Client  string   `json:"client"`
	File    string   `json:"file,omitempty"`
	Changed bool     `json:"changed"`
	Deleted bool     `json:"deleted,omitempty"`
	Diff    string   `json:"diff,omitempty"`
	Took    []string `json:"replaced,omitempty"`
	Backup  string   `json:"backup,omitempty"`
	Secrets int      `json:"backupSecrets,omitempty"` // in the backup, in plain text
	Note    string   `json:"note,omitempty"`
	Error   string   `json:"error,omitempty"`
	undoes  bool
}

// changeClients changes the file of each client. A failure doesn't stop the others.
func (a *App) changeClients(ctx context.Context, names []string, n *installFlags, prepare func(c *clientconfig.Client, m clientconfig.Machine) (*clientconfig.Change, error)) error {
	m := clientconfig.CurrentMachine(a.Getenv, "")
	var all []clientChange
	code := 0
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			continue
		}
		c := clientconfig.Find(name)
		did := clientChange{Client: name, File: c.ConfigFile(m)}
		ch, err := clientconfig.Plan(func() (*clientconfig.Change, error) { return prepare(c, m) }, n.dryRun, time.Now)
		if err == nil {
			did.File, did.undoes = ch.File, ch.RemovesGoblin()
			did.Took, did.Note = ch.Removed, ch.Note
			did.Changed, did.Deleted = !ch.IsEmpty(), ch.Deletes
			did.Backup, did.Secrets = ch.Backup, ch.Secrets
			if n.dryRun {
				did.Diff = ch.Diff()
			}
		}
		if err != nil {
			did.Error, did.Changed = err.Error(), false
			failed := cli.CodeFailure
			if errors.Is(err, clientconfig.ErrNone) {
				failed = cli.CodeNotFound
			}
			code = cmp.Or(code, failed)
		}
		all = append(all, did)
	}
	if a.asJSON {
		if err := a.printJSON(map[string]any{"clients": all}); err != nil {
			return err
		}
	} else {
		var text strings.Builder
		for i := range all {
			if all[i].Error != "" {
				a.Warn("%s: %s", clientconfig.Find(all[i].Client).Title, all[i].Error)
				continue
			}
			text.WriteString(all[i].text(n.dryRun))
		}
		if text.Len() > 0 {
			if err := a.printText(text.String()); err != nil {
				return err
			}
		}
	}
	if code != 0 {
		return errReported(code)
	}
	return nil
}

func (d *clientChange) text(dry bool) string {
	title := clientconfig.Find(d.Client).Title
	var out strings.Builder
	switch {
	case !d.Changed:
		fmt.Fprintf(&out, "%s: %s is up to date.\n", title, d.File)
	case dry:
		fmt.Fprintf(&out, "%s: would change %s. Nothing was written.\n%s", title, d.File, d.Diff)
	default:
		how := map[bool]string{true: "Deleted", false: "Updated"}[d.Deleted]
		fmt.Fprintf(&out, "%s %s. Restart %s.\n", how, d.File, title)
	}
	if len(d.Took) > 0 {
		fmt.Fprintf(&out, "  removed (now run by Goblin): %s\n", termtext.Line(strings.Join(d.Took, ", ")))
	}
	if d.Note != "" {
		fmt.Fprintf(&out, "  %s\n", termtext.Line(d.Note))
	}
	removal := termtext.Goblin("uninstall", d.Client) + " deletes it if the file is unchanged"
	switch {
	case d.Backup == "":
	case d.undoes:
		fmt.Fprintf(&out, "  backup kept, because the file changed after the install: %s\n", d.Backup)
		removal = "delete it when you don't need it"
	default:
		fmt.Fprintf(&out, "  backup: %s\n", d.Backup)
	}
	if d.Secrets > 0 {
		fmt.Fprintf(&out, "  the backup has %s in plain text; %s\n", termtext.Count(d.Secrets, "secret"), removal)
	}
	return out.String()
}

func (a *App) printEntries(names []string) error {
	command, args, err := a.clientCommand()
	if err != nil {
		return err
	}
	type entry struct {
		Client string `json:"client"`
		File   string `json:"file"`
		Entry  string `json:"entry"`
	}
	all := []entry{}
	var text strings.Builder
	for i, name := range names {
		c := clientconfig.Find(name)
		file, snippet, err := c.Snippet(clientconfig.CurrentMachine(a.Getenv, ""), command, args)
		if err != nil {
			return err
		}
		all = append(all, entry{name, file, string(snippet)})
		if len(names) > 1 {
			if i > 0 {
				text.WriteString("\n")
			}
			fmt.Fprintf(&text, "%s, in %s:\n", c.Title, file)
		} else {
			a.Warn("for %s, in %s:", c.Title, file)
		}
		text.Write(snippet)
	}
	return a.printResult(map[string]any{"clients": all}, text.String())
}
