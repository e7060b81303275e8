// Goblin serves many MCP servers as one MCP server and shows them in a terminal UI.
//
// This package owns flags and what screens are made of; what a process does as long as it
// serves is that of goblin/gateway/serve, and the commands that only ask something are
// those of goblin/gateway/command.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goblin/gateway/cli"
	"goblin/gateway/command"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/demo"
	"goblin/gateway/remoteui"
	"goblin/gateway/serve"
	"goblin/gateway/stack"
	"goblin/meta"
	"goblin/meta/lua"
	"goblin/meta/lua/worker"
	"goblin/tui"
	"goblin/tui/termquery"
	"goblin/tui/theme"
)

// version is set by the linker for releases.
var version string

func init() { termquery.Restore() }

func main() { os.Exit(run(os.Args[1:])) }

// executablePath returns the path of this program. On Linux it also works after the file was
// replaced by another version.
func executablePath() (string, error) {
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

func run(args []string) int {
	a := &cli.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Version: cli.BuildVersion(version),
	}
	_, a.InTTY = cli.IsTerminal(os.Stdin)
	a.Columns, a.OutTTY = cli.IsTerminal(os.Stdout)
	_, a.ErrTTY = cli.IsTerminal(os.Stderr)
	p := &serve.Process{App: a, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Show: runUI, Extend: addMetaTools}
	// stdout carries answers or MCP. What anything else writes goes to stderr.
	os.Stdout = os.Stderr

	ctx, release := p.Signals()
	defer release()
	root := newRoot(p)
	root.SetArgs(args)
	return a.Report(root.ExecuteContext(ctx))
}

// addMetaTools adds Goblin's own tools, and their commands, to a gateway.
func addMetaTools(i *stack.Stack) (stack.Extension, error) {
	cfg := i.Config()
	self, err := executablePath()
	if err != nil {
		return stack.Extension{}, fmt.Errorf("find this program: %w", err)
	}
	tools := meta.New(meta.Options{
		Registry: i.Registry(), Ask: i.Ask, AwaitLists: i.AwaitLists, Starting: i.Starting, Permits: i.Permits,
		Lua:           lua.Limits{Timeout: cfg.Lua.Timeout, Memory: cfg.Lua.Memory, Calls: cfg.Lua.Calls, Output: cfg.Lua.Output},
		ScriptCommand: []string{self, worker.Command},
		Embeddings: meta.Embeddings{
			URL: cfg.Search.Embeddings, Model: cfg.Search.Model, Token: cfg.Search.AuthToken, OnFailure: i.EmbeddingsFailed,
		},
	})
	if err := tools.Add(); err != nil {
		return stack.Extension{}, err
	}
	return stack.Extension{
		Run: tools.Run,
		Search: func(ctx context.Context, q daemon.SearchQuery) (stack.SearchResult, error) {
			found, err := tools.Search(ctx, meta.Query{Text: q.Text, Kind: q.Kind, Server: q.Server, MIME: q.MIME, Limit: q.Limit})
			out := stack.SearchResult{Total: found.Total, Weak: found.PoorMatch, Hits: make([]stack.Hit, len(found.Hits))}
			for n, h := range found.Hits {
				out.Hits[n] = stack.Hit(h)
			}
			return out, err
		},
		Script: func(ctx context.Context, source string, ask stack.AskServers) (daemon.ScriptAnswer, error) {
			r, err := tools.Script(ctx, source, ask)
			answer := daemon.ScriptAnswer{Value: r.JSON, Printed: r.Printed, Hint: r.Hint}
			if failed, ok := errors.AsType[*lua.Error](err); ok {
				answer.Error = failed.Error()
				answer.Timeout = failed.Kind == lua.Timeout
				err = nil
			}
			return answer, err
		},
	}, nil
}

// runUI runs the UI of a daemon, as a client of it.
func runUI(ctx context.Context, h *serve.Daemon, c *remoteui.Conn, owner bool) error {
	status, err := h.Status(ctx)
	if err != nil {
		return err
	}
	view := tui.New(tui.Options{
		Registry: h.Registry(), Logger: h.Logger(),
		Theme: cmp.Or(c.Theme(), h.Theme), ASCII: c.ASCII(), Images: h.Images, Keys: h.Keys,
		Daemon: tui.Daemon{
			Config: status.Config, Demo: status.Demo, Address: status.Address,
			Command: h.Command, Owner: owner,
			PID: status.PID, Started: status.Started, Terminal: status.Terminal, TerminalGone: status.TerminalGone,
		},
	})
	client, err := h.OpenClient(ctx, "goblin", view.Ask)
	if err != nil {
		return err
	}
	defer client.Close()
	client.SetScreen(func() daemon.Screen {
		at := daemon.Screen{Terminal: c.Terminal(), Owner: owner}
		at.Width, at.Height = c.Size()
		return at
	})
	return view.Run(ctx, client, c)
}

