package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"goblin/gateway/downstream"
	"goblin/registry"
)

func (i *Stack) listenHTTP() error {
	g, by := i.o.Config.Gateway, "gateway.listen"
	if i.o.Listen != "" {
		g.Listen, by = i.o.Listen, i.o.ListenSource
	}
	if !i.o.HTTP || g.Listen == "" {
		return nil
	}
	g, hidden := g.Resolve(context.Background(), i.o.Resolve)
	i.o.Mask.AddSecrets(hidden...)
	if g.NoToken.Text != "" { // never serve without the configured token
		err := fmt.Errorf("no HTTP at %s: %s", g.Listen, g.NoToken)
		if i.o.HTTPRequired {
			return err
		}
		i.o.Logger.Warn("no HTTP endpoint", "err", err)
		i.httpError = err
		i.notify()
		return nil
	}
	l, err := net.Listen(network(g.Listen), g.Listen)
	if err != nil {
		cause := err
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			cause = op.Err // without the repeated address
		}
		at := g.Listen
		if by != "" {
			at += " (" + by + ")"
		}
		err = fmt.Errorf("listen on %s: %w", at, cause)
		if i.o.HTTPRequired {
			return err
		}
		i.o.Logger.Warn("no HTTP endpoint", "err", err)
		i.httpError = fmt.Errorf("no HTTP at %s: %w", at, cause)
		i.notify()
		return nil
	}
	i.address = l
	options := i.sessionOptions()
	options.Profile = i.o.Profile
	i.http = downstream.NewHTTP(downstream.HTTPOptions{
		Options:        options,
		AuthToken:      g.AuthToken,
		HasProfile:     i.gateway.Views.Has,
		ResolveProject: downstream.ProjectFolder,
		AllowedOrigins: g.AllowedOrigins,
		AllowedHosts:   g.AllowedHosts,
		Listen:         l.Addr().String(),
		AuthHandlers:   map[string]http.Handler{"/metrics": i.metricsHandler()},
		PublicHandlers: map[string]http.Handler{
			"/healthz": http.HandlerFunc(i.healthz),
			"/readyz":  http.HandlerFunc(i.readyz),
		},
	})
	return nil
}

// network keeps an IPv4 address from opening IPv6 too.
func network(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

// metricsHandler counts the catalog at each request.
func (i *Stack) metricsHandler() http.Handler {
	series := i.metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, s := range i.registry.States() {
			for k, n := range s.Counts {
				i.metrics.SetEntries(registry.Kind(k).String()+"s", s.Name, n)
			}
		}
		series.ServeHTTP(w, r)
	})
}

func (i *Stack) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"status": "ok"})
}

// readyz reports whether lists are complete. It needs no token and so reveals nothing
// else.
func (i *Stack) readyz(w http.ResponseWriter, _ *http.Request) {
	if len(i.gateway.Servers.Starting()) > 0 {
		answer(w, http.StatusServiceUnavailable, map[string]any{"status": "not ready"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"status": "ready"})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// a client that left needs no body
	_ = json.NewEncoder(w).Encode(body)
}

// Address returns the URL of the HTTP endpoint, or "".
func (i *Stack) Address() string {
	if i.address == nil {
		return ""
	}
	return "http://" + i.address.Addr().String() + "/mcp"
}
