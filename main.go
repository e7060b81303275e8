// Goblin serves many MCP servers as one MCP server to many clients, and shows
// what they offer. This package owns flags, modes, signals and wiring; what
// MCP means is the gateway's business, and the commands that only ask
// something are those of goblin/gateway/command.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "a.goblin/quiet" // keeps Bubble Tea from asking the terminal
	"github.com/spf13/cobra"

	"goblin/gateway/command"
	"goblin/gateway/config"
	"goblin/gateway/demo"
	"goblin/gateway/host"
	"goblin/gateway/instance"
	"goblin/gateway/upstream"
	"goblin/tui/look"
)

// version is set by the linker for releases.
var version string

// controlling is the terminal that a process belongs to.
const controlling = "/dev/tty"

// defaultListen is where `goblin serve` listens if nothing else is said.
const defaultListen = "127.0.0.1:7331"

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	m := &modes{app: &command.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Version: command.BuildVersion(version),
	}}
	_, m.app.InTTY = command.Terminal(os.Stdin)
	m.app.Columns, m.app.OutTTY = command.Terminal(os.Stdout)
	_, m.app.ErrTTY = command.Terminal(os.Stderr)

	ctx, stop := m.signals()
	defer stop()
	defer m.restore()
	root := m.root()
	root.SetArgs(args)
	return m.app.Report(root.ExecuteContext(ctx))
}

// modes are the commands that serve.
type modes struct {
	app *command.App

	theme string // of --theme
	ascii bool   // of --ascii

	mu       sync.Mutex
	restores []func() // undo what was done to streams and terminals
}

// signals gives the context that ends with the first signal to end. The second
// ends the process at once; the kernel or their closed input ends its children.
func (m *modes) signals() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	// A reader that left shows as an error of the write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup sets it
		signal.Notify(caught, syscall.SIGHUP)
	}
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for range 2 {
			select {
			case <-caught:
				if ctx.Err() != nil {
					m.restore()
					upstream.KillAll()
					os.Exit(command.CodeFailure)
				}
				cancel()
			case <-done:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(caught)
		close(done)
		waiting.Wait()
		cancel()
	}
}

// undo adds what restore has to do.
func (m *modes) undo(undo ...func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restores = append(m.restores, undo...)
}

// restore undoes what was done to streams and terminals.
func (m *modes) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, undo := range m.restores {
		undo()
	}
	m.restores = nil
}

// streams are stdin and stdout for MCP, in non-blocking mode where that works.
// What anything else writes to stdout goes to stderr from now on.
func (m *modes) streams() (io.Reader, io.Writer) {
	in, undoIn := command.Unblock(os.Stdin, os.Stderr)
	out, undoOut := command.Unblock(os.Stdout, os.Stderr)
	os.Stdout = os.Stderr
	m.undo(undoOut, undoIn)
	return in, out
}

const about = `Goblin serves all of your MCP servers as one MCP server to all of your clients.

Without a command, on a terminal, it starts the servers of its config and shows
them; clients can connect as long as it runs. Without a command and without a
terminal it is "goblin stdio", which is what MCP clients are told to start.

The config is the file named by --config, else by $GOBLIN_CONFIG, else
goblin/config.yaml in $XDG_CONFIG_HOME or ~/.config, else a built-in demo.

Exit codes: 0 ok, 1 failure, 2 usage, 3 config, 4 cannot connect, 6 timeout,
7 not found.`

func (m *modes) root() *cobra.Command {
	var (
		tui    bool
		tuiTTY string
	)
	a := m.app
	root := &cobra.Command{
		Use:   "goblin",
		Short: "Many MCP servers as one",
		Long:  about,
		Example: `  goblin                         look at your servers, or at the demo
  goblin stdio                   what clients start
  goblin list tools              what the servers offer
  goblin read goblin://servers   read a resource`,
		SilenceErrors: true, SilenceUsage: true,
		Version: a.Version.Version,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage(cmd, "there is no command %q%s", args[0], didYouMean(cmd.SuggestionsFor(args[0])))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case tuiTTY != "":
				return m.both(cmd.Context(), tuiTTY)
			case a.InTTY && a.OutTTY:
				return m.screen(cmd.Context())
			case tui:
				return m.both(cmd.Context(), controlling)
			default:
				return m.stdio(cmd.Context(), false)
			}
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(command.FlagError)
	root.SetVersionTemplate("goblin {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.PersistentFlags().StringVar(&a.ConfigFlag, "config", "", "use this config `FILE`")
	root.PersistentFlags().Var(choice(&m.theme, look.Themes()...), "theme", "colours of the screen: "+strings.Join(look.Themes(), ", "))
	root.PersistentFlags().BoolVar(&m.ascii, "ascii", false, "draw the screen with ASCII characters only")
	root.Flags().BoolVar(&tui, "tui", false, "on pipes: serve MCP there, and show the servers on the terminal")
	root.Flags().StringVar(&tuiTTY, "tui-tty", "", "show them on this `TERMINAL` instead of /dev/tty")
	root.SetHelpCommand(a.Help())
	root.AddGroup(command.Groups()...)
	root.AddCommand(m.stdioCommand(), m.serveCommand(), m.hostCommand(), m.demoCommand())
	root.AddCommand(a.Commands()...)
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			return command.Usage(cmd, "say for which shell: bash, fish, powershell or zsh")
		}
		c.Args = cobra.ArbitraryArgs
	}
	return root
}

