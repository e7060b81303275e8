// Goblin serves many MCP servers as one MCP server and shows them in a terminal UI.
//
// This package defines the command line, the serving commands and their flags.
// goblin/gateway/serve implements the serving modes, goblin/gateway/command all other
// commands.
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

	"goblin/gateway/archive"
	"goblin/gateway/callstore"
	"goblin/gateway/cli"
	"goblin/gateway/command"
	"goblin/gateway/config"
	"goblin/gateway/config/reference"
	"goblin/gateway/daemon"
	"goblin/gateway/demo"
	"goblin/gateway/remoteui"
	"goblin/gateway/serve"
	"goblin/gateway/stack"
	"goblin/meta"
	"goblin/meta/lua"
	"goblin/meta/lua/worker"
	"goblin/tui"
	"goblin/tui/checklist"
	"goblin/tui/termquery"
	"goblin/tui/theme"
)

// version is the release version, set by the linker.
var version string

func init() { termquery.Restore() }

func main() { os.Exit(run(os.Args[1:])) }

// executablePath returns the path of this program. On Linux it stays valid after the file
// was replaced.
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
	// stdout carries only answers or MCP. All other output goes to stderr.
	os.Stdout = os.Stderr

	ctx, release := p.Signals()
	defer release()
	root := newRoot(p)
	root.SetArgs(args)
	return a.Report(root.ExecuteContext(ctx))
}

