package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"goblin/gateway/config"
	"goblin/gateway/extensions"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/wire"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// RealOptions configures [ConnectReal].
type RealOptions struct {
	Config  *config.Config
	Server  string
	Version string
	Logins  string // the folder of logins, or ""
	Resolve config.Resolver
	Log     *slog.Logger
	Ask     AskFunc
}

// RealServer is a connection to a server of a config. It implements [Real].
type RealServer struct {
	*registry.Registry
	o       RealOptions
	server  *upstream.Server
	stop    context.CancelFunc
	running sync.WaitGroup
}

// ConnectReal starts a server of a config. It fails if the config lacks it. The first call
// waits for the connection. The caller must call Close.
func ConnectReal(ctx context.Context, o RealOptions) (*RealServer, error) {
	defined, names := (*config.Server)(nil), []string{}
	for i := range o.Config.Servers {
		s := &o.Config.Servers[i]
		names = append(names, s.Name)
		if s.Name == o.Server {
			defined = s
		}
	}
	switch {
	case defined == nil:
		return nil, fmt.Errorf("the config has no server %q", o.Server)
	case defined.Problem != "":
		return nil, errors.New(defined.Problem)
	}
	resolved, err := defined.Resolve(ctx, o.Resolve)
	if err != nil {
		return nil, err
	}
	s := *resolved.Server
	s.Disabled, s.Isolation, s.Start, s.IdleTimeout = false, config.Shared, config.EagerStart, 0
	mask := config.NewMask(o.Config)
	mask.AddServerSecrets(resolved)
	r := &RealServer{o: o, Registry: registry.New(registry.Options{Servers: names})}
	r.server = upstream.NewServer(s, upstream.Options{
		Handler: r, Registry: r.Registry, Version: o.Version, Limits: o.Config.Gateway.Limits, Redact: mask.String,
		Capabilities: extensions.ForClients(s.RootsSource() != config.NoRoots), EnvNames: o.Config.EnvNames, Authorizer: r.authorizer(&s),
	})
	ctx, r.stop = context.WithCancel(ctx)
	r.running.Go(func() { r.server.Run(ctx) })
	return r, nil
}

func (r *RealServer) authorizer(s *config.Server) *oauth.Authorizer {
	path, err := config.Canonical(r.o.Config.Path)
	if err != nil || r.o.Logins == "" {
		return nil
	}
	options, ok := oauth.ServerOptions(path, s, r.o.Version, r.o.Resolve)
	if !ok {
		return nil
	}
	return oauth.NewAuthorizer(r.o.Logins, options, slog.New(slog.DiscardHandler))
}

// Call implements [Real].
func (r *RealServer) Call(ctx context.Context, method string, params []byte, progress func(params []byte)) (jsonrpc.Reply, error) {
	conn, err := r.server.Await(ctx)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	c := &upstream.Call{Context: ctx, Method: method, Params: params}
	if token, theirs := wire.FindToken(params, rawjson.Get(params, metaMember)); theirs != nil {
		c.Token, c.Progress = token, progress
	}
	return conn.Call(c)
}

// Close stops the server.
func (r *RealServer) Close() error {
	r.stop()
	r.running.Wait()
	return nil
}

// HandleNotification implements [upstream.Handler]. Only recorded notifications are sent.
func (r *RealServer) HandleNotification(*upstream.Server, upstream.Conn, *upstream.Call, string, []byte) {
}

// HandleRequest implements [upstream.Handler].
func (r *RealServer) HandleRequest(ctx context.Context, _ *upstream.Server, _ upstream.Conn, _ *upstream.Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	return r.o.Ask(ctx, method, params)
}

// ConnOpened implements [upstream.Handler].
func (r *RealServer) ConnOpened(*upstream.Server, upstream.Conn) {
	r.o.Log.Info("real server connected", "server", r.o.Server)
}

// ConnReady implements [upstream.Handler].
func (r *RealServer) ConnReady(context.Context, *upstream.Server, upstream.Conn) {}

// ConnClosed implements [upstream.Handler].
func (r *RealServer) ConnClosed(*upstream.Server, upstream.Conn) {}
