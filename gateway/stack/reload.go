package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"goblin/gateway/config"
	"goblin/registry"
)

// updateEndpoint adds the endpoint of the edited config, even if the config has mistakes.
func (i *Stack) updateEndpoint() {
	if i.listener == nil || i.o.FindEndpoint == nil {
		return
	}
	place, err := i.o.FindEndpoint()
	if err != nil {
		return // config.Load reports it
	}
	if err := i.listener.AddEndpoint(place); err != nil {
		i.o.Logger.Warn("new clients of the edited config get another daemon", "err", err)
	}
}

// watchEnvFile replaces the watched env_file.
func (i *Stack) watchEnvFile(envFile string) {
	select {
	case <-i.envFiles: // drop an unread one
	default:
	}
	i.envFiles <- envFile
}

func (i *Stack) configMistakes(err error) []registry.Mistake {
	bad, ok := errors.AsType[*config.Errors](err)
	if !ok {
		return []registry.Mistake{{File: i.configName(), Text: i.o.Mask.String(err.Error())}}
	}
	all := make([]registry.Mistake, len(bad.Problems))
	for n, p := range bad.Problems {
		file := p.File
		if file == i.o.Config.Path {
			file = i.configName() // editors need the whole path
		}
		all[n] = registry.Mistake{File: file, Line: p.Line, Text: i.o.Mask.String(p.Text)}
	}
	return all
}

// Reload applies the config file. A file with mistakes changes nothing; they are logged
// and shown until it is valid. Servers, profiles, clients, rules, record and the liveSettings of
// package config apply at once. Other settings apply at the next start, with a warning. The demo and daemons of
// selected servers have no file.
func (i *Stack) Reload() { i.reload(false) }

// ReloadNow is Reload on request. It also logs that nothing changed.
func (i *Stack) ReloadNow() {
	if !i.reload(false) {
		i.o.Logger.Info("config unchanged")
	}
}

// ReloadAll implements [daemon.Gateway]. It also accepts a file without servers.
func (i *Stack) ReloadAll(context.Context) error {
	i.reload(true)
	return nil
}

// reportInvalid logs and shows the mistakes of an edited config. The caller holds
// reloadMu.
func (i *Stack) reportInvalid(err error) {
	mistakes := strings.Split(i.o.Mask.String(err.Error()), "\n")
	for _, text := range mistakes {
		i.o.Logger.Error("config not reloaded", "err", text)
	}
	notice := "config not reloaded: " + mistakes[0]
	if more := len(mistakes) - 1; more > 0 {
		notice += fmt.Sprintf(" (and %d more: goblin validate)", more)
	}
	i.editWarning.Store(&notice)
	i.registry.SetMistakes(i.configMistakes(err))
	i.notify()
	i.configInvalid = true
}

// serves reports whether the served config has the same settings, profiles and rules. The
// caller holds reloadMu.
func (i *Stack) serves(cfg *config.Config) bool {
	return len(i.servedConfig.DifferingSettings(cfg))+len(i.servedConfig.DifferingLiveSettings(cfg)) == 0 && i.servedConfig.ProfilesEqual(cfg) && i.servedConfig.RulesEqual(cfg)
}

// reload reports whether it logged anything. meant accepts a file without servers.
func (i *Stack) reload(meant bool) bool {
	if i.o.Config.Demo || i.o.Only != nil {
		return true // no file to report on
	}
	i.reloadMu.Lock()
	defer i.reloadMu.Unlock()
	i.updateEndpoint()
	cfg, err := config.Load(i.o.Config.Path)
	if bad, ok := errors.AsType[*config.Errors](err); ok {
		i.watchEnvFile(bad.EnvFile) // it may be the missing file
	} else if err == nil {
		i.watchEnvFile(cfg.EnvFile)
	}
	if err == nil && !meant && len(cfg.Servers) == 0 && len(i.servedConfig.Servers) > 0 {
		// the file is usually half-written
		err = &config.Errors{Problems: []config.Problem{{File: i.o.Config.Path, Text: "no servers configured; to stop Goblin, run goblin stop"}}}
	}
	if err != nil {
		i.reportInvalid(err)
		return true
	}
	i.o.Mask.Add(cfg)
	i.applyBuilds(cfg)
	i.applyRules(cfg, i.servedConfig.Rules...) // before new servers can be called
	did := i.gateway.Apply(cfg)
	i.applyRules(cfg) // filters and profiles may replace the old rules
	traced := i.applyTraces(cfg)
	later := i.o.Config.DifferingSettings(cfg)
	i.editWarning.Store(nil)
	i.registry.SetMistakes(nil)
	i.registry.SetStyleColors(cfg.TUI.Colors)
	if len(later) > 0 {
		notice := "edited settings take effect at the next start: " + strings.Join(later, ", ")
		i.editWarning.Store(&notice)
	}
	i.notify()
	recordChanged := i.applyRecord(cfg)
	if did.Empty() && !traced && !recordChanged && len(later) == 0 && i.serves(cfg) {
		again := i.configInvalid
		i.configInvalid = false
		if again {
			i.o.Logger.Info("config is valid again")
		}
		return again
	}
	i.configInvalid = false
	for _, w := range cfg.Warnings {
		i.o.Logger.Warn("config warning", "warning", w.String())
	}
	level, args := slog.LevelInfo, []any{"added", did.Added, "changed", did.Changed, "removed", did.Removed}
	if !i.servedConfig.RulesEqual(cfg) {
		args = append(args, "rules", len(cfg.Rules))
	}
	i.servedConfig = cfg
	if len(later) > 0 {
		level, args = slog.LevelWarn, append(args, "from the next start", strings.Join(later, ", "))
	}
	i.o.Logger.Log(i.stopped, level, "config reloaded", args...)
	return true
}
