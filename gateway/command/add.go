package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/daemon"
	"goblin/gateway/secrets"
	"goblin/registry"
	"goblin/registry/termtext"
)

type addFlags struct {
	env, headers      []string
	kind, cwd         string
	noCheck, disabled bool
	registry          registryFlags
	secrets           *secrets.Transaction // secrets of a registry server; nil if there are none
}

func (a *App) add() *cobra.Command {
	var n addFlags
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "add NAME URL | add NAME -- COMMAND [ARG...] | add --registry SERVER [NAME]",
		GroupID: cli.GroupConfig,
		Short:   "Add a server to the config",
		Long: `Add a remote server by its URL, or a local one by its command, after "--". The
rest of the file stays unchanged. A running daemon reloads it at once. The server
is started once to test it; if it fails, it isn't added.

--registry adds a server found by "goblin registry search". It shows what will
run, asks for the required values and for consent, and stores secrets like
"goblin secret set". Without a terminal, use --set and --yes.

Quote ${VAR} so that your shell doesn't expand it: Goblin does, when it starts.`,
		Example: `  goblin add files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  goblin add github https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${GITHUB_TOKEN}'
  goblin add memory --env 'MEMORY_FILE_PATH=${HOME}/memory.jsonl' -- npx -y @modelcontextprotocol/server-memory
  goblin add --registry io.github.ada/weather --set 'API_KEY=${WEATHER_KEY}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			var s configedit.Server
			var err error
			if n.registry.server != "" {
				s, err = a.registryServer(cmd, args, &n)
			} else {
				s, err = n.server(cmd, args)
			}
			if err == nil {
				err = a.addServer(cmd.Context(), s, &n)
			}
			if err != nil && n.secrets != nil {
				err = errors.Join(err, n.secrets.Rollback())
			}
			return err
		},
	})
	flags := cmd.Flags()
	flags.StringArrayVarP(&n.env, "env", "e", nil, "environment variable of the command, `KEY=VALUE`")
	flags.StringArrayVarP(&n.headers, "header", "H", nil, "HTTP header of a remote server, `NAME: VALUE`")
	cli.NameFlag(flags, &n.kind, "type", "transport of a remote server, `http|sse`; detected if omitted")
	cli.NameFlag(flags, &n.cwd, "cwd", "working `FOLDER` of the command")
	flags.BoolVar(&n.noCheck, "no-check", false, "add it without a test")
	flags.BoolVar(&n.disabled, "disabled", false, "add it disabled, without a test")
	n.registry.add(flags)
	return cmd
}

func (n *addFlags) server(cmd *cobra.Command, args []string) (s configedit.Server, err error) {
	dash := cmd.ArgsLenAtDash()
	if len(args) == 0 || dash == 0 {
		return s, cli.Usage(cmd, "add needs a name for the server first")
	}
	s = configedit.Server{Name: args[0], Keys: map[string]any{}}
	if !config.ValidName(s.Name) {
		return s, cli.Usage(cmd, "invalid server name %q: use letters, digits, \".\", \"_\" and \"-\", and begin with a letter or digit (\"goblin\" is reserved)", s.Name)
	}
	switch {
	case dash == 1 && len(args) > 1: // a local command
		if len(n.headers) > 0 || n.kind != "" {
			return s, cli.Usage(cmd, "--header and --type are for remote servers, not for commands")
		}
		s.Keys["command"] = args[1]
		if len(args) > 2 {
			s.Keys["args"] = args[2:]
		}
	case dash < 0 && len(args) == 2 && hasOtherScheme(args[1]):
		return s, cli.Usage(cmd, "%q is not a server URL: use https:// or http://", args[1])
	case dash < 0 && len(args) == 2 && strings.Contains(args[1], "://"):
		if len(n.env) > 0 || n.cwd != "" {
			return s, cli.Usage(cmd, "--env and --cwd are for commands, not for remote servers")
		}
		s.Keys["url"] = args[1]
	case dash < 0 && len(args) > 1:
		return s, cli.Usage(cmd, "%q is not a URL; to add a command, use: %s -- %s", args[1], termtext.Command("goblin add", []string{s.Name}), termtext.QuoteWords(args[1:]...))
	default:
		return s, cli.Usage(cmd, "server %q needs a URL, or \"--\" and a command", s.Name)
	}
	return s, n.fill(cmd, s.Keys)
}

func (n *addFlags) fill(cmd *cobra.Command, keys map[string]any) error {
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
	if n.disabled {
		keys["disabled"] = true
	}
	if err := pairs(cmd, keys, "env", "--env", "=", n.env); err != nil {
		return err
	}
	return pairs(cmd, keys, "headers", "--header", ":", n.headers)
}

func hasOtherScheme(address string) bool {
	scheme, _, ok := strings.Cut(address, "://")
	return ok && scheme != "http" && scheme != "https" && !strings.Contains(scheme, "${")
}

func pairs(cmd *cobra.Command, keys map[string]any, key, flag, by string, list []string) error {
	values := make(map[string]string)
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, by)
		if name = strings.TrimSpace(name); !ok || name == "" { // The value is not printed: it may be a secret.
			return cli.Usage(cmd, "%s must be NAME%sVALUE", flag, by)
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

type addResult struct {
	Server    string   `json:"server"`
	Config    string   `json:"config"`
	Checked   bool     `json:"checked"`
	Login     bool     `json:"needsLogin,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Templates []string `json:"templates,omitempty"`
}

