package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"goblin/gateway/config"
	"goblin/registry"
)

// ExtendFunc extends an Instance that is about to serve.
type ExtendFunc = func(i *Instance) (Extension, error)

// Extension is what an [ExtendFunc] adds besides what it wrote into the
// registry. Its fields may be nil.
type Extension struct {
	// Run goes on as long as the servers do; it must return soon after ctx ends.
	Run func(ctx context.Context)
	// Search finds entries, the best first, and tells how many there are.
	Search func(ctx context.Context, q SearchQuery) (found []Found, total int, err error)
	// Script runs a program whose requests are made by ask. An error is one of
	// the gateway; what is wrong with the program is in the answer.
	Script func(ctx context.Context, source string, ask AskServers) (ScriptAnswer, error)
}

// AskServers makes one MCP request, by the names that clients see. An error
// that was answered is an *[jsonrpc.Error].
type AskServers = func(ctx context.Context, method string, params []byte) (result []byte, err error)

// SearchQuery is what to look for.
type SearchQuery struct {
	Text   string `json:"text"`
	Kind   string `json:"kind,omitempty"`   // tools, prompts, resources or templates; "" for all
	Server string `json:"server,omitempty"` // only this server's
	MIME   string `json:"mime,omitempty"`   // only this MIME type; * stands for any text
	Limit  int    `json:"limit"`
}

// Found is an entry that was found.
type Found struct {
	Entry *registry.Entry
	Score float64
}

// Hit is an entry that was found, as it is told over the control channel.
type Hit struct {
	Kind  string  `json:"kind"` // tool, prompt, resource or template
	Score float64 `json:"score"`
	Item
}

// SearchAnswer is what a search found: the best hits and the number of all.
type SearchAnswer struct {
	Hits  []Hit `json:"hits"`
	Total int   `json:"total"`
}

// ScriptArgs are the arguments of [OpScript].
type ScriptArgs struct {
	Source string `json:"source"`
}

// ScriptAnswer is what a script came to.
type ScriptAnswer struct {
	Value   json.RawMessage `json:"value,omitempty"` // what it returned, absent for nothing
	Printed string          `json:"printed,omitempty"`
	Hint    string          `json:"hint,omitempty"`    // what to do when there is neither
	Error   string          `json:"error,omitempty"`   // why it failed, with the line
	Timeout bool            `json:"timeout,omitempty"` // it failed for taking too long
}

var errNotExtended = errors.New("this gateway has no search and no scripts")

// Search finds entries, once the servers have listed or startup_wait is over.
func (i *Instance) Search(ctx context.Context, q SearchQuery) (SearchAnswer, error) {
	if i.extension.Search == nil {
		return SearchAnswer{}, errNotExtended
	}
	if err := i.knows(q.Server); err != nil {
		return SearchAnswer{}, err
	}
	i.gateway.Servers.AwaitLists(ctx)
	found, total, err := i.extension.Search(ctx, q)
	if err != nil {
		return SearchAnswer{}, err
	}
	a := SearchAnswer{Hits: make([]Hit, len(found)), Total: total}
	for n, f := range found {
		a.Hits[n] = Hit{Kind: f.Entry.Kind.String(), Score: f.Score, Item: itemOf(f.Entry)}
	}
	return a, nil
}

// Script runs a program in the name of a session of its own, which nobody can
// be asked in, once the servers have listed or startup_wait is over.
func (i *Instance) Script(ctx context.Context, source string) (answer ScriptAnswer, err error) {
	if i.extension.Script == nil {
		return answer, errNotExtended
	}
	i.gateway.Servers.AwaitLists(ctx)
	c, err := i.OpenClient(ctx, "goblin lua", nil)
	if err != nil {
		return answer, fmt.Errorf("run a script: %w", err)
	}
	defer c.Close()
	return i.extension.Script(ctx, source, func(ctx context.Context, method string, params []byte) ([]byte, error) {
		return c.Request(ctx, method, params, nil)
	})
}

// Config is what is served. It must not be changed.
func (i *Instance) Config() *config.Config { return i.o.Config }

// AwaitLists waits for servers that never listed yet, until startup_wait is
// over; Starting names those that have not then.
func (i *Instance) AwaitLists(ctx context.Context) { i.gateway.Servers.AwaitLists(ctx) }

// Starting names the servers that have neither listed nor failed to.
func (i *Instance) Starting() []string { return i.gateway.Servers.Starting() }

// Ask makes a request in the name of the client whose call of a local tool ctx
// belongs to, see [gateway.Gateway.Ask]. An error that was answered is an
// *[jsonrpc.Error].
func (i *Instance) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	return i.gateway.Ask(ctx, method, params)
}
