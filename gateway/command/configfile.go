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

// editableConfig opens the config for a change. The file may be missing.
func (a *App) editableConfig(open func(path string) (*configedit.File, error)) (*configedit.File, error) {
	path := cmp.Or(a.ConfigFlag, a.Getenv("GOBLIN_CONFIG"), config.DefaultPath(a.Getenv))
	if path == "" {
		return nil, cli.Fail(cli.CodeConfig, "there is no place for a config: set HOME, or name a file by --config")
	}
	return open(path)
}

// save writes a config, and waits until a running daemon uses it.
func (a *App) save(ctx context.Context, f *configedit.File) error {
	place, unknown := a.FindDaemon(f.Path()) // a daemon is where the text before says
	err := f.Save()
	if err == nil && unknown == nil {
		_ = daemon.Remote{Place: place}.ReloadAll(ctx) // where none runs, nothing follows
	}
	return err
}

// maxTries is how often a change is repeated because another process changed the file.
const maxTries = 50

// maxConfig is the largest config that is read, in bytes.
const maxConfig = 4 << 20

// canStart reports whether Goblin starts a server.
func canStart(s *config.Server) bool { return !s.Disabled && s.Problem == "" }

// checkUsable returns an error if a named server is unknown or cannot start.
func checkUsable(cfg *config.Config, name string) error {
	s, ok := cfg.Server(name)
	switch {
	case !ok:
		return cli.Fail(cli.CodeNotFound, "there is no server %q%s", name, cli.Suggest(name, serverNames(cfg), "; the config names none"))
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

// configName returns the name of a config for users.
func configName(cfg *config.Config) string {
	return fileName(cfg.Path)
}

// fileName returns the name of a config file for users, "" being the demo.
func fileName(path string) string {
	if path == "" {
		return "the demo config"
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
