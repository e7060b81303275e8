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

// App makes the commands of a command line.
type App struct {
	*cli.App
	// Extend adds to each gateway of this process; may be nil.
	Extend stack.ExtendFunc
	// Open finds or starts the gateway that a command asks; nil for [Open].
	Open func(ctx context.Context, a *App, cfg *config.Config, only []string) (Gateway, error)

	// Choose puts a question to the user of the terminal; nil takes all.
	Choose ChooseFunc

	profile  string         // --profile of what asks, "" for everything
	whole    *config.Config // of which the config that is loaded is the profile's part
	patience time.Duration  // 0: the constant
	program  string         // the path of this program; "" finds it
}

// Commands are the commands that need no wiring.
func (a *App) Commands() []*cobra.Command {
	commands := []*cobra.Command{
		a.list(), a.search(), a.describe(), a.read(), a.call(), a.prompt(), a.lua(),
		a.status(), a.logs(), a.usage(), a.stop(), a.restart(), a.login(), a.logout(), a.approve(),
		a.doctor(), a.init(), a.install(), a.uninstall(), a.registry(), a.add(), a.remove(), a.enable(), a.disable(), a.edit(), a.secret(), a.validate(), a.version(), a.reap(),
	}
	commands = append(commands, a.switchable()...)
	for _, one := range more {
		commands = append(commands, one(a))
	}
	return commands
}

// more are the commands that only builds with tags have.
var more []func(*App) *cobra.Command

// oneArg wants one argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cli.Usage(cmd, "%s needs %s", cli.Called(cmd), what)
		case len(args) > 1:
			return cli.Usage(cmd, "%s takes only %s, but got %q too; quote what has spaces", cli.Called(cmd), what, args[1])
		case args[0] == "":
			return cli.Usage(cmd, "%s needs %s, not an empty text", cli.Called(cmd), what)
		}
		return nil
	}
}

// errTold ends a command that has told of its failure itself.
func errTold(code int) error { return &cli.Error{Code: code} }

// interrupted replaces what a broken connection says by its true reason.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled
	}
	return err
}

// quiet is the logger of commands that ask one thing: what goes wrong with a
// server is told by the command itself.
func (a *App) quiet(cfg *config.Config) (*slog.Logger, io.Closer, error) {
	logger, closer, err := a.Logger(cfg, a.Err)
	if err == nil && cfg.Log.File == "" && cfg.Log.Level > slog.LevelDebug {
		logger = slog.New(slog.DiscardHandler)
	}
	return logger, closer, err
}
