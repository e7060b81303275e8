package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/daemon"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/termtext"
)

// toEdit is the config that is to be changed, which may not be there yet.
func (a *App) toEdit(open func(path string) (*configedit.File, error)) (*configedit.File, error) {
	path := cmp.Or(a.ConfigFlag, a.Getenv("GOBLIN_CONFIG"), config.DefaultPath(a.Getenv))
	if path == "" {
		return nil, cli.Fail(cli.CodeConfig, "there is no place for a config: set HOME, or name a file by --config")
	}
	return open(path)
}

// save writes a config, and waits until the daemon that runs for it, if there is one, serves
// what it says now: it would by itself a little later.
func (a *App) save(ctx context.Context, f *configedit.File) error {
	place, unknown := a.Place(f.Path()) // a daemon is where the text before says
	err := f.Save()
	if err == nil && unknown == nil {
		_ = daemon.Remote{Place: place}.Follow(ctx) // where none runs, nothing follows
	}
	return err
}

// addition has the flags of add.
type addition struct {
	env, headers         []string
	kind, cwd            string
	noCheck, off, asJSON bool
	registry             string // the name there; "" for none
	from                 FromRegistry
	kept                 *keeper // secrets of a server of the registry; nil for none
}

func (a *App) add() *cobra.Command {
	var n addition
	cmd := &cobra.Command{
		Use:     "add NAME URL | add NAME -- COMMAND [ARG...] | add --registry SERVER [NAME]",
		GroupID: cli.GroupConfig,
		Short:   "Add a server to the config",
		Long: `Add a server to the config: a remote one by its URL, or a local one by its command,
which stands behind "--". Everything else in the file stays as it is, comments too;
a file that is not there is made. A running daemon follows at once.

The server is started once, and what it offers is shown; if it cannot be, nothing is
added. --no-check adds it as it is.

--registry adds a server that "goblin registry search" finds, by its package or remote.
You are asked for what it needs, and shown what will run before it does; without a
terminal, --set answers and --yes agrees. Secrets stay out of the file: they are kept as
by "goblin secret set", and the file refers to them.

${VAR} stands for a variable of the environment that Goblin has when it starts; quote
it from your shell, so that the file has the name and not the value.`,
		Example: `  goblin add files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  goblin add github https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'
  goblin add memory --env 'MEMORY_FILE_PATH=${HOME}/memory.jsonl' -- npx -y @modelcontextprotocol/server-memory
  goblin add --registry io.github.ada/weather --set 'API_KEY=${WEATHER_KEY}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			describe := n.server
			if n.registry != "" {
				describe = func(cmd *cobra.Command, args []string) (configedit.Server, error) { return a.registered(cmd, args, &n) }
			}
			s, err := describe(cmd, args)
			if err == nil {
				err = interrupted(cmd.Context(), a.addServer(cmd.Context(), s, &n))
			}
			if err != nil && n.kept != nil {
				err = errors.Join(err, n.kept.undo())
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&n.env, "env", "e", nil, "a variable of the command, `KEY=VALUE`")
	flags.StringArrayVarP(&n.headers, "header", "H", nil, "an HTTP header of a remote server, `NAME: VALUE`")
	cli.Name(flags, &n.kind, "type", "the transport of a remote server, `http|sse`; what fits is found if it is not said")
	cli.Name(flags, &n.cwd, "cwd", "the working `FOLDER` of the command")
	flags.BoolVar(&n.noCheck, "no-check", false, "do not start the server")
	flags.BoolVar(&n.off, "disabled", false, "add it without turning it on, nor starting it")
	flags.BoolVar(&n.asJSON, "json", false, "print a JSON object")
	cli.Name(flags, &n.registry, "registry", "add this `SERVER` of the registry, or SERVER@VERSION")
	n.from.Flags(flags)
	return cmd
}

// server makes the entry of what a command line says.
func (n *addition) server(cmd *cobra.Command, args []string) (s configedit.Server, err error) {
	dash := cmd.ArgsLenAtDash()
	if len(args) == 0 || dash == 0 {
		return s, cli.Usage(cmd, "add needs a name for the server")
	}
	s = configedit.Server{Name: args[0], Keys: map[string]any{}}
	if !config.ValidName(s.Name) {
		return s, cli.Usage(cmd, "%q cannot name a server: names have letters, digits, \".\", \"_\" and \"-\", begin with one of the first two, and \"goblin\" is taken", s.Name)
	}
	switch {
	case dash == 1 && len(args) > 1: // a command
		if len(n.headers) > 0 || n.kind != "" {
			return s, cli.Usage(cmd, "--header and --type are for remote servers, not for commands")
		}
		s.Keys["command"] = args[1]
		if len(args) > 2 {
			s.Keys["args"] = args[2:]
		}
	case dash < 0 && len(args) == 2 && otherScheme(args[1]):
		return s, cli.Usage(cmd, "%q is no URL of a server: those begin with https:// or http://", args[1])
	case dash < 0 && len(args) == 2 && strings.Contains(args[1], "://"):
		if len(n.env) > 0 || n.cwd != "" {
			return s, cli.Usage(cmd, "--env and --cwd are for commands, not for remote servers")
		}
		s.Keys["url"] = args[1]
	case dash < 0 && len(args) > 1:
		return s, cli.Usage(cmd, "%q is no URL; a command stands behind \"--\": %s -- %s", args[1], termtext.Command("goblin add", []string{s.Name}), termtext.Words(args[1:]...))
	default:
		return s, cli.Usage(cmd, "say what server %q is: its URL, or \"--\" and its command", s.Name)
	}
	return s, n.fill(cmd, s.Keys)
}

// fill adds what flags say to the keys of a server.
func (n *addition) fill(cmd *cobra.Command, keys map[string]any) error {
	switch n.kind {
	case "":
	case "http", "streamable-http", "sse":
		keys["type"] = n.kind
	default:
		return cli.Usage(cmd, "--type must be http or sse, not %q", n.kind)
	}
	if n.cwd != "" {
		keys["cwd"] = n.cwd
	}
	if n.off {
		keys["disabled"] = true
	}
	if err := pairs(cmd, keys, "env", "--env", "=", n.env); err != nil {
		return err
	}
	return pairs(cmd, keys, "headers", "--header", ":", n.headers)
}

// otherScheme reports a URL that is none of HTTP.
func otherScheme(address string) bool {
	scheme, _, ok := strings.Cut(address, "://")
	return ok && scheme != "http" && scheme != "https" && !strings.Contains(scheme, "${")
}

// pairs puts what a flag says, NAME and VALUE parted by by, under a key.
func pairs(cmd *cobra.Command, keys map[string]any, key, flag, by string, list []string) error {
	values := make(map[string]string)
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, by)
		if name = strings.TrimSpace(name); !ok || name == "" { // not shown: it may be a secret
			return cli.Usage(cmd, "%s wants NAME%sVALUE", flag, by)
		}
		if by == ":" {
			value = strings.TrimSpace(value)
		}
		values[name] = value
	}
	if len(values) > 0 {
		keys[key] = values
	}
	return nil
}

// offer lists in JSON the things of a server that was added.
type offer struct {
	Server    string   `json:"server"`
	Config    string   `json:"config"`
	Checked   bool     `json:"checked"`
	Login     bool     `json:"needsLogin,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Templates []string `json:"templates,omitempty"`
}

func (a *App) addServer(ctx context.Context, s configedit.Server, n *addition) error {
	f, err := a.withServer(s)
	if err != nil {
		return err
	}
	cfg, err := config.Parse(f.Path(), f.Text(), os.LookupEnv)
	if err != nil { // the file had no mistakes when it was opened
		return cli.Fail(cli.CodeUsage, "%s; nothing was added", config.Texts(err))
	}
	a.Hide(cfg)
	o := offer{Server: s.Name, Config: f.Path()}
	entry, _ := cfg.Server(s.Name)
	folder := filepath.Dir(cfg.Path)
	if here, _ := os.Getwd(); here != folder && clientconfig.Relative(s.Keys) != "" {
		a.Warn("%q begins at %s, not here; make it absolute, or say --cwd", clientconfig.Relative(s.Keys), folder)
	}
	switch {
	case n.noCheck || entry.Disabled:
	case entry.Problem != "":
		a.Warn("server %q is not started: %s", s.Name, entry.Problem)
	default:
		// It starts in the config's folder, which may be the first to be made.
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		entry.Unsaved = true
		if err := a.check(ctx, cfg, &o); err != nil {
			return err
		}
	}
	err = a.save(ctx, f)
	for n := 0; errors.Is(err, configedit.ErrChanged) && n < tries; n++ { // another command was faster
		if f, err = a.withServer(s); err == nil {
			err = a.save(ctx, f)
		}
	}
	if err != nil {
		return err
	}
	text := ""
	if !n.asJSON {
		text = o.String() + a.nextStep()
	}
	return a.answer(n.asJSON, o, text)
}

// tries is how often a change is made anew because others change the file, too.
const tries = 50

// withServer is the config with one server more.
func (a *App) withServer(s configedit.Server) (*configedit.File, error) {
	f, err := a.toEdit(configedit.Open)
	if err != nil {
		return nil, err
	}
	err = f.Add(s)
	switch {
	case errors.Is(err, configedit.ErrTaken):
		return nil, fmt.Errorf("%w in %s; %s takes it out", err, f.Path(), termtext.Goblin("remove", s.Name))
	case err == nil && exposes(s.Keys):
		f.Private()
	}
	return f, err
}

// exposes reports whether an entry has a secret in plain text.
func exposes(keys map[string]any) bool {
	s := clientconfig.Server{Name: "x", Keys: keys}
	_, secrets := s.SplitSecrets(func(wanted, _ string) string { return wanted })
	return len(secrets) > 0
}

// String tells what was added.
func (o *offer) String() string {
	text := fmt.Sprintf("Added %q to %s.\n", o.Server, o.Config)
	if o.Login {
		return text + fmt.Sprintf("It wants a login: %s\n", termtext.Goblin("login", o.Server))
	}
	for _, list := range []struct {
		kind  string
		names []string
	}{{"tool", o.Tools}, {"prompt", o.Prompts}, {"resource", o.Resources}, {"template", o.Templates}} {
		if len(list.names) > 0 {
			text += fmt.Sprintf("%s: %s\n", termtext.Count(len(list.names), list.kind), someOf(list.names))
		}
	}
	if o.Checked && len(o.Tools)+len(o.Prompts)+len(o.Resources)+len(o.Templates) == 0 {
		text += "It offers nothing by now.\n"
	}
	return text
}

// maxConfig is the largest config that is read, in bytes.
const maxConfig = 4 << 20

// maxNames is the longest list of names in an answer, in cells.
const maxNames = 300

// someOf lists names up to maxNames and counts the others.
func someOf(names []string) string {
	line := termtext.Cut(termtext.Line(names[0]), maxNames)
	for i, name := range names[1:] {
		next := line + ", " + termtext.Line(name)
		if termtext.Width(next) > maxNames {
			return fmt.Sprintf("%s, and %d more", line, len(names)-i-1)
		}
		line = next
	}
	return line
}

// nextStep returns the command that adds Goblin to clients, or "" if all have it.
func (a *App) nextStep() string {
	without, with := clientconfig.Lacking(clientconfig.Here(a.Getenv, ""))
	switch {
	case len(without) > 0:
		return fmt.Sprintf("Next: %s\n", a.Line("install", without...))
	case len(with) > 0:
		return ""
	}
	return fmt.Sprintf("Next: %s\n", a.Line("install CLIENT"))
}

// check starts a server of a config that is not saved yet, and notes what it offers.
func (a *App) check(ctx context.Context, cfg *config.Config, o *offer) error {
	return a.withOwn(ctx, cfg, []string{o.Server}, func(g Gateway) error {
		for _, list := range []struct {
			kind string
			to   *[]string
		}{{"tools", &o.Tools}, {"prompts", &o.Prompts}, {"resources", &o.Resources}, {"templates", &o.Templates}} {
			items, servers, err := a.fetch(ctx, cfg, g, daemon.ListQuery{Kind: list.kind, Server: o.Server})
			if err != nil {
				return err
			}
			for _, s := range servers {
				switch {
				case s.State == string(registry.StateNeedsLogin):
					o.Login = true
					return nil
				case missing(s):
					return cli.Fail(cli.CodeConnect, "%s. Nothing was added; goblin add --no-check adds it as it is", stateOf(s))
				}
			}
			for i := range items {
				*list.to = append(*list.to, cmp.Or(items[i].OriginalName, items[i].OriginalURI, items[i].Name))
			}
		}
		o.Checked = true
		return nil
	})
}

// daemonRuns reports whether a daemon runs at a place, or may run.
func daemonRuns(ctx context.Context, place daemon.Endpoint) bool {
	_, err := daemon.Remote{Place: place}.Status(ctx)
	return !errors.Is(err, daemon.ErrNotRunning)
}

// withOwn is with for a gateway of this process, also where a daemon runs: it has another
// config.
func (a *App) withOwn(ctx context.Context, cfg *config.Config, only []string, do func(g Gateway) error) error {
	place, err := a.Place(cfg.Path) // without one, children are not recorded
	catalog := a.Catalog()
	if err == nil && daemonRuns(ctx, place) {
		catalog = "" // the daemon lists by itself
	}
	g, err := openLocal(a, cfg, only, place.Dir, catalog)
	if err != nil {
		return err
	}
	stop := a.waiting(ctx, g)
	err = do(g)
	stop()
	return errors.Join(err, g.Close())
}

func (a *App) remove() *cobra.Command {
	return a.change("remove", "Take servers out of the config",
		`Take servers out of the config. Everything else in the file stays as it is; comments
outside of the entries stay, too. A running daemon stops them once their calls are over.`,
		"Took %q out of %s.", (*configedit.File).Remove)
}

func (a *App) enable() *cobra.Command {
	return a.change("enable", "Turn servers on in the config",
		"Turn servers on in the config: \"disabled: true\" goes. A running daemon serves them at once.",
		"Turned %q on in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, false) })
}

func (a *App) disable() *cobra.Command {
	return a.change("disable", "Turn servers off in the config",
		`Turn servers off in the config: they get "disabled: true" and keep their entries. A
running daemon stops them once their calls are over.`,
		"Turned %q off in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, true) })
}

// change is a command that changes servers of the config, all or none of those named.
func (a *App) change(word, short, long, told string, do func(f *configedit.File, name string) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: word + " SERVER...", GroupID: cli.GroupConfig, Short: short, Long: long,
		Example:           "  goblin " + word + " files",
		ValidArgsFunction: a.complete("servers"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "%s needs the name of a server", word)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.changed(cmd.Context(), args, do)
			for n := 0; errors.Is(err, configedit.ErrChanged) && n < tries; n++ {
				f, err = a.changed(cmd.Context(), args, do)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(map[string]any{"config": f.Path(), "servers": args})
			}
			var text strings.Builder
			for _, name := range args {
				fmt.Fprintf(&text, told+"\n", name, f.Path())
			}
			return a.printText(text.String())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// changed is the config after a change of servers, all or none of those named.
func (a *App) changed(ctx context.Context, names []string, do func(f *configedit.File, name string) error) (*configedit.File, error) {
	f, err := a.toEdit(configedit.Open)
	if err != nil {
		return nil, err
	}
	if f.New() {
		return nil, cli.Fail(cli.CodeNotFound, "there is no config at %s; goblin add makes one", f.Path())
	}
	all, _ := f.Servers() // it could be read just now
	for _, name := range names {
		err := do(f, name)
		if errors.Is(err, configedit.ErrNone) { // or by the name that lists show
			called := func(written string) bool { return config.FitName(written, func(string) bool { return false }) == name }
			if at := slices.IndexFunc(all, called); at >= 0 {
				err = do(f, all[at])
			}
		}
		if errors.Is(err, configedit.ErrNone) {
			return nil, cli.Fail(cli.CodeNotFound, "%s has no server %q%s", f.Path(), name, cli.Meant(name, all, "; it names none"))
		} else if err != nil {
			return nil, err
		}
	}
	return f, a.save(ctx, f)
}

func (a *App) edit() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "edit", GroupID: cli.GroupConfig, Short: "Edit the config in your editor, and check it",
		Long: `Open the config in the program of $VISUAL or $EDITOR, and check it when that has
ended. With mistakes in it the file stays as it was, and you are asked whether to go on
editing. A config that is not there is made.`,
		Example: "  goblin edit\n  EDITOR=nano goblin edit",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := a.toEdit(configedit.OpenBroken) // mistakes are about to be mended
			if err != nil {
				return err
			}
			before := string(f.Text())
			if err := a.editFile(cmd.Context(), f); err != nil {
				return err
			}
			changed := string(f.Text()) != before
			switch {
			case asJSON:
				return a.json(map[string]any{"config": f.Path(), "changed": changed})
			case changed:
				return a.printText(f.Path() + " is written.\n")
			}
			return a.printText(f.Path() + " is as it was.\n")
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// editFile has the user edit the text of a config until it has no mistakes.
func (a *App) editFile(ctx context.Context, f *configedit.File) error {
	usual := "vi"
	if runtime.GOOS == "windows" {
		usual = "notepad"
	}
	words := strings.Fields(cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"), usual))
	ext := ".yaml"
	if f.JSON() {
		ext = ".json"
	}
	// There may be secrets in it. Editors leave copies beside a file, with modes of their own.
	dir, err := os.MkdirTemp("", "goblin-*") // 0700
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			_ = os.RemoveAll(dir) // it lies with other temporary files
		}
	}()
	text := f.Text()
	if f.New() {
		text = configedit.Template()
	}
	temp := filepath.Join(dir, "config"+ext)
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	for {
		c := exec.CommandContext(ctx, words[0], append(words[1:], temp)...)
		c.Stdin, c.Stdout, c.Stderr = a.In, a.Out, a.Err
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w; $VISUAL or $EDITOR names another editor", words[0], err)
		}
		text, err := state.Read(temp, maxConfig)
		if err != nil {
			return fmt.Errorf("read the edited text: %w", err)
		}
		f.SetText(text)
		if err = a.save(ctx, f); err == nil {
			return nil
		}
		var mistakes *config.Errors
		if !errors.As(err, &mistakes) {
			keep = true
			return fmt.Errorf("%w; your text is in %s", err, temp)
		}
		if !a.InTTY {
			return err
		}
		a.Report(err)
		fmt.Fprint(a.Err, "Edit it again? [Y/n] ")
		answer, err := bufio.NewReaderSize(a.In, 16).ReadString('\n')
		if err != nil {
			return err
		}
		if word := strings.ToLower(strings.TrimSpace(answer)); word == "n" || word == "no" {
			return cli.Fail(cli.CodeConfig, "nothing was written; %s is as it was", f.Path())
		}
	}
}
