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

// ExtendFunc extends a Stack that is about to serve.
type ExtendFunc = func(i *Stack) (Extension, error)

// Extension is returned by an [ExtendFunc] that has something to run besides what it wrote
// into the registry. Its fields may be nil.
type Extension struct {
	// Run goes on as long as the servers do; it must return soon after ctx ends.
	Run func(ctx context.Context)
	// Search finds entries, the best first.
	Search func(ctx context.Context, q daemon.SearchQuery) (SearchResult, error)
	// Script runs a program whose requests are made by ask. An error is one of
	// the gateway; what is wrong with the program is in the answer.
	Script func(ctx context.Context, source string, ask AskServers) (daemon.ScriptAnswer, error)
}

// EmbeddingsFailed counts a request for embeddings that had no answer.
func (i *Stack) EmbeddingsFailed(err error) {
	i.metrics.AddEmbeddingsFailure()
	i.o.Logger.Debug("No embeddings, so tools are found by words", "err", err)
}

// AskServers makes one MCP request, by the names that clients see. An error
// that was answered is an *[jsonrpc.Error].
type AskServers = func(ctx context.Context, method string, params []byte) (result []byte, err error)

// SearchResult is the answer to a search.
type SearchResult struct {
	Hits  []Hit
	Total int  // without the limit
	Weak  bool // not even the best hit fits well
}

// Hit is an entry that was found.
type Hit struct {
	Entry *registry.Entry
	Score float64
}

var errNotExtended = errors.New("this gateway has no search and no scripts")

// Search finds entries, once the servers have listed or startup_wait is over.
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

// Script runs a program in the name of a session of its own, which nobody can
// be asked in, once the servers have listed or startup_wait is over.
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

// scriptRevision is that of scripts in a profile: one without tasks, so that the gateway
// waits for tools that run as tasks only.
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

// profileViewer is a request without a client, which sees what those of a profile see.
type profileViewer func() *registry.Snapshot

func (o profileViewer) Catalog() *registry.Snapshot     { return o() }
func (o profileViewer) Progress(_, _ float64, _ string) {}
func (o profileViewer) UserWait() time.Duration         { return 0 }
func (o profileViewer) Client() any                     { return nil }

// withProfile makes requests with ctx see what clients of a profile see. An empty profile sees every listed
// entry.
func (i *Stack) withProfile(ctx context.Context, profile string) (context.Context, error) {
	if _, ok := i.gateway.Views.ForProfile(profile); profile != "" && !ok {
		return ctx, i.unknownProfileError(profile)
	}
	return registry.WithRequest(ctx, profileViewer(func() *registry.Snapshot {
		if profile == "" {
			return i.gateway.Views.Full()
		}
		seen, _ := i.gateway.Views.ForProfile(profile) // nothing once the profile is removed from the config
		return seen.Visible
	})), nil
}

// Config returns the config in force. It must not be changed.
func (i *Stack) Config() *config.Config { return i.o.Config }

// AwaitLists waits for servers that never listed yet, of those that the client sees whose
// request ctx belongs to, until startup_wait is over; Starting names those that have not
// then.
func (i *Stack) AwaitLists(ctx context.Context) {
	i.gateway.Servers.AwaitVisibleLists(ctx, i.registry.ViewFor(ctx))
}

// Starting names the servers that have neither listed nor failed to.
func (i *Stack) Starting() []string { return i.gateway.Servers.Starting() }

// Permits reports whether the config lets clients have what a name stands for.
func (i *Stack) Permits(t registry.Target) bool {
	b := i.gateway.Servers.Get(t.Server)
	return t.Local != nil || b == nil || b.PermitsTarget(t)
}

// Ask makes a request in the name of the client whose call of a local tool ctx
// belongs to, see [gateway.Gateway.Ask]. An error that was answered is an
// *[jsonrpc.Error].
func (i *Stack) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	return i.gateway.Ask(ctx, method, params)
}
