package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/calltest"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/mcpclient"
	"goblin/gateway/replay"
	"goblin/gateway/stack"
	"goblin/registry/recording"
	"goblin/registry/savedcall"
	"goblin/registry/termtext"
)

// testFlags are the arguments and flags of "goblin test".
type testFlags struct {
	paths, command                     []string // command follows "--"
	from, junit, sarif, record, filter string
	update, failFast                   bool
	timeout                            time.Duration
}

func (a *App) test() *cobra.Command {
	var f testFlags
	cmd := a.withJSON("print a JSON object per call, then the totals", &cobra.Command{
		Use:     "test [FOLDER|FILE]... [-- COMMAND [ARG]...]",
		GroupID: cli.GroupAsk,
		Short:   "Run saved calls and check the answers",
		Long: `Run saved calls and check the answers. The default is the folder saved beside the
config. The files of a folder run in the order of their names; folders run at the same
time.

Uses the running daemon; otherwise starts the required servers temporarily. With a
COMMAND, tests only that server, by its own names. Elicitations cannot be answered.

Exit codes: 1 a call failed, 2 wrong usage, 3 mistakes in files, 4 no connection.`,
		Example: `  goblin test
  goblin test saved/orders --fail-fast --junit junit.xml
  goblin test smoke -- npx -y @modelcontextprotocol/server-everything
  goblin test --from recording.jsonl --filter server:git
  goblin test saved/orders/one.yaml --update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.paths = args
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				f.paths, f.command = args[:at], args[at:]
			}
			if err := a.checkTest(cmd, &f); err != nil {
				return err
			}
			return a.runTest(cmd.Context(), cmd, &f)
		},
	})
	flags := cmd.Flags()
	cli.NameFlag(flags, &f.from, "from", "test the servers of this recording: a `FILE` or folder")
	cli.NameFlag(flags, &f.filter, "filter", "only calls that match `TEXT`; fields: folder, name, tool, server")
	cli.NameFlag(flags, &f.junit, "junit", "write the results as JUnit XML to `FILE`")
	cli.NameFlag(flags, &f.sarif, "sarif", "write findings about definitions as SARIF to `FILE`")
	cli.NameFlag(flags, &f.record, "record", "record the run in this `FOLDER`, with servers of its own")
	flags.BoolVar(&f.update, "update", false, "accept changed answers and definitions")
	flags.BoolVar(&f.failFast, "fail-fast", false, "stop after the first failure")
	flags.DurationVar(&f.timeout, "timeout", calltest.DefaultTimeout, "maximum `TIME` per call, such as 30s")
	a.withProfile(cmd)
	return cmd
}

func (a *App) checkTest(cmd *cobra.Command, f *testFlags) error {
	isCommand := cmd.ArgsLenAtDash() >= 0
	switch {
	case isCommand && (len(f.command) == 0 || f.command[0] == ""):
		return cli.Usage(cmd, "test needs a command after \"--\"")
	case isCommand && f.from != "":
		return cli.Usage(cmd, "use --from or a command, not both")
	case isCommand && a.profile != "":
		return cli.Usage(cmd, "a command has no profiles; omit --profile")
	case isCommand && a.ConfigFlag != "":
		return cli.Usage(cmd, "a command needs no config; omit --config")
	case f.timeout <= 0:
		return cli.Usage(cmd, "--timeout must be positive, not %s", f.timeout)
	}
	for name, path := range map[string]string{"junit": f.junit, "sarif": f.sarif} {
		if err := checkOutput(cmd, name, path); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput refuses a file of a flag whose folder is missing, before any server starts.
func checkOutput(cmd *cobra.Command, flag, path string) error {
	if info, err := os.Stat(filepath.Dir(path)); path != "" && (err != nil || !info.IsDir()) {
		return cli.Usage(cmd, "--%s: folder %q does not exist", flag, filepath.Dir(path))
	}
	return nil
}

// loadCalls prints all mistakes in files.
func (a *App) loadCalls(f *testFlags) ([]*savedcall.Call, error) {
	paths, byDefault := f.paths, len(f.paths) == 0
	if byDefault {
		folder, err := a.savedFolder(f)
		if err != nil {
			return nil, err
		}
		paths = []string{folder}
	}
	calls, err := calltest.Load(paths...)
	switch {
	case byDefault && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, calltest.ErrNone)):
		return nil, cli.Fail(cli.CodeUsage, "no saved calls in %s; save some with Ctrl-W in the UI, or name a folder", paths[0])
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, calltest.ErrNone):
		return nil, cli.Fail(cli.CodeUsage, "%w", err)
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			a.Warn("%s", line)
		}
		return nil, errReported(cli.CodeConfig)
	}
	return calls, nil
}

// savedFolder returns the folder of saved calls beside the config. A command has no config.
func (a *App) savedFolder(f *testFlags) (string, error) {
	if f.command != nil {
		return "saved", nil
	}
	path, err := a.FindConfig()
	return cmp.Or(a.SavedDir(&config.Config{Path: path}), "saved"), err
}

// commandServer is the name of a server that is given by its command or URL.
const commandServer = "server"

func (a *App) runTest(ctx context.Context, cmd *cobra.Command, f *testFlags) error {
	filter, err := calltest.ParseFilter(f.filter)
	if err != nil {
		return cli.Usage(cmd, "--filter: %v", err)
	}
	cfg, err := a.testConfig(f)
	if err != nil {
		return err
	}
	calls, err := a.loadCalls(f)
	if err == nil && !filter.NeedsServers() {
		calls, err = filter.Select(ctx, nil, calls)
	}
	if err != nil {
		return filterMistake(cmd, err)
	}
	only := testedServers(cfg, f, calls)
	g, err := a.openTested(ctx, cfg, f, only)
	if err != nil {
		return err
	}
	catalog := &calltest.Catalog{List: g.List, Status: g.Status}
	if f.command != nil || f.from != "" && isCommandRun(f.from, cfg) {
		catalog.Server = commandServer
	}
	if only != nil && !g.IsDaemon() && !a.knows(ctx, g, catalog, calls) {
		// The guess was wrong: an owner's name is not a prefix of the entry's.
		if err := g.Close(); err != nil {
			return err
		}
		if g, err = a.openTested(ctx, cfg, f, nil); err != nil {
			return err
		}
		catalog.List, catalog.Status = g.List, g.Status
	}
	return a.useGateway(ctx, g, func(g Gateway) error {
		if filter.NeedsServers() {
			if calls, err = filter.Select(ctx, catalog, calls); err != nil {
				return filterMistake(cmd, err)
			}
		}
		return a.runCalls(ctx, g, cfg, catalog, f, calls)
	})
}

// knows reports slow servers meanwhile.
func (a *App) knows(ctx context.Context, g Gateway, catalog *calltest.Catalog, calls []*savedcall.Call) bool {
	stop := a.reportWhileWaiting(ctx, g)
	defer stop()
	return catalog.Knows(ctx, calls) || ctx.Err() != nil
}

func filterMistake(cmd *cobra.Command, err error) error {
	if errors.As(err, new(*calltest.FilterError)) {
		return cli.Usage(cmd, "--filter: %v", err)
	}
	return err
}

// testConfig returns the config of the tested servers.
func (a *App) testConfig(f *testFlags) (cfg *config.Config, err error) {
	switch {
	case f.command != nil:
		cfg, err = config.ForCommand(commandServer, f.command)
	case f.from != "":
		program, perr := os.Executable()
		if perr != nil {
			return nil, fmt.Errorf("find this program: %w", perr)
		}
		cfg, err = replay.NewConfig(replay.Setup{Recording: f.from, Program: program, Fast: true})
	default:
		return a.Load()
	}
	if err != nil {
		return nil, err
	}
	if _, ok := cfg.Profile(a.profile); !ok && a.profile != "" {
		return nil, cli.Fail(cli.CodeNotFound, "no profile %q%s", a.profile, cfg.SuggestProfile(a.profile))
	}
	a.MaskSecrets(cfg)
	return cfg, nil
}

// isCommandRun reports whether a recording has only the server of "goblin test -- CMD".
// Calls use that server's own names.
func isCommandRun(path string, cfg *config.Config) bool {
	files, err := recording.Files(path)
	if err != nil || len(files) == 0 || len(cfg.Servers) != 1 || cfg.Servers[0].Name != commandServer {
		return false
	}
	r, err := recording.Open(files[0])
	if err != nil {
		return false
	}
	defer r.Close() //nolint:errcheck // it was only read
	header, err := r.Next()
	return err == nil && header.Config == recording.NoConfig
}

// testedServers guesses the servers that the calls need; nil means all.
func testedServers(cfg *config.Config, f *testFlags, calls []*savedcall.Call) (only []string) {
	kinds := map[savedcall.Kind]kind{savedcall.KindCall: toolKind, savedcall.KindRead: resourceKind, savedcall.KindPrompt: promptKind}
	for _, c := range calls {
		likely := likelyServers(cfg, kinds[c.Kind], c.Name)
		if len(likely) == 0 || f.command != nil || f.from != "" || strings.Contains(c.Name, "${") {
			return nil
		}
		only = append(only, likely...)
	}
	return only
}

// openTested uses the daemon only for the servers of the config, without a recording.
func (a *App) openTested(ctx context.Context, cfg *config.Config, f *testFlags, only []string) (Gateway, error) {
	if f.command == nil && f.from == "" && f.record == "" {
		return a.open(ctx, cfg, only)
	}
	place, _ := a.FindDaemon(cfg.Path) // without an endpoint, children are not recorded
	whole := cfg
	if a.wholeConfig != nil { // listed names depend on all servers
		whole = a.wholeConfig
		if only == nil {
			only = append([]string{}, serverNames(cfg)...)
		}
	}
	g, err := openLocal(a, whole, only, place.Dir, "", func(o *stack.Options) {
		o.Record = f.record
		if f.command != nil {
			o.Extend = nil // no other tools
		}
	})
	if err == nil && a.profile != "" {
		return &profileGateway{g, a.profile}, nil
	}
	return g, err
}

func (a *App) runCalls(ctx context.Context, g Gateway, cfg *config.Config, catalog *calltest.Catalog, f *testFlags, calls []*savedcall.Call) error {
	runner := &calltest.Runner{
		Find: catalog.Find, Env: os.LookupEnv, Timeout: f.timeout, FailFast: f.failFast, Update: f.update, Redact: a.Mask().String,
		Connect: func(ctx context.Context) (calltest.Conn, error) { return a.connectTest(ctx, g, cfg) },
	}
	report := &calltest.Report{Began: time.Now(), Clean: a.Mask().String, Root: a.Getenv("GITHUB_WORKSPACE")}
	var failed error
	interrupted := runner.Run(ctx, calls, func(r savedcall.Result) {
		failed = errors.Join(failed, a.printTested(report, &r))
		r.Answer = savedcall.Answer{Time: r.Answer.Time} // answers may be large
		report.Results = append(report.Results, r)
	})
	report.Took = time.Since(report.Began)
	report.Sort()
	failed = errors.Join(failed, a.printTotals(report), a.writeReports(report, f))
	t := report.Totals()
	switch {
	case interrupted != nil:
		return errors.Join(interrupted, failed)
	case failed != nil:
		return failed
	case t.Failed > 0 && t.Failed == t.Unreachable:
		return errReported(cli.CodeConnect)
	case t.Failed > 0:
		return errReported(cli.CodeFailure)
	}
	return nil
}

func (a *App) connectTest(ctx context.Context, g Gateway, cfg *config.Config) (calltest.Conn, error) {
	conn, err := g.Connect(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return calltest.Open(ctx, conn, mcpclient.Options{
		Name: mcpclient.CommandName, Title: mcpclient.CommandTitle, Version: a.Version.Version, Revision: revision, MaxMessage: cfg.Gateway.Limits.Frame,
		CheckAlive: func(ctx context.Context) error {
			_, err := g.Status(ctx)
			return err
		},
	})
}

func (a *App) printTested(report *calltest.Report, r *savedcall.Result) error {
	if a.IsGitHub() {
		fmt.Fprint(a.Err, a.ForLog(report.Annotations(r)))
	}
	if a.asJSON {
		return a.printLine(report.JSON(r))
	}
	return a.printText(a.ForLog(report.Text(r)))
}

func (a *App) printTotals(report *calltest.Report) error {
	t := report.Totals()
	if a.asJSON {
		return a.printLine(map[string]any{"summary": t})
	}
	return a.printText(fmt.Sprintf("%s in %s", t, termtext.Duration(report.Took)))
}

// writeReports writes the files for CI systems.
func (a *App) writeReports(report *calltest.Report, f *testFlags) error {
	var failed error
	if f.junit != "" {
		text, err := report.JUnit()
		if err == nil {
			err = calltest.WriteFile(f.junit, text)
		}
		failed = errors.Join(failed, err)
	}
	if f.sarif != "" {
		failed = errors.Join(failed, calltest.WriteFile(f.sarif, report.SARIF(a.Version.Version)))
	}
	if path := a.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := calltest.AppendFile(path, report.Summary()); err != nil { // a container may lack the file
			a.Warn("the summary of the job is not written: %v", err)
		}
	}
	return failed
}
