package command

import (
	"cmp"
	"context"
	"path/filepath"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/daemon"
)

// editableConfig accepts a missing file.
func (a *App) editableConfig(open func(path string) (*configedit.File, error)) (*configedit.File, error) {
	path := cmp.Or(a.ConfigFlag, a.Getenv("GOBLIN_CONFIG"), config.DefaultPath(a.Getenv))
	if path == "" {
		return nil, cli.Fail(cli.CodeConfig, "no folder for a config; set HOME or use --config FILE")
	}
	return open(path)
}

// save waits until a running daemon has reloaded the config.
func (a *App) save(ctx context.Context, f *configedit.File) error {
	place, unknown := a.FindDaemon(f.Path()) // before Save: the text determines the daemon's endpoint
	err := f.Save()
	if err == nil && unknown == nil {
		_ = daemon.Remote{Place: place}.ReloadAll(ctx) // fails if no daemon runs
	}
	return err
}

// maxTries limits retries after another process changed the file.
const maxTries = 50

// maxConfig is in bytes.
const maxConfig = 4 << 20

func canStart(s *config.Server) bool { return !s.Disabled && s.Problem == "" }

func checkUsable(cfg *config.Config, name string) error {
	s, ok := cfg.Server(name)
	switch {
	case !ok:
		return cli.Fail(cli.CodeNotFound, "no server %q%s", name, cli.Suggest(name, serverNames(cfg), "; the config has no servers"))
	case s.Disabled:
		return cli.Fail(cli.CodeConnect, "server %q is disabled; remove \"disabled: true\" from %s", name, configName(cfg))
	case s.Problem != "":
		return cli.Fail(cli.CodeConnect, "server %q cannot start: %s", name, s.Problem)
	}
	return nil
}

func serverNames(cfg *config.Config) []string {
	return each(cfg.Servers, func(s *config.Server) string { return s.Name })
}

func configName(cfg *config.Config) string {
	return fileName(cfg.Path)
}

// fileName returns a config's file name for users; "" is the demo.
func fileName(path string) string {
	if path == "" {
		return "the demo config"
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
