package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/mcpclient"
	"goblin/registry"
)

// ExtendFunc extends a Stack before it serves.
type ExtendFunc = func(i *Stack) (Extension, error)

// Extension is the result of an [ExtendFunc]. Its fields may be nil.
type Extension struct {
	// Run must return soon after ctx ends.
	Run func(ctx context.Context)
	// Search returns the best entries first.
	Search func(ctx context.Context, q daemon.SearchQuery) (SearchResult, error)
	// Script runs a program with ask for requests. The program's errors are in the
	// answer, the gateway's in err.
	Script func(ctx context.Context, source string, ask AskServers) (daemon.ScriptAnswer, error)
}

// EmbeddingsFailed counts and logs a failure of the embeddings.
func (i *Stack) EmbeddingsFailed(err error) {
	i.metrics.AddEmbeddingsFailure()
	i.o.Logger.Debug("embeddings failed; searching by words", "err", err)
}

// AskServers sends a request by listed names. An error answer is an *[jsonrpc.Error].
type AskServers = func(ctx context.Context, method string, params []byte) (result []byte, err error)

// SearchResult is the result of Extension.Search.
type SearchResult struct {
	Hits  []Hit
	Total int  // without the limit
	Weak  bool // no good match
}

// Hit is a found entry. A higher Score is better.
type Hit struct {
	Entry *registry.Entry
	Score float64
}

var errNotExtended = errors.New("search and scripts are not available")

// Search searches entries, after AwaitLists.
func (i *Stack) Search(ctx context.Context, q daemon.SearchQuery) (daemon.SearchAnswer, error) {
	if i.extension.Search == nil {
		return daemon.SearchAnswer{}, errNotExtended
	}
	if err := i.checkServer(q.Server); err != nil {
		return daemon.SearchAnswer{}, err
	}
	ctx, err := i.withProfile(ctx, q.Profile)
	if err != nil {
		return daemon.SearchAnswer{}, err
	}
	i.AwaitLists(ctx)
	found, err := i.extension.Search(ctx, q)
	if err != nil {
		return daemon.SearchAnswer{}, err
	}
	a := daemon.SearchAnswer{Hits: make([]daemon.Hit, len(found.Hits)), Total: found.Total, Weak: found.Weak}
	for n, f := range found.Hits {
		a.Hits[n] = daemon.Hit{Kind: f.Entry.Kind.String(), Score: f.Score, Entry: daemon.NewEntry(f.Entry)}
	}
	return a, nil
}

// Script runs a program in a separate session without elicitation or sampling, after
// AwaitLists.
func (i *Stack) Script(ctx context.Context, q daemon.ScriptQuery) (answer daemon.ScriptAnswer, err error) {
	if i.extension.Script == nil {
		return answer, errNotExtended
	}
	if ctx, err = i.withProfile(ctx, q.Profile); err != nil {
		return answer, err
	}
	i.AwaitLists(ctx)
	c, err := i.scriptClient(ctx, q.Profile)
	if err != nil {
		return answer, fmt.Errorf("run a script: %w", err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	return i.extension.Script(ctx, q.Source, func(ctx context.Context, method string, params []byte) ([]byte, error) {
		return c.Request(ctx, method, params, nil)
	})
}

// scriptRevision has no tasks, so the gateway waits for tools that run as tasks only.
const scriptRevision = "2025-06-18"

func (i *Stack) scriptClient(ctx context.Context, profile string) (*mcpclient.Client, error) {
	const name = mcpclient.ScriptName
	if profile != "" {
		return mcpclient.Open(ctx, i.Connect(ctx, profile), mcpclient.Options{
			Name: name, Version: i.o.Version, Revision: scriptRevision, MaxMessage: i.o.Config.Gateway.Limits.Frame,
		})
	}
	c, err := i.OpenClient(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return c.Client, nil
}

// profileViewer is a request without a client that sees a profile.
type profileViewer func() *registry.Snapshot

func (o profileViewer) Catalog() *registry.Snapshot     { return o() }
func (o profileViewer) Progress(_, _ float64, _ string) {}
func (o profileViewer) UserWait() time.Duration         { return 0 }
func (o profileViewer) Client() any                     { return nil }

// withProfile returns a context for requests that see a profile, or every listed entry
// for "".
func (i *Stack) withProfile(ctx context.Context, profile string) (context.Context, error) {
	if _, ok := i.gateway.Views.ForProfile(profile); profile != "" && !ok {
		return ctx, i.unknownProfileError(profile)
	}
	return registry.WithRequest(ctx, profileViewer(func() *registry.Snapshot {
		if profile == "" {
			return i.gateway.Views.Full()
		}
		seen, _ := i.gateway.Views.ForProfile(profile) // empty for a removed profile
		return seen.Visible
	})), nil
}

// Config returns the config, which must not be modified.
func (i *Stack) Config() *config.Config { return i.o.Config }

// AwaitLists waits for the first lists of servers visible to the request of ctx, at most
// startup_wait.
func (i *Stack) AwaitLists(ctx context.Context) {
	i.gateway.Servers.AwaitVisibleLists(ctx, i.registry.ViewFor(ctx))
}

// Starting returns servers that have neither listed nor failed.
func (i *Stack) Starting() []string { return i.gateway.Servers.Starting() }

// Permits reports whether the config allows a target.
func (i *Stack) Permits(t registry.Target) bool {
	b := i.gateway.Servers.Get(t.Server)
	return t.Local != nil || b == nil || b.PermitsTarget(t)
}

// Ask sends a request on behalf of the client whose call of a local tool created ctx. It
// returns an error answer as *[jsonrpc.Error]. See [gateway.Gateway.Ask].
func (i *Stack) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	return i.gateway.Ask(ctx, method, params)
}
