package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"goblin/gateway/atomicfile"
	"goblin/gateway/childproc"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/doctor"
	"goblin/gateway/servercheck"
	"goblin/gateway/stack"
	"goblin/registry/report"
	"goblin/registry/termtext"
)

type checkFlags struct {
	strict, read, conformance bool
	sarif                     string
	maxTokens                 int
}

func (a *App) check() *cobra.Command {
	var f checkFlags
	cmd := a.withJSON("print a JSON object", &cobra.Command{
		Use:     "check SERVER | check URL | check -- COMMAND [ARG...]",
		GroupID: cli.GroupDiagnose,
		Short:   "Report what clients will trip over",
		Long: `Start a server once more and check its handshake, output, lists, definitions,
names, sizes, answers and exit. Each finding names its rule, the affected clients
and the fix. gateway/CHECKS.md lists all rules.

No tool is called, except one with an unknown name. Resources are read only with
--read. A command after "--" gets the environment and the folder of the shell.

If an error was found, the exit code is 1. If the server cannot be started, the
exit code is 4 and the diagnosis of "goblin doctor" is printed.`,
		Example: `  goblin check clock
  goblin check --strict --sarif check.sarif -- npx -y my-server
  goblin check https://example.com/mcp --json | jq '.findings[].rule'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 && len(args) > 0 && args[0] != "" {
				return nil
			}
			return oneArg(`a server, a URL, or "--" and a command`)(cmd, args)
		},
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.maxTokens < 1 {
				return cli.Usage(cmd, "--max-tokens must be at least 1")
			}
			if err := checkOutput(cmd, "sarif", f.sarif); err != nil {
				return err
			}
			return a.runCheck(cmd.Context(), &f, args, cmd.ArgsLenAtDash() == 0)
		},
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.strict, "strict", false, "exit with 1 for warnings, too")
	flags.BoolVar(&f.read, "read", false, "read the first 100 listed resources")
	flags.BoolVar(&f.conformance, "conformance", false, "run the official conformance suite, too; needs Node.js")
	flags.IntVar(&f.maxTokens, "max-tokens", servercheck.DefaultMaxTokens, "warn if all tool definitions have more than `N` tokens")
	cli.NameFlag(flags, &f.sarif, "sarif", "write the findings to `FILE` in the format SARIF 2.1.0")
	return cmd
}

func (a *App) runCheck(ctx context.Context, f *checkFlags, args []string, command bool) error {
	cfg, s, err := a.checkedServer(args, command)
	if err != nil {
		return err
	}
	folder, _ := os.Getwd() // without it, there is no project
	o := servercheck.Options{Read: f.read, MaxTokens: f.maxTokens, Options: doctor.Options{
		Config: cfg, Version: a.Version.Version, Logins: a.LoginsDir(), Resolve: a.Secrets().Resolve, Folder: folder, Redact: a.Mask().String,
	}}
	if place, err := a.FindDaemon(cfg.Path); err == nil {
		o.Children = childproc.New(place.Dir, slog.New(slog.DiscardHandler))
	}
	defer o.Children.Close()
	o.Progress = a.showStep
	if !a.ErrTTY {
		o.Progress = a.reportSlowSteps(ctx)
	}
	defer o.Progress("")
	r, err := servercheck.Run(ctx, o, s)
	if err != nil {
		return err
	}
	if f.conformance && r.Diagnosis == nil {
		o.Progress("running the conformance suite")
		if r.Conformance, err = a.runConformance(ctx, cfg, s, r.Protocol); err != nil {
			return err
		}
	}
	o.Progress("")
	return a.printCheck(f, cfg, s, r)
}

func (a *App) printCheck(f *checkFlags, cfg *config.Config, s *config.Server, r *servercheck.Result) error {
	if f.sarif != "" {
		file, line := definitionPlace(cfg, s)
		if err := atomicfile.Write(f.sarif, r.SARIF(a.Version.Version, file, line)); err != nil {
			return fmt.Errorf("write %s: %w", f.sarif, err)
		}
	}
	if d := r.Diagnosis; d != nil {
		found := &doctorResult{State: d.State, Servers: []report.Diagnosis{*d}}
		if err := a.printResult(r, a.ForLog(found.text(true))); err != nil {
			return err
		}
		for _, c := range d.Findings() {
			if c.State == report.Broken {
				subject, fix := fmt.Sprintf("server %q", s.Name), a.withConfigFlag(c.Fix)
				if cfg.Path == "" && s.Name == commandServer {
					subject = cmp.Or(s.URL, s.Command)
					fix = strings.ReplaceAll(c.Fix, termtext.Goblin("login", s.Name), "add it to a config, then run goblin login")
				}
				return cli.Fail(cli.CodeConnect, "%s cannot be checked: %s", subject, strings.TrimSuffix(c.Text+"; "+fix, "; "))
			}
		}
		return errReported(cli.CodeConnect)
	}
	if err := a.printResult(r, a.ForLog(r.Text())); err != nil {
		return err
	}
	if r.Errors > 0 || f.strict && r.Warnings > 0 {
		return errReported(cli.CodeFailure)
	}
	return nil
}

// showStep shows the current step in one line of the terminal, and removes it for "".
func (a *App) showStep(step string) {
	const clear = "\r\x1b[K"
	if step != "" {
		step = termtext.Cut(termtext.Line(step), 60) + " …"
	}
	fmt.Fprint(a.Err, clear+step)
}

// reportSlowSteps returns a function that receives each step, and "" after the last one.
// After each delay, the current step is reported in a line of its own, but only once.
func (a *App) reportSlowSteps(ctx context.Context) func(step string) {
	var current atomic.Pointer[string]
	reported := ""
	stop := a.whileWaiting(ctx, func(context.Context) {
		if step := current.Load(); step != nil && *step != reported {
			reported = *step
			a.Warn("%s …", reported)
		}
	})
	return func(step string) {
		if step == "" {
			stop()
			return
		}
		current.Store(&step)
	}
}

// checkedServer returns the server to check and its config.
func (a *App) checkedServer(args []string, command bool) (cfg *config.Config, s *config.Server, err error) {
	switch {
	case command:
		cfg, err = config.ForCommand(commandServer, args)
	case strings.Contains(args[0], "://"):
		var text []byte
		if text, err = json.Marshal(map[string]any{"servers": map[string]any{commandServer: map[string]any{"url": args[0]}}}); err == nil {
			cfg, err = config.Parse("command line", text, os.LookupEnv)
		}
	default:
		if cfg, err = a.Load(); err != nil {
			return nil, nil, err
		}
		s, ok := cfg.Server(args[0])
		if !ok {
			return nil, nil, checkUsable(cfg, args[0])
		}
		return cfg, s, nil
	}
	if err != nil {
		return nil, nil, cli.Fail(cli.CodeUsage, "%q cannot be checked: %s", args[0], config.Texts(err))
	}
	cfg.Path = ""
	s, ok := cfg.Server(commandServer)
	if !ok {
		return nil, nil, cli.Fail(cli.CodeUsage, "%q cannot be checked: it is Goblin itself", args[0])
	}
	return cfg, s, nil
}

// runConformance serves a server over HTTP for the suite, which speaks nothing else.
func (a *App) runConformance(ctx context.Context, cfg *config.Config, s *config.Server, protocol string) (*servercheck.Conformance, error) {
	own := *cfg
	own.Servers = []config.Server{*s}
	own.Servers[0].Disabled = false
	own.Profiles, own.Clients = nil, nil
	own.Gateway.AuthToken, own.Gateway.Pin, own.Gateway.MetaTools = "", config.PinOff, config.MetaTools{}
	folder, _ := os.Getwd() // without it, there is no project
	i, err := stack.New(stack.Options{
		Config: &own, Version: a.Version.Version, Logger: slog.New(slog.DiscardHandler), HTTP: true, Listen: "127.0.0.1:0", HTTPRequired: true,
		Logins: a.LoginsDir(), Resolve: a.Secrets().Resolve, Folder: folder,
	})
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- i.Run(serving) }()
	result := servercheck.RunConformance(ctx, i.Address(), protocol)
	stop()
	return result, errors.Join(<-ended, ctx.Err())
}

// definitionPlace returns the place of findings: the server's line in the config, or
// without a config line 1 of the command's file. Paths below the working folder are
// relative.
func definitionPlace(cfg *config.Config, s *config.Server) (file string, line int) {
	if cfg.Path == "" || cfg.Demo {
		return commandFile(s), 1
	}
	file = cfg.Path
	if rel, ok := relative(file); ok {
		file = rel
	}
	return file, configedit.Line(cfg.Path, s.Name)
}

// relative returns a path below the working folder without that folder.
func relative(path string) (rel string, ok bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	here, err := os.Getwd()
	if err != nil {
		return "", false
	}
	rel, err = filepath.Rel(here, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// commandFile returns the first file below the working folder among a command's words.
// Without one, it returns the server's name: GitHub refuses findings without a file.
func commandFile(s *config.Server) string {
	for _, word := range append([]string{s.Command}, s.Args...) {
		info, err := os.Stat(word)
		if rel, ok := relative(word); ok && err == nil && info.Mode().IsRegular() {
			return rel
		}
	}
	return s.Name
}
