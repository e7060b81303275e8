package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/stack"
)

// App provides the commands of the command line.
type App struct {
	*cli.App
	// Extend extends each gateway in this process. It may be nil.
	Extend stack.ExtendFunc
	// Open finds or starts the gateway for a command. Nil means [Open].
	Open func(ctx context.Context, a *App, cfg *config.Config, only []string) (Gateway, error)

	// Choose lets the user choose items on the terminal. Nil selects all.
	Choose SelectFunc

	asJSON      bool           // --json of the current command
	profile     string         // --profile of the current command; "" is all entries
	wholeConfig *config.Config // the config before Load reduced it to a profile
	testDelay   time.Duration  // 0 in production
	program     string         // path of this program; "" finds it
}

// Commands returns all commands except the serving ones.
func (a *App) Commands() []*cobra.Command {
	commands := []*cobra.Command{
		a.list(), a.search(), a.describe(), a.read(), a.watch(), a.call(), a.prompt(), a.lua(), a.replay(), a.diff(),
		a.status(), a.logs(), a.changes(), a.traffic(), a.export(), a.usage(), a.stop(), a.restart(), a.login(), a.logout(), a.approve(),
		a.test(), a.check(), a.doctor(), a.init(), a.install(), a.uninstall(), a.registry(), a.add(), a.remove(), a.enable(), a.disable(), a.edit(), a.secret(), a.validate(), a.version(), a.reap(),
	}
	commands = append(commands, a.toggleCommands()...)
	for _, one := range tagCommands {
		commands = append(commands, one(a))
	}
	for _, cmd := range commands {
		reportInterrupts(cmd)
		for _, sub := range cmd.Commands() {
			reportInterrupts(sub)
		}
	}
	return commands
}

// reportInterrupts makes a command return context.Canceled after an interrupt, regardless
// of the error that the interrupt caused.
func reportInterrupts(cmd *cobra.Command) {
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err, ctx := run(cmd, args), cmd.Context()
		if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return context.Canceled
		}
		return err
	}
}

// tagCommands are the commands of builds with tags.
var tagCommands []func(*App) *cobra.Command

// errReported returns an error for a failure that the command has already reported.
func errReported(code int) error { return &cli.Error{Code: code} }

// quietLogger returns a logger for commands that report server failures themselves.
func (a *App) quietLogger(cfg *config.Config) (*slog.Logger, io.Closer, error) {
	logger, closer, err := a.Logger(cfg, a.Err)
	if err == nil && cfg.Log.File == "" && cfg.Log.Level > slog.LevelDebug {
		logger = slog.New(slog.DiscardHandler)
	}
	return logger, closer, err
}
