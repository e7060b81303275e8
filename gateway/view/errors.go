package view

import (
	"context"
	"errors"
	"slices"
	"strings"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// PendingError is the error for an unknown name while servers have not listed yet.
type PendingError struct {
	Err     error
	Servers []string
}

func (e *PendingError) Error() string { return e.Err.Error() }

func (e *PendingError) Unwrap() error { return e.Err }

// pendingServers returns the starting servers that may still list the missing name of
// err: none if its prefix belongs to another server.
func pendingServers(err error, starting []string) []string {
	var unknown *registry.NotFoundError
	if errors.As(err, &unknown) && (unknown.Kind == registry.Tool || unknown.Kind == registry.Prompt) &&
		unknown.Owner != "" && !slices.Contains(starting, unknown.Owner) {
		return nil
	}
	return starting
}

// ToJSONRPC returns the error that clients get for err.
func ToJSONRPC(err error) *jsonrpc.Error {
	var (
		own       *jsonrpc.Error
		unknown   *registry.NotFoundError
		ambiguous *registry.AmbiguousError
		failed    *upstream.Error
		pending   *PendingError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &unknown):
		var servers []string
		if errors.As(err, &pending) {
			servers = pending.Servers
		}
		return notFound(unknown, servers)
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

func notFound(e *registry.NotFoundError, pending []string) *jsonrpc.Error {
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