// oneOf is a flag that takes one of a few words.
type oneOf struct {
	value *string
	words []string
}

func choice(value *string, words ...string) *oneOf { return &oneOf{value, words} }

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

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", names[0])
}

func (m *modes) stdioCommand() *cobra.Command {
	var standalone bool
	cmd := &cobra.Command{
		Use:     "stdio",
		GroupID: command.GroupServe,
		Short:   "Serve one client on stdin and stdout",
		Long: `Speak MCP on stdin and stdout. This is what MCP clients start.

All clients of a config share one host, which runs the servers: the first
"goblin stdio" starts it in the background, and it ends gateway.linger after its
last client. If it dies, its clients go on with the next one.

--standalone runs the servers in this process instead, for this client alone.`,
		Example: `  goblin stdio
  goblin stdio --config ~/projects/goblin.yaml
  goblin stdio --standalone`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.stdio(cmd.Context(), standalone) },
	}
	cmd.Flags().BoolVar(&standalone, "standalone", false, "run the servers in this process, without a host")
	return cmd
}

func (m *modes) serveCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:     "serve",
		GroupID: command.GroupServe,
		Short:   "Serve clients over HTTP and the local socket",
		Long: `Be the host in the foreground, without a screen. Serves Streamable HTTP at /mcp,
Prometheus metrics at /metrics, /healthz and /readyz, and "goblin stdio" clients
of the same config.

The address is that of --listen, else gateway.listen of the config, else
` + defaultListen + `. One that other machines can reach needs gateway.auth_token.`,
		Example: `  goblin serve
  goblin serve --listen 127.0.0.1:9000
  curl http://127.0.0.1:7331/healthz`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("listen") {
				// Whether it needs a token is the config's business.
				if err := config.CheckListen(listen, "any"); err != nil {
					return command.Usage(cmd, "--listen: %v", err)
				}
			}
			return m.serve(cmd.Context(), listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "listen on this `ADDRESS`, as HOST:PORT")
	return cmd
}

// hostCommand is what a detached host runs.
func (m *modes) hostCommand() *cobra.Command {
	var useDemo bool
	cmd := &cobra.Command{
		Use: "host", Hidden: true, Args: command.NoArgs,
		Short: "Be the host in the background; goblin stdio starts it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := m.app.Load
			if useDemo {
				load = func() (*config.Config, error) { return m.app.LoadFile("") }
			}
			return m.background(cmd.Context(), load)
		},
	}
	cmd.Flags().BoolVar(&useDemo, "demo", false, "serve the built-in demo")
	return cmd
}

func (m *modes) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo-server NAME", Hidden: true, ValidArgs: demo.Names(),
		Short: "Be one of the demo servers on stdin and stdout",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)(cmd, args); err != nil {
				return command.Usage(cmd, "name one demo server of %v", demo.Names())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, out := m.streams()
			return demo.Run(cmd.Context(), args[0], in, out)
		},
	}
}

// setup is what a mode that serves begins with.
type setup struct {
	cfg    *config.Config
	place  host.Place // of the host; not set for one that is alone
	logger *slog.Logger
	closes []io.Closer
}

// kinds of setup, by where the log goes that has no file in the config.
const (
	alone    = iota // to stderr, and there is no socket
	attended        // to stderr
	apart           // to the file beside the socket
)