const longHelp = `Goblin serves all of your MCP servers as one MCP server to all of your clients.

Without a command, on a terminal, it starts the servers of its config and shows
them; clients can connect as long as it runs. Without a command and without a
terminal it is "goblin stdio", which is the command for MCP clients.

The config is the file named by --config, else by $GOBLIN_CONFIG, else
goblin/config.yaml in $XDG_CONFIG_HOME or ~/.config, else a built-in demo.

Exit codes: 0 ok, 1 failure, 2 usage, 3 config, 4 cannot connect, 6 timeout,
7 not found.`

//go:generate go test -run ^TestCommandReferenceIsCurrent$ . -update

// newRoot is the command line.
func newRoot(p *serve.Process) *cobra.Command {
	var (
		tui    bool
		tuiTTY string
	)
	a := p.App
	root := &cobra.Command{
		Use:   "goblin",
		Short: "Many MCP servers as one",
		Long:  longHelp,
		Example: `  goblin                         look at your servers, or at the demo
  goblin stdio                   what clients start
  goblin list tools              what the servers offer
  goblin search what time is it  find the tool for it
  goblin read goblin://servers   read a resource`,
		SilenceErrors: true, SilenceUsage: true,
		Version: a.Version.Version,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.NoCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case tuiTTY != "":
				return p.Beside(cmd.Context(), tuiTTY)
			case a.InTTY && a.OutTTY:
				return p.Screen(cmd.Context())
			case tui:
				return p.Beside(cmd.Context(), serve.Controlling)
			default:
				return p.Stdio(cmd.Context(), false, "")
			}
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetVersionTemplate("goblin {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	cli.NameFlag(root.Flags(), &a.ConfigFlag, "config", "use this config `FILE`")
	root.Flags().Var(newOneOf(&p.Theme, theme.Themes()...), "theme", "colours of the screen: "+strings.Join(theme.Themes(), ", "))
	root.Flags().BoolVar(&p.ASCII, "ascii", false, "draw the screen with ASCII characters only")
	root.Flags().BoolVar(&tui, "tui", false, "serve MCP on stdin and stdout and show the screen on the terminal")
	cli.NameFlag(root.Flags(), &tuiTTY, "tui-tty", "the same, on this `TERMINAL` instead of /dev/tty")
	root.SetHelpCommand(a.Help())
	root.AddGroup(cli.Groups()...)
	root.AddCommand(stdioCommand(p), serveCommand(p), daemonCommand(p), demoCommand(p))
	root.AddCommand((&command.App{App: a, Extend: p.Extend, Choose: newChooser(p)}).Commands()...)
	setCompletions(root)
	shareFlags(root)
	return root
}

// newChooser returns a function that asks the user at the terminal to choose items.
func newChooser(p *serve.Process) command.SelectFunc {
	return func(ctx context.Context, c *command.Selection) (bool, error) {
		list := &tui.List{Title: c.Title, About: c.About, Switch: c.Switch, On: c.On}
		for _, it := range c.Items {
			list.Items = append(list.Items, tui.Item(it))
		}
		l := theme.New(theme.Options{Theme: p.Theme, ASCII: p.ASCII, Getenv: p.App.Getenv})
		ok, err := tui.Ask(ctx, p.In, p.Err, l, list)
		for i := range c.Items {
			c.Items[i].On = list.Items[i].On
		}
		c.On = list.On
		return ok, err
	}
}

// shareFlags makes all commands take the flags that may stand in front of any of
// them, and show those that do something there.
func shareFlags(root *cobra.Command) {
	for _, c := range root.Commands() {
		for _, name := range []string{"theme", "ascii"} {
			flag := *root.Flags().Lookup(name)
			flag.Hidden = true
			c.PersistentFlags().AddFlag(&flag)
		}
		addConfigFlag(c, root.Flags().Lookup("config"))
	}
}

// addConfigFlag adds --config to a command and its subcommands that read a config.
func addConfigFlag(c *cobra.Command, flag *pflag.Flag) {
	if _, none := c.Annotations[cli.NoConfig]; none {
		return
	}
	own := *flag
	c.Flags().AddFlag(&own)
	for _, sub := range c.Commands() {
		addConfigFlag(sub, flag)
	}
}

// setCompletions defines the shell completions. Files are only completed where they fit.
func setCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.ValidArgs == nil && c.ValidArgsFunction == nil && c.Name() != "lua" {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	themes := cobra.FixedCompletions(theme.Themes(), cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("theme", themes); err != nil {
		panic(err) // there is no such flag
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Short, c.Long = "Print completions for a shell", "Print completions for a shell; each command's help says how to use them."
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			return cli.Usage(cmd, "say for which shell: bash, fish, powershell or zsh")
		}
		c.Args = cobra.ArbitraryArgs
		c.Annotations = cli.NoConfigAnnotations()
		c.Example = "  goblin completion bash > ~/.local/share/bash-completion/completions/goblin"
		for _, shell := range c.Commands() {
			shell.Short, shell.Args = "Print completions for "+shell.Name(), cli.NoArgs
			shell.Annotations = cli.NoConfigAnnotations()
			shell.Example = "  goblin completion " + shell.Name() + " > goblin." + shell.Name()
			shell.Long = strings.Replace(shell.Long, "Generate the autocompletion script for the", "Print completions for the", 1)
		}
	}
}

// oneOf is a flag that takes one of a few words.
type oneOf struct {
	value *string
	words []string
}

func newOneOf(value *string, words ...string) *oneOf { return &oneOf{value, words} }

// String implements the flag's value.
func (o *oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

// Type is how help calls the flag's value.
func (o *oneOf) Type() string { return "NAME" }

// Set implements the flag's value.
func (o *oneOf) Set(word string) error {
	if !slices.Contains(o.words, word) {
		return fmt.Errorf("must be one of %s", strings.Join(o.words, ", "))
	}
	*o.value = word
	return nil
}

func stdioCommand(p *serve.Process) *cobra.Command {
	var (
		standalone bool
		profile    string
	)
	cmd := &cobra.Command{
		Use:     "stdio",
		GroupID: cli.GroupServe,
		Short:   "Serve one client on stdin and stdout",
		Long: `Speak MCP on stdin and stdout. This is what MCP clients start.

All clients of a config share one daemon, which runs the servers: the first
"goblin stdio" starts it in the background, and it ends gateway.linger after its
last client. If it dies, its clients go on with the next one.

--standalone runs the servers in this process instead, for this client alone.

--profile shows the client what a profile of the config has, and nothing else.`,
		Example: `  goblin stdio
  goblin stdio --config ~/projects/goblin.yaml
  goblin stdio --profile coding
  goblin stdio --standalone`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.Stdio(cmd.Context(), standalone, profile) },
	}
	cmd.Flags().BoolVar(&standalone, "standalone", false, "run the servers in this process, without a daemon")
	cli.NameFlag(cmd.Flags(), &profile, "profile", "show the client this `PROFILE` of the config")
	return cmd
}

func serveCommand(p *serve.Process) *cobra.Command {
	var listen, profile string
	cmd := &cobra.Command{
		Use:     "serve",
		GroupID: cli.GroupServe,
		Short:   "Serve clients over HTTP and the local socket",
		Long: `Run the daemon in the foreground, without a screen. Serves Streamable HTTP at /mcp,
Prometheus metrics at /metrics, /healthz and /readyz, and "goblin stdio" clients
of the same config.

The address is that of --listen, else gateway.listen of the config, else
` + serve.DefaultListen + `. One that other machines can reach needs gateway.auth_token.

Clients at /mcp/p/PROFILE see what that profile of the config has. --profile shows
one to all clients at /mcp, too; it wins over the config's "clients".`,
		Example: `  goblin serve
  goblin serve --listen 127.0.0.1:9000
  goblin serve --profile coding
  curl http://127.0.0.1:7331/healthz`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("listen") {
				// Whether it needs a token is the config's business.
				if err := config.CheckListen(listen, "any"); err != nil {
					return cli.Usage(cmd, "--listen: %v", err)
				}
			}
			return p.Serve(cmd.Context(), listen, profile)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "listen on this `ADDRESS`, as HOST:PORT")
	cli.NameFlag(cmd.Flags(), &profile, "profile", "show clients at /mcp this `PROFILE` of the config")
	return cmd
}

// daemonCommand returns the command that a detached daemon runs.
func daemonCommand(p *serve.Process) *cobra.Command {
	var useDemo bool
	cmd := &cobra.Command{
		Use: "daemon", Hidden: true, Args: cli.NoArgs,
		Aliases: []string{"host"}, // a bridge of an older version starts the program by this name
		Short:   "Run the background daemon; goblin stdio starts it",
		Example: "  goblin daemon --config ~/.config/goblin/config.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.Background(cmd.Context(), useDemo)
		},
	}
	cmd.Flags().BoolVar(&useDemo, "demo", false, "serve the built-in demo")
	return cmd
}

func demoCommand(p *serve.Process) *cobra.Command {
	return &cobra.Command{
		Use: "demo-server NAME", Hidden: true, ValidArgs: demo.Names(),
		Example: "  goblin demo-server clock", Annotations: cli.NoConfigAnnotations(),
		Short: "Be one of the demo servers on stdin and stdout",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)(cmd, args); err != nil {
				return cli.Usage(cmd, "name one demo server of %v", demo.Names())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, out := p.Streams()
			return demo.Run(cmd.Context(), args[0], in, out)
		},
	}
}
