package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goblin/gateway/calltest"
	"goblin/gateway/config"
	"goblin/gateway/devloop"
	"goblin/gateway/mcpclient"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/savedcall"
	"goblin/registry/termtext"
)

// newBuilds returns the loops of servers that are rebuilt when files change.
func (i *Stack) newBuilds() *devloop.Manager {
	m := devloop.New(devloop.Options{
		Registry: i.registry, Children: i.children, Redact: i.o.Mask.String,
		Restart: func(server string) error { return i.gateway.Servers.Restart(server) },
		Resolve: func(ctx context.Context, s *config.Server) (*config.Server, error) {
			now, err := s.Resolve(ctx, i.o.Resolve)
			i.o.Mask.AddServerSecrets(now)
			return now.Server, err
		},
		Note: i.noteBuild, Changed: i.notify, Check: i.checkCalls,
	})
	return m
}

// checkCalls runs the marked saved calls of a server.
func (i *Stack) checkCalls(ctx context.Context, s *config.Server) (results []registry.BuildCheck) {
	if _, err := os.Stat(i.o.Saved); i.o.Saved == "" || err != nil {
		return nil // usually there are none
	}
	fail := func(name, text string) {
		results = append(results, registry.BuildCheck{Name: name, Text: i.o.Mask.String(text)})
	}
	calls, err := calltest.Load(i.o.Saved)
	if err != nil && !errors.Is(err, calltest.ErrNone) {
		fail("saved calls", termtext.FirstLine(err.Error()))
	}
	catalog := &calltest.Catalog{List: i.List, Status: i.Status}
	calls = slices.DeleteFunc(calls, func(c *savedcall.Call) bool { return !c.Dev || !i.concerns(ctx, catalog, c, s.Name) })
	runner := &calltest.Runner{Find: catalog.Find, Env: os.LookupEnv, Redact: i.o.Mask.String, Connect: func(ctx context.Context) (calltest.Conn, error) {
		return calltest.Open(ctx, i.Connect(ctx, AllEntries), mcpclient.Options{Name: "goblin", Title: "Goblin dev", Version: i.o.Version, MaxMessage: i.o.Config.Gateway.Limits.Frame})
	}}
	_ = runner.Run(ctx, calls, func(r savedcall.Result) { // interrupted by a newer change
		name := r.Call.Path
		if within, err := filepath.Rel(filepath.Dir(i.o.Saved), name); err == nil {
			name = filepath.ToSlash(within)
		}
		if r.State == savedcall.Passed {
			results = append(results, registry.BuildCheck{Name: name, OK: true})
			return
		}
		text := string(r.State)
		if all := r.Failures(); len(all) > 0 {
			text = fmt.Sprintf("line %d: %s", all[0].Line, all[0].String())
		}
		fail(name, text)
	})
	slices.SortFunc(results, func(a, b registry.BuildCheck) int { return strings.Compare(a.Name, b.Name) })
	return results
}

// concerns reports whether a call goes to a server, or did before its entry was removed.
func (i *Stack) concerns(ctx context.Context, catalog *calltest.Catalog, c *savedcall.Call, server string) bool {
	target, err := catalog.Find(ctx, c.Kind, c.Name)
	if err == nil && target.Server != "" {
		return target.Server == server
	}
	return len(i.gateway.Servers.Names()) == 1 || strings.HasPrefix(c.Name, server)
}

// noteBuild logs a line, and adds it to the journal as a build's.
func (i *Stack) noteBuild(level slog.Level, server, text string) {
	i.registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: server, Level: level, Source: registry.SourceBuild, Text: text,
	})
	i.o.Logger.Log(upstream.WithoutJournal(), level, "build loop", "server", server, "text", text)
}

// applyBuilds must run before the servers change, since new ones wait for their builds.
func (i *Stack) applyBuilds(cfg *config.Config) {
	if cfg.Demo {
		return
	}
	all := slices.Clone(cfg.Servers)
	all = slices.DeleteFunc(all, func(s config.Server) bool { return i.o.Only != nil && !slices.Contains(i.o.Only, s.Name) })
	for n := range all {
		if all[n].Cwd == "" {
			all[n].Cwd = filepath.Dir(cfg.Path)
		}
	}
	i.builds.Apply(all)
}
