package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/mcpclient"
	"goblin/gateway/watcher"
	"goblin/registry/termtext"
)

// Limits of watch.
const (
	maxWatched = 100
	minEvery   = 100 * time.Millisecond
)

type watchFlags struct {
	uris  []string
	exec  string
	diff  bool
	every time.Duration
	count int
}

func (a *App) watch() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:     "watch URI...",
		GroupID: cli.GroupAsk,
		Short:   "Print each new content of resources",
		Long: `Subscribe to resources and print their content: now, and after each update, until
Ctrl-C. With several URIs or on a terminal, a line with time and URI comes first.

--exec runs a line in the shell (sh, or cmd.exe on Windows) for each content or
difference, which it gets on stdin; $GOBLIN_URI is the URI. Updates meanwhile
wait, and only the latest content follows.

Uses the running daemon; otherwise starts the required servers.`,
		Example: `  goblin watch clock://now
  goblin watch mcp://notes/note:///welcome --diff
  goblin watch mcp://files/file:///app.log --exec 'grep ERROR && notify-send "$GOBLIN_URI"'
  goblin watch clock://now --every 5s --json | jq -r '.contents[0].text'`,
		ValidArgsFunction: a.complete(resourceKind.list),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > maxWatched {
				return cli.Usage(cmd, "watch needs the URIs of 1 to %d resources", maxWatched)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.uris = slices.Compact(slices.Sorted(slices.Values(args)))
			switch {
			case cmd.Flags().Changed("every") && f.every < minEvery:
				return cli.Usage(cmd, "--every must be at least %s, not %s", minEvery, f.every)
			case cmd.Flags().Changed("exec") && strings.TrimSpace(f.exec) == "":
				return cli.Usage(cmd, "--exec needs a command")
			case f.exec != "" && a.asJSON:
				return cli.Usage(cmd, "--exec and --json exclude each other")
			case f.count < 0:
				return cli.Usage(cmd, "--count must not be negative")
			case slices.ContainsFunc(args, func(uri string) bool { return strings.ContainsRune(uri, 0) || uri == "" }):
				return cli.Usage(cmd, "a URI must not be empty")
			}
			return a.watchResources(cmd.Context(), &f)
		},
	}
	cmd.Flags().StringVar(&f.exec, "exec", "", "run this shell `COMMAND` for each content")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "print the unified difference to the content before, and nothing at first")
	cmd.Flags().DurationVar(&f.every, "every", 0, "read at this `INTERVAL`, such as 5s; for servers without subscriptions")
	cmd.Flags().IntVar(&f.count, "count", 0, "exit after this `NUMBER` of contents; 0 never exits")
	a.withProfile(cmd)
	return a.withJSON("print a JSON object per content: time, uri, and contents or diff", cmd)
}

func (a *App) watchResources(ctx context.Context, f *watchFlags) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	delivered := 0
	err = watcher.Run(ctx, watcher.Options{
		URIs: f.uris, Every: f.every,
		Open: func(ctx context.Context, notify func(string, json.RawMessage)) (*mcpclient.Client, func(), error) {
			return a.watchSession(ctx, cfg, f, notify)
		},
		Warn: func(format string, args ...any) {
			a.Warn("%s", a.Mask().String(termtext.Line(fmt.Sprintf(format, args...))))
		},
		Deliver: func(ctx context.Context, u *watcher.Update) error {
			if f.diff && u.First {
				return nil
			}
			if err := a.deliver(ctx, f, u); err != nil {
				return err
			}
			if delivered++; delivered == f.count {
				return watcher.ErrStop
			}
			return nil
		},
	})
	return watchError(err)
}

// watchSession opens a session at the daemon, or at a gateway with the servers that the
// URIs name.
func (a *App) watchSession(ctx context.Context, cfg *config.Config, f *watchFlags, notify func(string, json.RawMessage)) (*mcpclient.Client, func(), error) {
	var only []string
	for _, uri := range f.uris {
		some := likelyServers(cfg, resourceKind, uri)
		if len(some) == 0 {
			only = nil
			break
		}
		only = append(only, some...)
	}
	g, err := a.open(ctx, cfg, only)
	if err != nil {
		return nil, nil, err
	}
	closing := func() {
		if err := g.Close(); err != nil {
			a.Warn("%v", err)
		}
	}
	conn, err := g.Connect(ctx, "")
	if err != nil {
		closing()
		return nil, nil, cli.Fail(cli.CodeConnect, "connect to the gateway: %w", err)
	}
	c, err := mcpclient.Open(ctx, conn, mcpclient.Options{
		Name: mcpclient.CommandName, Title: mcpclient.CommandTitle, Version: a.Version.Version, Revision: revision, MaxMessage: cfg.Gateway.Limits.Frame,
		Notify: notify,
	})
	if err != nil {
		closing()
		return nil, nil, connectionError(err)
	}
	return c, func() { _ = c.Close(); closing() }, nil
}

func watchError(err error) error {
	var unsupported *watcher.NoSubscriptionsError
	var unread *watcher.ReadError
	switch {
	case requestCode(err) == cli.CodeNotFound:
		return cli.Fail(cli.CodeNotFound, "%w; see \"goblin list resources\"", err)
	case errors.As(err, &unsupported):
		return cli.Fail(requestCode(unsupported.Err), "%w; --every 5s reads at intervals instead", err)
	case errors.As(err, &unread):
		return cli.Fail(requestCode(unread.Err), "%w", err)
	}
	return connectionError(err)
}

func (a *App) deliver(ctx context.Context, f *watchFlags, u *watcher.Update) error {
	text := u.Content
	if f.diff {
		text = []byte(u.Difference())
	}
	switch {
	case f.exec != "":
		if err := watcher.Exec(ctx, f.exec, u.URI, text, a.Out, a.Err); err != nil && ctx.Err() == nil {
			a.Warn("the command failed: %v", err)
		}
		return ctx.Err()
	case a.asJSON:
		return a.printUpdate(f, u)
	}
	if a.OutTTY || len(f.uris) > 1 {
		if _, err := fmt.Fprintf(a.Out, "── %s  %s\n", u.Time.Format(time.TimeOnly), termtext.Line(u.URI)); err != nil {
			return err
		}
	}
	if a.OutTTY && u.Binary && !f.diff {
		_, err := fmt.Fprintf(a.Out, "[%s of binary content: redirect the output to a file, or use --json]\n", termtext.Size(int64(len(text))))
		return err
	}
	if u.Binary && !f.diff {
		_, err := a.Out.Write(text)
		return err
	}
	return a.printText(string(text))
}

func (a *App) printUpdate(f *watchFlags, u *watcher.Update) error {
	line := struct {
		Time     time.Time       `json:"time"`
		URI      string          `json:"uri"`
		Contents json.RawMessage `json:"contents,omitempty"`
		Diff     string          `json:"diff,omitempty"`
	}{Time: u.Time, URI: u.URI}
	if f.diff {
		line.Diff = u.Difference()
	} else {
		var read struct {
			Contents json.RawMessage `json:"contents"`
		}
		if err := json.Unmarshal(u.Result, &read); err != nil {
			return err
		}
		line.Contents = read.Contents
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Out, termtext.JSON(string(text))+"\n")
	return err
}
