package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/termtext"
)

// session records a connection to a server: its catalog and other output.
type session struct {
	*registry.Registry
	roots []config.Root // of the config
	err   error         // connection error, or nil

	mu           sync.Mutex
	info         upstream.Info
	opened       bool
	banner       string // the first line that was not a message
	skippedLines int    // number of lines that were not messages
	missing      []string
	tools        [][]byte
	lists        map[int][][]byte // by kind
	problems     []registry.Problem
}

// maxNoted is the maximum number of recorded findings per kind.
const maxNoted = 100

// SetList implements [upstream.Catalog].
func (t *session) SetList(server string, kind registry.Kind, items [][]byte) []registry.Problem {
	problems := t.Registry.SetList(server, kind, items)
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == registry.Tool {
		t.tools = items
	}
	if t.lists == nil {
		t.lists = make(map[int][][]byte)
	}
	t.lists[int(kind)] = slices.Clone(items)
	t.problems = append(t.problems, problems[:min(len(problems), maxNoted)]...)
	return problems
}

// complete returns nil if a list could not be fetched.
func (t *session) complete() map[int][][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.missing) > 0 {
		return nil
	}
	return maps.Clone(t.lists)
}

func (t *session) countSkipped(_, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skippedLines++
	if t.banner == "" {
		t.banner = strings.TrimSpace(line)
	}
}

func (t *session) unlisted(_, method string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.missing) < maxNoted {
		t.missing = append(t.missing, fmt.Sprintf("%s failed: %s", method, reason(err)))
	}
}

func reason(err error) string {
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		return e.Reason
	}
	return err.Error()
}

func (t *session) connectError() *upstream.Error {
	var e, inner *upstream.Error
	if !errors.As(t.err, &e) {
		return nil
	}
	if errors.As(e.Err, &inner) {
		return inner
	}
	return e
}

func (t *session) summary() string {
	snap := t.Load()
	var parts []string
	for _, k := range []registry.Kind{registry.Tool, registry.Prompt, registry.Resource, registry.Template, registry.Skill} {
		n := 0
		for range snap.All(k) {
			n++
		}
		if n > 0 {
			parts = append(parts, termtext.Count(n, k.String()))
		}
	}
	if len(parts) == 0 {
		return "no entries"
	}
	return strings.Join(parts, ", ")
}

// HandleNotification implements [upstream.Handler].
func (t *session) HandleNotification(*upstream.Server, upstream.Conn, *upstream.Call, string, []byte) {
}

// HandleRequest implements [upstream.Handler]. It answers roots/list; there is no client
// for other requests.
func (t *session) HandleRequest(_ context.Context, _ *upstream.Server, _ upstream.Conn, _ *upstream.Call, method string, _ []byte) ([]byte, *jsonrpc.Error) {
	if method == "roots/list" && len(t.roots) > 0 {
		type root struct {
			URI  string `json:"uri"`
			Name string `json:"name,omitempty"`
		}
		list := make([]root, len(t.roots))
		for i, r := range t.roots {
			list[i] = root(r)
		}
		result, err := json.Marshal(map[string]any{"roots": list})
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
		}
		return result, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: no client connected", method)
}

// ConnOpened implements [upstream.Handler].
func (t *session) ConnOpened(_ *upstream.Server, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened, t.info = true, conn.Info()
}

// ConnReady implements [upstream.Handler].
func (t *session) ConnReady(context.Context, *upstream.Server, upstream.Conn) {}

// ConnClosed implements [upstream.Handler].
func (t *session) ConnClosed(*upstream.Server, upstream.Conn) {}