func addMetaTools(i *stack.Stack) (stack.Extension, error) {
	cfg := i.Config()
	self, err := executablePath()
	if err != nil {
		return stack.Extension{}, fmt.Errorf("find this program's file: %w", err)
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

// runUI runs one UI as a client of its daemon.
func runUI(ctx context.Context, h *serve.Daemon, c *remoteui.Conn, owner bool) error {
	status, err := h.Status(ctx)
	if err != nil {
		return err
	}
	view := tui.New(tui.Options{
		Registry: h.Registry(), Logger: h.Logger(),
		Theme: cmp.Or(c.Theme(), h.Theme), ASCII: c.ASCII(), Images: h.Images, Keys: h.Keys,
		ConfigKeys: reference.Reader(status.Config),
		Daemon: tui.Daemon{
			Config: status.Config, Title: h.Title, Demo: status.Demo, Address: status.Address,
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

const longHelp = `Goblin serves all your MCP servers as one MCP server to all your clients.

Without a command, it opens the UI on a terminal and starts the servers of the
config. Without a terminal it runs "goblin stdio", the command for MCP clients.

The config is --config FILE, $GOBLIN_CONFIG, or goblin/config.yaml in
$XDG_CONFIG_HOME or ~/.config, in this order. Without one, the demo servers run.

Exit codes: 0 ok, 1 failure, 2 usage, 3 config, 4 cannot connect, 6 timeout,
7 not found.`

//go:generate go test ./gateway/e2e -run ^TestCommandReferenceIsCurrent$ -update

func newRoot(p *serve.Process) *cobra.Command {
	var (
		tui, printVersion bool
		tuiTTY            string
	)
	a := p.App
	root := &cobra.Command{
		Use:   "goblin",
		Short: "Serve many MCP servers as one",
		Long:  longHelp,
		Example: `  goblin                         open the UI
  goblin stdio                   serve one client (clients run this)
  goblin list tools              list the tools of all servers
  goblin search what time is it  search for a tool
  goblin read goblin://servers   read a resource`,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.NoCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case printVersion:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "goblin", a.Version.Version)
				return err
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
	root.SuggestionsMinimumDistance = 2
	// Cobra's own flag needs a template, for which the linker keeps all exported methods.
	root.Flags().BoolVarP(&printVersion, "version", "v", false, "version for goblin")
	cli.NameFlag(root.Flags(), &a.ConfigFlag, "config", "use this config `FILE`")
	root.Flags().Var(newOneOf(&p.Theme, theme.Themes()...), "theme", "colors of the UI: "+strings.Join(theme.Themes(), ", "))
	root.Flags().BoolVar(&p.ASCII, "ascii", false, "draw the UI with ASCII characters only")
	root.Flags().BoolVar(&tui, "tui", false, "serve MCP on stdin and stdout, and open the UI on the terminal")
	cli.NameFlag(root.Flags(), &tuiTTY, "tui-tty", "like --tui, on this `TERMINAL` instead of /dev/tty")
	root.SetHelpCommand(a.Help())
	root.AddGroup(cli.Groups()...)
	root.AddCommand(stdioCommand(p), serveCommand(p), devCommand(p), openCommand(p), daemonCommand(p), demoCommand(p), replayServerCommand(p))
	root.AddCommand((&command.App{App: a, Extend: p.Extend, Choose: newChooser(p)}).Commands()...)
	setCompletions(root)
	shareFlags(root)
	return root
}

// newChooser returns a function that lets the user choose items at the terminal.
func newChooser(p *serve.Process) command.SelectFunc {
	return func(ctx context.Context, c *command.Selection) (bool, error) {
		list := &checklist.List{Title: c.Title, About: c.About, Switch: c.Switch, On: c.On}
		for _, it := range c.Items {
			list.Items = append(list.Items, checklist.Item(it))
		}
		l := theme.New(theme.Options{Theme: p.Theme, ASCII: p.ASCII, Getenv: p.App.Getenv})
		ok, err := checklist.Ask(ctx, p.In, p.Err, l, list)
		for i := range c.Items {
			c.Items[i].On = list.Items[i].On
		}
		c.On = list.On
		return ok, err
	}
}

// shareFlags adds the root's --theme, --ascii and --config to all commands. Help shows
// only --config.
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

// addConfigFlag adds --config to a command and its subcommands, except those marked with
// [cli.NoConfig].
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

// setCompletions defines the shell completions. Only commands that take files complete
// files.
func setCompletions(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.ValidArgs == nil && c.ValidArgsFunction == nil && c.Name() != "lua" {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	themes := cobra.FixedCompletions(theme.Themes(), cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("theme", themes); err != nil {
		panic(err) // unreachable: the flag exists
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Short, c.Long = "Print shell completions", "Print completions for a shell. Each shell's help explains how to install them."
		c.GroupID = cli.GroupOther
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			return cli.Usage(cmd, "completion needs a shell: bash, fish, powershell or zsh")
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

type oneOf struct {
	value *string
	words []string
}

func newOneOf(value *string, words ...string) *oneOf { return &oneOf{value, words} }

// String implements [pflag.Value].
func (o *oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

// Type implements [pflag.Value]. Help shows it as the name of the value.
func (o *oneOf) Type() string { return "NAME" }

// Set implements [pflag.Value].
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
		Long: `Serve MCP over stdio for one client. MCP clients run this command.

All clients of a config share one daemon, which runs the servers. The first
"goblin stdio" starts it in the background. It exits gateway.linger (1m) after
its last client disconnects. If it crashes, clients continue with a new one.`,
		Example: `  goblin stdio
  goblin stdio --config ~/projects/goblin.yaml
  goblin stdio --profile coding
  goblin stdio --standalone
  goblin stdio --standalone --rule '{when: "method:tools/call", then: fail, count: 1}'
  goblin stdio --replay recording.jsonl`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("rule") && !standalone {
				return cli.Usage(cmd, "--rule needs --standalone, because a daemon's rules apply to all its clients; use \"rules\" in the config, or goblin serve --rule")
			}
			return p.Stdio(cmd.Context(), standalone, profile)
		},
	}
	ruleFlag(cmd, p)
	withReplay(cmd, func(ctx context.Context, r serve.Replay) error { return p.ReplayStdio(ctx, r, profile) })
	cmd.Flags().BoolVar(&standalone, "standalone", false, "run the servers in this process, for this client only")
	cli.NameFlag(cmd.Flags(), &profile, "profile", "give the client only the entries of this `PROFILE`")
	return cmd
}

func serveCommand(p *serve.Process) *cobra.Command {
	var listen, profile, record string
	cmd := &cobra.Command{
		Use:     "serve",
		GroupID: cli.GroupServe,
		Short:   "Serve clients over HTTP and the local socket",
		Long: `Run the daemon in the foreground, without a UI. It serves Streamable HTTP at
/mcp, Prometheus metrics at /metrics, health checks at /healthz and /readyz, and
"goblin stdio" clients of the same config.

The default address is gateway.listen in the config, or ` + serve.DefaultListen + `. To listen
on anything but loopback, set gateway.auth_token. Clients at /mcp/p/PROFILE see
only the entries of that profile.`,
		Example: `  goblin serve
  goblin serve --replay recording.jsonl --fast
  goblin serve --listen 127.0.0.1:9000
  goblin serve --profile coding
  goblin serve --record ~/recordings
  goblin serve --rule '{when: "server:files", then: delay, delay: 2s, p: 0.1}'
  curl http://127.0.0.1:7331/healthz`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("record") && record == "" {
				return cli.Usage(cmd, "--record needs a folder")
			}
			if cmd.Flags().Changed("listen") {
				// The config decides whether the address needs a token.
				if err := config.CheckListen(listen, "any"); err != nil {
					return cli.Usage(cmd, "--listen: %v", err)
				}
			}
			return p.Serve(cmd.Context(), listen, profile, record)
		},
	}
	ruleFlag(cmd, p)
	withReplay(cmd, func(ctx context.Context, r serve.Replay) error { return p.ReplayHTTP(ctx, r, listen, profile) })
	cmd.Flags().StringVar(&listen, "listen", "", "listen on this `ADDRESS`, as HOST:PORT")
	cmd.Flags().StringVar(&record, "record", "", "record all traffic into this private `FOLDER`; \"record\" in the config sets its limits")
	cli.NameFlag(cmd.Flags(), &profile, "profile", "give clients at /mcp only the entries of this `PROFILE`, regardless of \"clients\" in the config")
	return cmd
}

func devCommand(p *serve.Process) *cobra.Command {
	var d serve.Dev
	cmd := &cobra.Command{
		Use:     "dev [flags] -- COMMAND [ARG]...",
		GroupID: cli.GroupServe,
		Short:   "Rebuild and restart a server when files change",
		Long: `Run one stdio server with the UI. When files change, build it, restart it and
compare its definitions with those before. Clients stay connected.

The running server stays until a build succeeds. A change during a build starts
it again. Without --watch, source files in this folder count, except those in
hidden folders, packages and build outputs. Without a terminal, dev prints
builds, restarts and differences until Ctrl-C.

The server gets the whole environment. Its tools are listed as dev_TOOL.`,
		Example: `  goblin dev -- python server.py
  goblin dev --build 'npm run build' -- node dist/index.js
  goblin dev --watch 'src/**' --watch '!**/*_test.go' --build 'go build -o srv .' -- ./srv`,
		Annotations: cli.NoConfigAnnotations(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return cli.Usage(cmd, "dev needs a command after --")
			}
			return serve.CheckDevName(d.Name)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := (&config.Server{Watch: d.Watch}).Globs(); err != nil {
				return cli.Usage(cmd, "--watch: %v", err)
			}
			if err := config.CheckListen(d.Listen, ""); d.Listen != "" && err != nil {
				return cli.Usage(cmd, "--listen: %v", err)
			}
			d.Command = args
			return p.Dev(cmd.Context(), d)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the command are its own
	cmd.Flags().StringArrayVar(&d.Watch, "watch", nil, "watch files that match this `GLOB`; may be repeated")
	cli.NameFlag(cmd.Flags(), &d.Build, "build", "build with this shell `COMMAND` before each start")
	cli.NameFlag(cmd.Flags(), &d.Listen, "listen", "also serve HTTP on this loopback `ADDRESS`, as HOST:PORT")
	d.Name = "dev"
	cli.NameFlag(cmd.Flags(), &d.Name, "name", "list the server's entries under this `NAME`")
	return cmd
}

// ruleFlag adds --rule, whose rules apply before those of the config.
func ruleFlag(cmd *cobra.Command, p *serve.Process) {
	var texts []string
	cmd.Flags().StringArrayVar(&texts, "rule", nil, "stop, change or answer requests by this `RULE`, as in \"rules\" in the config; repeatable")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if p.Rules, err = config.ParseRules(texts); err != nil {
			return cli.Usage(cmd, "--rule: %v", err)
		}
		return run(cmd, args)
	}
}

// daemonCommand returns the hidden command that runs a detached daemon.
func daemonCommand(p *serve.Process) *cobra.Command {
	var useDemo bool
	cmd := &cobra.Command{
		Use: "daemon", Hidden: true, Args: cli.NoArgs,
		Aliases: []string{"host"}, // bridges of older versions use this name
		Short:   "Run the background daemon (started by goblin stdio)",
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
		Short: "Run a demo server on stdin and stdout",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)(cmd, args); err != nil {
				return cli.Usage(cmd, "demo-server needs one of %v", demo.Names())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, out := p.Streams()
			return demo.Run(cmd.Context(), args[0], in, out)
		},
	}
}

// maxOpenRequests is the highest value of --requests.
const maxOpenRequests = 1_000_000

func openCommand(p *serve.Process) *cobra.Command {
	var o archive.Options
	cmd := &cobra.Command{
		Use:     "open FILE [FILTER]...",
		GroupID: cli.GroupRecord,
		Short:   "Show a recording in the UI",
		Long: `Show a recording in the UI: its servers, catalog, sessions, traffic and logs, as
they were at its end. It is read-only: no server is started and nothing is sent.

FILE may be a folder; all its files are shown. FILTER is as for goblin traffic. Of
a large recording, the newest requests are shown; the UI shows how many are
missing. Damaged parts are listed in Logs.`,
		Example: `  goblin open night.jsonl.gz
  goblin open recordings since:2h
  goblin open night.jsonl --requests 100000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "open needs a recording: a file or a folder")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Requests < 1 || o.Requests > maxOpenRequests {
				return cli.Usage(cmd, "--requests must be a number from 1 to %d, not %d", maxOpenRequests, o.Requests)
			}
			o.Filter = strings.Join(args[1:], " ")
			return p.OpenRecording(cmd.Context(), args[0], o, showArchive)
		},
		ValidArgsFunction: command.CompleteFileAndFilter,
	}
	cmd.Flags().IntVar(&o.Requests, "requests", archive.DefaultRequests, "show the newest `NUMBER` of requests")
	return cmd
}

// showArchive runs the UI over a recording.
func showArchive(ctx context.Context, r *serve.Recording, c *remoteui.Conn) error {
	view := tui.New(tui.Options{
		Registry: r.Registry, Theme: cmp.Or(c.Theme(), r.Theme), ASCII: c.ASCII(), Images: r.Images, Keys: r.Keys,
		Recording: &tui.Recording{Name: r.Name, Start: r.Start, End: r.End, Summary: r.Summary()},
		Daemon:    tui.Daemon{Config: r.Name, Command: r.Command},
	})
	return view.Run(ctx, archive.Backend{Archive: r.Archive, Store: callstore.Store{Folder: r.Saved}}, c)
}

// withReplay adds the flags that serve a recording instead of real servers. With --replay,
// run replaces the command.
func withReplay(cmd *cobra.Command, run func(ctx context.Context, r serve.Replay) error) {
	var r serve.Replay
	cli.NameFlag(cmd.Flags(), &r.Recording, "replay", "answer as in this recording `FILE` or folder, without the servers")
	answerFlags(cmd, &r)
	real := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.Recording != "" {
			if cmd.Flags().Changed("record") {
				return cli.Usage(cmd, "--record and --replay exclude each other")
			}
			if cmd.Flags().Changed("rule") {
				return cli.Usage(cmd, "--rule and --replay exclude each other")
			}
			return run(cmd.Context(), r)
		}
		for _, name := range []string{"fast", "rules", "missing"} {
			if cmd.Flags().Changed(name) {
				return cli.Usage(cmd, "--%s needs --replay", name)
			}
		}
		return real(cmd, args)
	}
}

func answerFlags(cmd *cobra.Command, r *serve.Replay) {
	cmd.Flags().BoolVar(&r.Fast, "fast", false, "with --replay: skip the recorded waits")
	cli.NameFlag(cmd.Flags(), &r.Rules, "rules", "with --replay: ignore the params that this `FILE` lists")
	r.Missing = serve.MissingFails
	cmd.Flags().Var(newOneOf(&r.Missing, serve.MissingFails, serve.MissingPasses), "missing", "with --replay: requests that were not recorded fail, or pass to the real servers")
}

func replayServerCommand(p *serve.Process) *cobra.Command {
	var r serve.Replay
	cmd := &cobra.Command{
		Use: "replay-server FILE SERVER", Hidden: true,
		Example: "  goblin replay-server recording.jsonl clock",
		Short:   "Answer as a recorded server on stdin and stdout",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usage(cmd, "replay-server needs a recording and the name of a server")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Recording = args[0]
			return p.ReplayServer(cmd.Context(), r, args[1])
		},
	}
	answerFlags(cmd, &r)
	return cmd
}
