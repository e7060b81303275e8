package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/mcpclient"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// askedWhere is the end of the help of commands that send a request.
const askedWhere = `

Uses the running daemon; otherwise starts the required servers temporarily.`

// revision has no tasks, so the gateway waits for tools that only run as tasks.
const revision = "2025-06-18"

type request struct {
	kind     kind
	method   string
	name     string // as typed
	server   string // --server
	key      string // the member of params with the name
	rest     []byte // an object with the other members
	metaText string // --meta
	meta     []byte // the object of --meta, or nil
}

// target returns the requested name. With --server, the user may give the original name.
func (r *request) target() string {
	switch {
	case r.server == "" || r.kind.owns(r.server, r.name):
		return r.name
	case r.kind.noun == resourceKind.noun:
		return "mcp://" + r.server + "/" + r.name
	default:
		return r.server + "/" + r.name
	}
}

// params keeps the bytes of values that the user typed.
func (r *request) params() []byte {
	out := rawjson.SetMember(r.rest, r.key, rawjson.Quote(r.target()))
	if r.meta != nil {
		out = rawjson.SetMember(out, "_meta", r.meta)
	}
	return out
}

func (r *request) isOwnResource() bool {
	return r.kind.noun == resourceKind.noun &&
		(r.server == registry.Local || r.kind.owns(registry.Local, r.name) || strings.HasPrefix(r.name, registry.Local+"://"))
}

// sendRequest starts as few servers as possible.
func (a *App) sendRequest(ctx context.Context, r *request) (json.RawMessage, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	only := likelyServers(cfg, r.kind, r.name)
	certain := len(only) == 1 && namesServer(only[0], r.name)
	switch {
	case r.isOwnResource():
		only, certain = nil, false
	case r.server != "":
		only, certain = []string{r.server}, true
	}
	result, isDaemon, err := a.sendRequestTo(ctx, cfg, only, certain, r)
	if cli.ExitCode(err) == cli.CodeNotFound && !isDaemon && r.server != "" {
		// Other servers were not started, but the name may suggest one.
		for _, other := range likelyServers(cfg, r.kind, r.name) {
			if other != r.server {
				err = cli.Fail(cli.CodeNotFound, "%w; its name belongs to server %q", err, other)
				break
			}
		}
	}
	if cli.ExitCode(err) == cli.CodeNotFound && !isDaemon && only != nil && !certain {
		// The guess was wrong: the owner's name is not a prefix of the entry's.
		result, _, err = a.sendRequestTo(ctx, cfg, nil, false, r)
	}
	return result, err
}

// sendRequestTo uses the daemon or the servers in only; nil means all. If certain is set,
// no other server can have the name.
func (a *App) sendRequestTo(ctx context.Context, cfg *config.Config, only []string, certain bool, r *request) (result json.RawMessage, isDaemon bool, err error) {
	g, err := a.open(ctx, cfg, only)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	isDaemon = g.IsDaemon()
	if certain && !isDaemon {
		if err := checkUsable(cfg, only[0]); err != nil {
			return nil, isDaemon, err
		}
	}
	conn, err := g.Connect(ctx, "")
	if err != nil {
		return nil, isDaemon, cli.Fail(cli.CodeConnect, "connect to the gateway: %w", err)
	}
	c, err := mcpclient.Open(ctx, conn, mcpclient.Options{
		Name: mcpclient.CommandName, Title: mcpclient.CommandTitle, Version: a.Version.Version, Revision: revision, MaxMessage: cfg.Gateway.Limits.Frame,
		CheckAlive: func(ctx context.Context) error {
			_, err := g.Status(ctx)
			return err
		},
	})
	if err != nil {
		return nil, isDaemon, connectionError(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	stop := a.reportWhileWaiting(ctx, g)
	defer stop()
	if r.isOwnResource() && !isDaemon {
		// Goblin's own resources describe the servers, so wait until they have started.
		if _, err := g.List(ctx, daemon.ListQuery{Kind: toolKind.list}); err != nil {
			return nil, isDaemon, err
		}
	}
	shown := false
	// Always request progress, even if it isn't shown.
	tell := func(params json.RawMessage) {
		var p progress
		if a.ErrTTY && json.Unmarshal(params, &p) == nil {
			stop()
			a.showProgress(p)
			shown = true
		}
	}
	if rawjson.Get(r.meta, "progressToken") != nil {
		tell = nil // the user set one
	}
	result, err = c.Request(ctx, r.method, r.params(), tell)
	stop()
	if shown {
		fmt.Fprint(a.Err, clearLine)
	}
	if err != nil {
		err = a.explain(ctx, g, only, r, connectionError(err))
	}
	return result, isDaemon, err
}

func (a *App) requestCommand(r *request, cmd *cobra.Command) *cobra.Command {
	cli.NameFlag(cmd.Flags(), &r.server, "server", "ask this `SERVER`; allows the server's own names")
	cli.NameFlag(cmd.Flags(), &r.metaText, "meta", "_meta of the request: `JSON` object, @FILE, or - for stdin")
	a.withProfile(cmd)
	return a.withJSON("print the result unchanged; on a terminal, escape control characters", cmd)
}

func (a *App) printRequest(cmd *cobra.Command, r *request, text func(result []byte) error) error {
	var err error
	r.name = cmd.Flags().Arg(0)
	if r.meta, err = a.readObject("--meta", r.metaText); err != nil {
		return err
	}
	result, err := a.sendRequest(cmd.Context(), r)
	switch {
	case err != nil:
		return err
	case !a.asJSON:
		return text(result)
	}
	err = a.printRaw(result)
	if err == nil && r.kind.noun == toolKind.noun && string(rawjson.Get(result, "isError")) == "true" {
		return errReported(cli.CodeFailure)
	}
	return err
}

func connectionError(err error) error {
	switch {
	case errors.Is(err, mcpclient.ErrClosed):
		return cli.Fail(cli.CodeConnect, "the gateway exited before it answered")
	case errors.Is(err, mcpclient.ErrLost):
		return cli.Fail(cli.CodeConnect, "%w", err)
	}
	return err
}

type progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

const clearLine = "\r\x1b[K"

func (a *App) showProgress(p progress) {
	var line strings.Builder
	switch {
	case p.Total > 0:
		fmt.Fprintf(&line, "%3.0f %%", 100*p.Progress/p.Total)
	default:
		fmt.Fprintf(&line, "%g", p.Progress)
	}
	if p.Message != "" {
		line.WriteString("  " + termtext.Line(termtext.FirstLine(p.Message)))
	}
	columns := a.Columns
	if columns == 0 {
		columns = 80
	}
	fmt.Fprint(a.Err, clearLine+termtext.Cut(a.Mask().String(line.String()), columns-1))
}