// prepare loads the config, finds the place of its host and opens the log.
// close must be called at the end.
func (m *modes) prepare(load func() (*config.Config, error), kind int) (*setup, error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	s := &setup{cfg: cfg}
	if kind != alone {
		if s.place, err = m.app.Place(cfg.Path); err != nil {
			return nil, err
		}
	}
	w := m.app.Err
	if kind == apart {
		file, err := host.OpenLog(s.place)
		if err != nil {
			return nil, err
		}
		w, s.closes = file, append(s.closes, file)
	}
	logger, log, err := m.app.Logger(cfg, w)
	if err != nil {
		s.close()
		return nil, err
	}
	s.logger, s.closes = logger, append(s.closes, log)
	return s, nil
}

// close closes the log.
func (s *setup) close() {
	for _, c := range s.closes {
		_ = c.Close() // there is no other place to tell it
	}
}

// stdio serves one client, through the host unless standalone.
func (m *modes) stdio(ctx context.Context, standalone bool) error {
	kind := attended
	if standalone {
		kind = alone
	}
	s, err := m.prepare(m.app.Load, kind)
	if err != nil {
		return err
	}
	defer s.close()
	if m.app.InTTY {
		m.app.Warn("this speaks MCP on stdin and stdout, for a client to start; Ctrl-D ends it")
	}
	in, out := m.streams()
	if !standalone {
		return m.bridge(ctx, s, in, out)
	}
	i, err := instance.New(instance.Options{Config: s.cfg, Version: m.app.Version.Version, Logger: s.logger})
	if err != nil {
		return err
	}
	return together(ctx, i, func(ctx context.Context) error { return i.ServeStdio(ctx, in, out) })
}

// bridge connects a client to the host, which it starts if need be.
func (m *modes) bridge(ctx context.Context, s *setup, in io.Reader, out io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to start the host: %w", err)
	}
	args := []string{"host"}
	if s.cfg.Demo {
		args = append(args, "--demo")
	} else {
		args = append(args, "--config", s.cfg.Path)
	}
	err = host.Bridge(ctx, host.BridgeOptions{
		Connect: func(ctx context.Context) (net.Conn, error) {
			// The file may name other variables by now, and the next host will
			// be found where it says. One that is gone leads to no host, which
			// starting one tells best.
			place, err := m.app.Place(s.cfg.Path)
			if err != nil {
				place = s.place
			}
			return host.DialOrStart(ctx, place, host.KindMCP, exe, args, nil)
		},
		In: in, Out: out, Frame: s.cfg.Gateway.Limits.Frame, Logger: s.logger,
	})
	if err != nil {
		return command.Fail(command.CodeConnect, "%w; \"goblin stdio --standalone\" works without a host", err)
	}
	return nil
}

// together runs a gateway for as long as its use goes on.
func together(ctx context.Context, i *instance.Instance, use func(ctx context.Context) error) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	using, leave := context.WithCancel(ctx)
	defer leave()
	defer context.AfterFunc(i.Stopping(), leave)() // somebody stopped the host
	ended := make(chan error, 1)
	go func() { ended <- i.Run(running) }()
	err := use(using)
	stop()
	return errors.Join(err, <-ended)
}

// serve is the host in the foreground.
func (m *modes) serve(ctx context.Context, listen string) error {
	s, err := m.prepare(m.app.Load, attended)
	if err != nil {
		return err
	}
	defer s.close()
	g := &s.cfg.Gateway
	g.Listen = cmp.Or(listen, g.Listen, defaultListen)
	if err := config.CheckListen(g.Listen, g.AuthToken); err != nil {
		return command.Fail(command.CodeConfig, "%w", err)
	}
	h, err := m.host(s, func(o *instance.Options) { o.HTTPRequired = true })
	var other *host.RunningError
	switch {
	case errors.As(err, &other):
		return fmt.Errorf("a host of this config runs already (pid %d); \"goblin stop\" ends it", other.PID)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another one with --listen", err)
	case err != nil:
		return err
	}
	m.app.Warn("serving %s (pid %d); Ctrl-C ends it", h.Address(), os.Getpid())
	return h.Run(ctx)
}

// background is the host that no terminal is attached to.
func (m *modes) background(ctx context.Context, load func() (*config.Config, error)) error {
	s, err := m.prepare(load, apart)
	if err != nil {
		return err
	}
	defer s.close()
	h, err := m.host(s, func(o *instance.Options) {
		o.Linger = max(s.cfg.Gateway.Linger, time.Nanosecond) // 0 would be for ever
	})
	var other *host.RunningError
	if errors.As(err, &other) {
		return nil // several clients started at once
	}
	if err != nil {
		return err
	}
	return h.Run(ctx)
}
