package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/fleet"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// hopLocal reports errors that concern only the connection they came on:
// headers that do not match, and a revision that is not spoken (2026-07-28).
func hopLocal(code int) bool { return code == -32020 || code == -32022 }

// pendingError is an unknown name while some servers have not listed yet.
type pendingError struct {
	error
	servers []string
}

func (e *pendingError) Unwrap() error { return e.error }

// unlisted is err, with a word about why the tool or prompt may be missing: it
// is withheld, or the server whose names begin like this one is not there to
// list it.
func (g *Gateway) unlisted(err *registry.NotFoundError) error {
	if err.Kind != registry.Tool && err.Kind != registry.Prompt {
		return err
	}
	told := *err
	if err.Kind == registry.Tool {
		if slices.Contains(config.OwnTools(), err.Name) {
			told.Absent = "it is Goblin's own, and not among gateway.meta_tools"
			return &told
		}
		if p := g.reg.Withheld(err.Name); p != nil {
			told.Absent = fleet.Withheld(p)
			return &told
		}
	}
	for _, s := range g.reg.States() {
		if s.Name != err.Owner || s.Listed || s.State == registry.StateReady {
			continue
		}
		is := "is "
		switch s.State {
		case registry.StateFailed:
			is = "has "
		case registry.StateNeedsLogin:
			is = ""
		}
		told.Absent = fmt.Sprintf("server %q %s%s, so its %ss are unknown", s.Name, is, s.State, err.Kind)
		return &told
	}
	return err
}

// clientError is the JSON-RPC error that clients get for err.
func clientError(err error) *jsonrpc.Error {
	var (
		own       *jsonrpc.Error
		notFound  *registry.NotFoundError
		ambiguous *registry.AmbiguousError
		failed    *upstream.Error
		pending   *pendingError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &notFound):
		var servers []string
		if errors.As(err, &pending) {
			servers = pending.servers
		}
		return notFoundError(notFound, servers)
	case errors.As(err, &ambiguous):
		data := rawjson.Object("code", "AMBIGUOUS")
		data = rawjson.SetMember(data, "candidates", rawjson.Strings(ambiguous.Candidates))
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: ambiguous.Error(), Data: data}
	case errors.As(err, &failed):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: failed.Error(), Data: failed.Data()}
	case errors.Is(err, registry.ErrBadCursor):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: unknown cursor; list again without one")
	case errors.Is(err, context.Canceled), errors.Is(err, downstream.ErrCancelled):
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "Request cancelled")
	default:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", err)
	}
}

func notFoundError(e *registry.NotFoundError, pending []string) *jsonrpc.Error {
	out := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Error()}
	switch e.Kind {
	case registry.Tool:
		out.Data = rawjson.Object("code", "TOOL_NOT_FOUND", "name", e.Name)
	case registry.Prompt:
		out.Data = rawjson.Object("code", "PROMPT_NOT_FOUND", "name", e.Name)
	default:
		out.Code = downstream.CodeResourceNotFound
		out.Data = rawjson.Object("code", "RESOURCE_NOT_FOUND", "uri", e.Name)
	}
	if len(pending) > 0 {
		out.Message += " (still starting: " + strings.Join(pending, ", ") + ")"
		out.Data = rawjson.SetMember(out.Data, "pending", rawjson.Strings(pending))
	}
	return out
}

// list joins names for a message.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
