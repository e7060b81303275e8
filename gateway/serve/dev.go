package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"go.yaml.in/yaml/v3"

	"goblin/gateway/atomicfile"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/filewatch"
	"goblin/gateway/stack"
	"goblin/registry"
	"goblin/registry/termtext"
)

// Dev is a server under development.
type Dev struct {
	Name    string   // in the config and in listed names
	Command []string // a program with its arguments
	Watch   []string // globs; empty: source files
	Build   string   // a command line for the shell, or ""
	Listen  string   // address of HTTP, or ""
}

// Dev runs a daemon with one server, which is built and restarted when files change. On a
// terminal it shows the UI, otherwise it prints builds and restarts until ctx ends.
func (p *Process) Dev(ctx context.Context, d Dev) error {
	file, err := p.writeDevConfig(d)
	if err != nil {
		return err
	}
	p.App.ConfigFlag = file
	if p.App.Saved, err = filepath.Abs("saved"); err != nil {
		return err
	}
	if p.App.InTTY && p.App.OutTTY {
		return p.Screen(ctx)
	}
	s, err := p.prepare(p.App.Load, logToFile)
	if err != nil {
		return err
	}
	defer s.close()
	h, err := p.daemon(s, func(o *stack.Options) { o.HTTPRequired = d.Listen != "" })
	var other *daemon.RunningError
	switch {
	case errors.As(err, &other):
		return fmt.Errorf("this command is already running (pid %d), with the new settings; stop it with \"%s\"", other.PID, p.App.CommandLine("stop"))
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --listen", err)
	case err != nil:
		return err
	}
	p.onHangup(h.ReloadNow)
	defer p.printBuilds(h.Stack)()
	p.App.Warn("clients connect with \"%s\"; press Ctrl-C to stop", termtext.QuoteWords(h.Command...))
	return h.Run(ctx)
}

// devFolder has the written configs. It is below the state folder.
const devFolder = "dev"

// devTitle returns the command in a config of [Process.writeDevConfig], or "" for other
// configs.
func (p *Process) devTitle(cfg *config.Config) string {
	written, err := config.Canonical(filepath.Join(config.StateFolder(p.App.Getenv), devFolder, filepath.Base(cfg.Path)))
	if err != nil || len(cfg.Servers) != 1 {
		return ""
	}
	if path, err := config.Canonical(cfg.Path); err != nil || path != written {
		return ""
	}
	s := cfg.Servers[0]
	return "dev: " + p.App.Mask().String(strings.Join(append([]string{filepath.Base(s.Command)}, s.Args...), " "))
}

// writeDevConfig writes the config of a server under development and returns its path.
// The path depends on the folder and the command, so that each has its own daemon.
func (p *Process) writeDevConfig(d Dev) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	text, err := p.devConfig(d, folder)
	if err != nil {
		return "", err
	}
	stateDir := config.StateFolder(p.App.Getenv)
	if stateDir == "" {
		return "", errors.New("no folder for the config of this server; set HOME or XDG_STATE_HOME")
	}
	dir := filepath.Join(stateDir, devFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("write the config of this server: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", folder, d.Name, d.Command))
	name := config.MakeName(filepath.Base(folder), func(string) bool { return false })
	path := filepath.Join(dir, name+"-"+hex.EncodeToString(sum[:4])+".yaml")
	if err := atomicfile.Write(path, text); err != nil {
		return "", fmt.Errorf("write the config of this server: %w", err)
	}
	return path, nil
}

// devConfig has the user's settings of the UI. An invalid config has none.
func (p *Process) devConfig(d Dev, folder string) ([]byte, error) {
	type object = map[string]any
	command := d.Command[0]
	if !filepath.IsAbs(command) && strings.ContainsAny(command, `/`+string(filepath.Separator)) {
		command = filepath.Join(folder, command) // otherwise it would start at the config's folder
	}
	watch := d.Watch
	if len(watch) == 0 {
		watch = []string{filewatch.Sources}
	}
	server := object{
		"command": literal(command), "args": literals(d.Command[1:]), "cwd": literal(folder),
		"inherit_env": true, "watch": literals(watch),
	}
	if d.Build != "" {
		server["build"] = literal(d.Build)
	}
	gateway := object{
		"pin":    "off", // each build changes definitions
		"linger": "0s",  // a daemon that a client started again builds only for it
	}
	if d.Listen != "" {
		gateway["listen"] = d.Listen
	}
	all := object{"servers": object{d.Name: server}, "gateway": gateway}
	if path, err := p.App.FindConfig(); err == nil && path != "" {
		if cfg, err := config.Load(path); err == nil {
			all["tui"] = object{"theme": cfg.TUI.Theme, "colors": cfg.TUI.Colors, "images": cfg.TUI.Images, "keys": cfg.TUI.Keys}
		}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("write the config of this server: %w", err)
	}
	return append([]byte("# Written by goblin dev. Its next start replaces this file.\n"), text...), nil
}

// literal returns a value of the config that stands for text.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

func literals(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = literal(text)
	}
	return all
}

// maxPrinted limits the lines that printBuilds remembers.
const maxPrinted = 1000

// printBuilds prints builds and restarts on stdout, and the output and failures of servers
// on stderr, until stop is called.
func (p *Process) printBuilds(i *stack.Stack) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var printing sync.WaitGroup
	printing.Go(func() {
		changes := i.Registry().Watch(ctx, registry.Logs)
		next, build := uint64(1), 0
		printed := make(map[string]bool) // lines of stderr since the last build or successful start
		for open := true; open; {
			for _, line := range i.Registry().Logs().Window(next, -1) {
				next = line.Seq + 1
				if s, _ := i.Registry().State(line.Server); s.Build != nil && (s.Build.Number != build || s.State == registry.StateReady) {
					build = s.Build.Number
					clear(printed)
				}
				if len(printed) >= maxPrinted {
					clear(printed)
				}
				switch {
				case line.Source == registry.SourceBuild:
					fmt.Fprintln(p.App.Out, termtext.Line(line.Text))
				case line.Source == registry.SourceStderr && printed[line.Text]:
					// A server that does not start is started again and again.
				case line.Source == registry.SourceStderr, line.Source == registry.SourceGoblin && line.Server != "" && line.Level >= slog.LevelWarn:
					printed[line.Text] = true
					p.App.Warn("%s: %s", line.Server, line.Text)
				}
			}
			_, open = <-changes
		}
	})
	return func() {
		cancel()
		printing.Wait()
	}
}

// CheckDevName returns why a server cannot have a name, or nil.
func CheckDevName(name string) error {
	if !config.ValidName(name) {
		return cli.Fail(cli.CodeUsage, "--name must be letters, digits, \".\", \"_\" and \"-\", and not goblin")
	}
	return nil
}