func (a *App) addServer(ctx context.Context, s configedit.Server, n *addFlags) error {
	f, err := a.addedConfig(s)
	if err != nil {
		return err
	}
	cfg, err := config.Parse(f.Path(), f.Text(), os.LookupEnv)
	if err != nil { // unreachable for the file itself: it was valid when opened
		return cli.Fail(cli.CodeUsage, "%s; nothing was added", config.Texts(err))
	}
	a.MaskSecrets(cfg)
	o := addResult{Server: s.Name, Config: f.Path()}
	entry, _ := cfg.Server(s.Name)
	folder := filepath.Dir(cfg.Path)
	if here, _ := os.Getwd(); here != folder && clientconfig.FindRelativePath(s.Keys) != "" {
		a.Warn("relative path %q starts at %s; make it absolute or set --cwd", clientconfig.FindRelativePath(s.Keys), folder)
	}
	switch {
	case n.noCheck || entry.Disabled:
	case entry.Problem != "":
		a.Warn("server %q not tested: %s", s.Name, entry.Problem)
	default:
		// The server starts in the config's folder, which may not exist yet.
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		entry.FromAddCommand = true
		if err := a.checkServer(ctx, cfg, &o); err != nil {
			return err
		}
	}
	err = a.save(ctx, f)
	for n := 0; errors.Is(err, configedit.ErrChanged) && n < maxTries; n++ { // another process changed the file
		if f, err = a.addedConfig(s); err == nil {
			err = a.save(ctx, f)
		}
	}
	if err != nil {
		return err
	}
	return a.print(o, func() error { return a.printText(o.String() + a.nextStepText()) })
}

func nameTakenError(name string, f *configedit.File) error {
	return fmt.Errorf("server %q %w in %s; choose another name or remove it first: %s",
		name, configedit.ErrTaken, f.Path(), termtext.Goblin("remove", name))
}

// addedConfig returns the config with the new server. It doesn't save it.
func (a *App) addedConfig(s configedit.Server) (*configedit.File, error) {
	f, err := a.editableConfig(configedit.Open)
	if err != nil {
		return nil, err
	}
	err = f.Add(s)
	switch {
	case errors.Is(err, configedit.ErrTaken):
		return nil, nameTakenError(s.Name, f)
	case err == nil && hasPlainSecret(s.Keys):
		f.SetPrivate()
	}
	return f, err
}

func hasPlainSecret(keys map[string]any) bool {
	s := clientconfig.Server{Name: "x", Keys: keys}
	_, secrets := s.SplitSecrets(func(wanted, _ string) string { return wanted })
	return len(secrets) > 0
}

func (o *addResult) String() string {
	text := fmt.Sprintf("Added %q to %s.\n", o.Server, o.Config)
	if o.Login {
		return text + fmt.Sprintf("Login required: %s\n", termtext.Goblin("login", o.Server))
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
		text += "The server lists no tools, prompts or resources.\n"
	}
	return text
}

// maxNames is in cells.
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

// nextStepText returns the command that installs Goblin in clients, or "" if all have it.
func (a *App) nextStepText() string {
	without, with := clientconfig.MissingGoblin(clientconfig.CurrentMachine(a.Getenv, ""))
	switch {
	case len(without) > 0:
		return fmt.Sprintf("Next: %s\n", a.CommandLine("install", without...))
	case len(with) > 0:
		return ""
	}
	return fmt.Sprintf("Next: %s\n", a.CommandLine("install CLIENT"))
}

// checkServer starts a server of an unsaved config and adds its entries to o.
func (a *App) checkServer(ctx context.Context, cfg *config.Config, o *addResult) error {
	return a.withOwnGateway(ctx, cfg, []string{o.Server}, func(g Gateway) error {
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
				case isMissing(s):
					return cli.Fail(cli.CodeConnect, "%s (nothing was added; use --no-check to add it anyway)", stateText(s))
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
