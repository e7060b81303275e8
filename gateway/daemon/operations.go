// Control is what a running gateway can be asked to tell and to do
// besides MCP: its state, its catalog, searches, scripts, approvals, its end.
//
// It owns the operations ([Gateway]), their one set of types, and both ends of
// the control channel of a daemon ([Remote], [NewHandlers]). It must not know how an
// operation is carried out, nor who asks for it.
//
// The types are the JSON of the channel and of the commands' --json. All
// methods may be called from any goroutine and block until they are done or
// their context ends.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"goblin/gateway/downstream"
	"goblin/registry"
	"goblin/registry/report"
)

// Gateway is a running gateway.
type Gateway interface {
	Status(ctx context.Context) (Status, error)
	// Servers are the servers that clients of a profile see, "" for those who have none,
	// with how much they see of each, listed or found.
	Servers(ctx context.Context, profile string) ([]Server, error)
	// List lists entries in the order that clients see, once the servers have
	// listed or startup_wait is over.
	List(ctx context.Context, q ListQuery) ([]Entry, error)
	// Search finds entries, the best first. It waits likewise.
	Search(ctx context.Context, q SearchQuery) (SearchAnswer, error)
	// Script runs a program over all servers, where nobody can be asked. It waits
	// likewise.
	Script(ctx context.Context, q ScriptQuery) (ScriptAnswer, error)
	// Unapproved lists the tools of a server (of all for "") that await approval. It
	// waits likewise.
	Unapproved(ctx context.Context, server string) ([]registry.UnapprovedTool, error)
	// Approve takes tools as they are now for good, and returns their names.
	Approve(ctx context.Context, a Approval) ([]string, error)
	// HiddenEntries lists what clients do not see, and why. It waits likewise.
	HiddenEntries(ctx context.Context, q HiddenQuery) ([]HiddenEntry, error)
	// Logs returns log records, the oldest first. With Wait it blocks until there are some.
	Logs(ctx context.Context, q LogQuery) (LogAnswer, error)
	// Usage tells the costs of servers, tools and clients. It waits likewise.
	Usage(ctx context.Context) (report.Report, error)
	// ReloadAll makes the gateway serve what its config's file says by now; one with
	// mistakes changes nothing.
	ReloadAll(ctx context.Context) error
	// Restart closes a server's connections and opens them anew.
	Restart(ctx context.Context, server string) error
	// Diagnose finds out what keeps a server from working, by a process or connection of
	// its own, in the environment of the gateway.
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
	// Stop makes the gateway end, and does not wait for that.
	Stop(ctx context.Context) error
}

// Status is shown by "goblin status".
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Build   string    `json:"build,omitempty"` // of a development version; see [Endpoint]
	Config  string    `json:"config"`          // path, or "demo"
	Demo    bool      `json:"demo,omitempty"`
	Started time.Time `json:"started"`
	// Terminal is the one that it was started from, if any.
	Terminal     string `json:"terminal,omitempty"`
	TerminalGone bool   `json:"terminalGone,omitempty"`

	Address  string    `json:"address,omitempty"`  // URL of the HTTP endpoint
	Log      string    `json:"log,omitempty"`      // file that the log goes to; none: its stderr
	Notice   string    `json:"notice,omitempty"`   // such as why the edited config was not taken
	Warnings []string  `json:"warnings,omitempty"` // of the config, as it turned out
	Linger   string    `json:"linger,omitempty"`   // how long it goes on without clients, such as "1m"; none: it does not end by itself
	Sessions []Session `json:"sessions"`
	Servers  []Server  `json:"servers"`
}

// Clients counts the sessions of clients, without screens and silent clients.
func (s Status) Clients() (n int) {
	for i := range s.Sessions {
		if c := &s.Sessions[i]; !c.IsScreen() && c.SilentSince.IsZero() {
			n++
		}
	}
	return n
}

// Session is a connected client, or what a screen acts through.
type Session struct {
	ID        string    `json:"id"`
	Transport string    `json:"transport"`
	Client    string    `json:"client,omitempty"`
	Version   string    `json:"clientVersion,omitempty"`
	Protocol  string    `json:"protocolVersion,omitempty"`
	Since     time.Time `json:"since"`
	// SilentSince marks a client that likely left without closing its session.
	SilentSince time.Time `json:"silentSince,omitzero"`
	Screen
}

// IsScreen reports whether a screen acts through the session.
func (s *Session) IsScreen() bool { return s.Transport == downstream.ScreenTransport }

// IsBridged reports whether the client would start the next daemon.
func (s *Session) IsBridged() bool { return s.Transport == downstream.SocketTransport }

// Screen is where a screen is shown; zero in the session of a client.
type Screen struct {
	Terminal string `json:"terminal,omitempty"` // what it calls itself: foreign text
	Width    int    `json:"width,omitempty"`    // in cells
	Height   int    `json:"height,omitempty"`
	Owner    bool   `json:"owner,omitempty"` // the daemon ends with it
}

// Server is a configured server and what it offers.
type Server struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Transport string `json:"transport"`
	Protocol  string `json:"protocolVersion,omitempty"`
	Error     string `json:"error,omitempty"`
	Listed    bool   `json:"listed"` // its lists were fetched at least once, so the counts are known
	Tools     int    `json:"tools"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	Templates int    `json:"templates"`
	Awaiting  int    `json:"awaitingApproval,omitempty"` // tools that are new or changed
	Withheld  int    `json:"withheld,omitempty"`         // those of them that clients do not get
	Held      string `json:"keptRunningBy,omitempty"`    // what keeps it from sleeping although nobody calls it
	// Definitions lists the changed and dropped definitions of the server;
	// or nil if there are none.
	Definitions *Definitions      `json:"definitions,omitempty"`
	Restarts    int               `json:"restarts"`
	PID         int               `json:"pid,omitempty"`
	LatencyMS   float64           `json:"latencyMs,omitempty"`
	Login       *registry.Account `json:"login,omitempty"` // nil: nobody is logged in
	// Remembered is when the server listed what is counted, before this daemon started; zero
	// once it has listed for this one.
	Remembered time.Time `json:"remembered,omitzero"`
}

// Definitions lists definitions of a server that were changed to satisfy clients, or dropped.
type Definitions struct {
	Changed int          `json:"changed"`
	Dropped int          `json:"dropped"`
	First   []Definition `json:"first"` // at most 20 of both
}

// Definition is one of them. Its name and text are untrusted.
type Definition struct {
	Kind    string `json:"kind"` // tool, prompt, resource or template
	Name    string `json:"name,omitempty"`
	Dropped bool   `json:"dropped,omitempty"`
	Text    string `json:"text"` // what was changed, or why it was dropped
}

// NewDefinitions describes the repairs of a server's lists. It returns nil without repairs.
func NewDefinitions(r registry.Repairs) *Definitions {
	if r.Changed+r.Dropped == 0 {
		return nil
	}
	d := &Definitions{Changed: r.Changed, Dropped: r.Dropped, First: make([]Definition, len(r.Details))}
	for i, one := range r.Details {
		d.First[i] = Definition{Kind: one.Kind.String(), Name: one.Name, Dropped: one.Dropped, Text: one.Text}
	}
	return d
}

// ListQuery chooses what to list.
type ListQuery struct {
	Kind    string `json:"kind"`              // tools, prompts, resources or templates
	Server  string `json:"server,omitempty"`  // only this server's
	MIME    string `json:"mime,omitempty"`    // only this MIME type; * stands for any text
	Profile string `json:"profile,omitempty"` // what its clients see; "" for everything
	// WithHidden is for what they do not see, too, by the names that it would have.
	WithHidden bool   `json:"every,omitempty"`
	Name       string `json:"name,omitempty"` // only entries that [MatchName] accepts this name for
}

// Entry is an entry of the catalog with what clients are not told of it.
type Entry struct {
	Name         string          `json:"name,omitempty"` // the listed name of a tool or prompt, what others are called
	URI          string          `json:"uri,omitempty"`  // the listed one
	URITemplate  string          `json:"uriTemplate,omitempty"`
	Server       string          `json:"serverId"`
	OriginalName string          `json:"originalName,omitempty"` // the server's own
	OriginalURI  string          `json:"originalUri,omitempty"`
	FlatID       string          `json:"flatId,omitempty"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	MIMEType     string          `json:"mimeType,omitempty"`
	Size         *int64          `json:"size,omitempty"`
	Definition   json.RawMessage `json:"definition"`           // as clients get it
	Overridden   json.RawMessage `json:"overridden,omitempty"` // as its server gave it; nil: likewise, but for names
	Changes      []string        `json:"changes,omitempty"`    // how it was changed to satisfy clients
	Remembered   time.Time       `json:"remembered,omitzero"`  // as that of its [Server]
	// State and Reason are set by commands, from [HiddenEntry].
	State  State  `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// State describes whether clients see an entry.
type State string

// The states of an entry.
const (
	StateListed     State = "listed"
	StateFiltered   State = "filtered"   // by the config
	StateUnapproved State = "unapproved" // changed since it was approved
	StateDisabled   State = "disabled"   // by the user
	StateHidden     State = "hidden by profile"
	StateSearch     State = "found by search" // not listed, but found and called
)

// NewEntry describes an entry of the registry.
func NewEntry(e *registry.Entry) Entry {
	out := Entry{
		Name: e.Label, Server: e.Server, FlatID: e.Flat, Title: e.Title,
		Description: e.Description, MIMEType: e.MIME, Definition: e.JSON(), Changes: e.Changes(),
	}
	switch e.Kind {
	case registry.Resource:
		out.URI, out.OriginalURI = e.Listed, e.Name
	case registry.Template:
		out.URITemplate, out.OriginalURI = e.Listed, e.Name
	default:
		out.Name, out.OriginalName = e.Listed, e.Name
	}
	if e.Override != nil {
		out.Overridden = e.Original
	}
	if e.Size >= 0 {
		out.Size = &e.Size
	}
	return out
}

// MatchName reports how surely a name means an entry: 2 for its listed name, SERVER/NAME and
// the other unique names, 1 for the server's own name, 0 otherwise. Other is the flat id of
// a resource, or a prompt's SERVER_NAME.
func MatchName(name, server, original, listed, other string) int {
	switch name {
	case listed, other, server + "/" + original:
		return 2
	case original:
		return 1
	}
	return 0
}

// MatchName is [MatchName] for the entry.
func (e *Entry) MatchName(name string) int {
	other := e.FlatID
	if other == "" {
		other = e.Server + "_" + e.OriginalName
	}
	return MatchName(name, e.Server, e.OriginalLabel(), e.ListedName(), other)
}

// ListedName is the name, URI or template by which clients ask for the entry.
func (e *Entry) ListedName() string { return cmp.Or(e.URI, e.URITemplate, e.Name) }

// OriginalLabel is the server's own name, URI or template.
func (e *Entry) OriginalLabel() string { return cmp.Or(e.OriginalName, e.OriginalURI) }

// SearchQuery asks for entries.
type SearchQuery struct {
	Text    string `json:"text"`
	Kind    string `json:"kind,omitempty"`   // tools, prompts, resources or templates; "" for all
	Server  string `json:"server,omitempty"` // only this server's
	MIME    string `json:"mime,omitempty"`   // only this MIME type; * stands for any text
	Limit   int    `json:"limit"`
	Profile string `json:"profile,omitempty"` // what its clients see; "" for everything
}

// SearchAnswer has the best hits of a search and the number of all.
type SearchAnswer struct {
	Hits  []Hit `json:"hits"`
	Total int   `json:"total"`
	Weak  bool  `json:"weak,omitempty"` // not even the best hit fits well
}

// Hit is an entry that was found.
type Hit struct {
	Kind  string  `json:"kind"` // tool, prompt, resource or template
	Score float64 `json:"score"`
	Entry
}

// ScriptQuery is a script to run.
type ScriptQuery struct {
	Source  string `json:"source"`
	Profile string `json:"profile,omitempty"` // what its clients see; "" for everything
}

// ScriptAnswer is the outcome of a script.
type ScriptAnswer struct {
	Value   json.RawMessage `json:"value,omitempty"` // what it returned, absent for nothing
	Printed string          `json:"printed,omitempty"`
	Hint    string          `json:"hint,omitempty"`    // what to do when there is neither
	Error   string          `json:"error,omitempty"`   // why it failed, with the line
	Timeout bool            `json:"timeout,omitempty"` // it failed for taking too long
}

// Approval chooses tools of a server to be approved.
type Approval struct {
	Server string   `json:"server"`
	Tools  []string `json:"tools,omitempty"` // their own names; none: all that await it
	// Seen are the hashes of definitions, by name: others are not approved, and
	// if one is another by now, nothing is. nil: whatever there is.
	Seen map[string]string `json:"seen"`
}

// HiddenQuery chooses what to list.
type HiddenQuery struct {
	Kind    string `json:"kind"`              // tools, prompts, resources or templates
	Profile string `json:"profile,omitempty"` // whose clients; "" for those who have none, or the default one
	All     bool   `json:"all,omitempty"`     // also entries that clients see
	Name    string `json:"name,omitempty"`    // only entries that [MatchName] accepts this name for
}

// HiddenEntry is an entry that clients do not see; with [HiddenQuery.All] also one that they see.
type HiddenEntry struct {
	Name     string    `json:"name,omitempty"` // by which clients would see it; none: its server does not list it, or not for Goblin
	Server   string    `json:"serverId"`
	Original string    `json:"originalName"` // the server's own name or URI
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`   // config, pin, you, profile or search
	Why      string    `json:"why,omitempty"`  // the same as Reason
	Since    time.Time `json:"since,omitzero"` // when you turned it off
}

// Label returns the listed name, or SERVER/NAME for an entry that has none.
func (o *HiddenEntry) Label() string { return cmp.Or(o.Name, o.Server+"/"+o.Original) }

// operation carries out one operation of the channel at a gateway.
type operation = func(ctx context.Context, g Gateway, args json.RawMessage) (any, error)

var operations = map[string]operation{
	"status":  func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return g.Status(ctx) },
	"stop":    func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return nil, g.Stop(ctx) },
	"usage":   func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return g.Usage(ctx) },
	"logs":    with(Gateway.Logs),
	"follow":  func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return nil, g.ReloadAll(ctx) },
	"servers": with(Gateway.Servers),
	"list":    with(Gateway.List), "search": with(Gateway.Search), "script": with(Gateway.Script),
	"diagnose": with(Gateway.Diagnose),
	"pinned":   with(Gateway.Unapproved), "approve": with(Gateway.Approve), "off": with(Gateway.HiddenEntries),
	"restart": with(func(g Gateway, ctx context.Context, server string) (any, error) { return nil, g.Restart(ctx, server) }),
}

// with decodes the arguments of a method.
func with[A, R any](method func(Gateway, context.Context, A) (R, error)) operation {
	return func(ctx context.Context, g Gateway, raw json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return method(g, ctx, args)
	}
}

// NewHandlers makes the operations of [Handlers] of a gateway.
func NewHandlers(g Gateway) func(ctx context.Context, op string, args json.RawMessage) (any, error) {
	return func(ctx context.Context, op string, args json.RawMessage) (any, error) {
		do, ok := operations[op]
		if !ok {
			return nil, fmt.Errorf("unknown operation %q", op)
		}
		return do(ctx, g, args)
	}
}

// Remote is the gateway of the daemon at a place. The errors are those of
// [Control].
type Remote struct{ Place Endpoint }

func ask[R any](ctx context.Context, r Remote, op string, args any) (result R, err error) {
	err = Control(ctx, r.Place, op, args, &result)
	return result, err
}

// Status implements [Gateway].
func (r Remote) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, r, "status", nil)
}

// Servers implements [Gateway].
func (r Remote) Servers(ctx context.Context, profile string) ([]Server, error) {
	return ask[[]Server](ctx, r, "servers", profile)
}

// List implements [Gateway].
func (r Remote) List(ctx context.Context, q ListQuery) ([]Entry, error) {
	return ask[[]Entry](ctx, r, "list", q)
}

// Search implements [Gateway].
func (r Remote) Search(ctx context.Context, q SearchQuery) (SearchAnswer, error) {
	return ask[SearchAnswer](ctx, r, "search", q)
}

// Script implements [Gateway].
func (r Remote) Script(ctx context.Context, q ScriptQuery) (ScriptAnswer, error) {
	return ask[ScriptAnswer](ctx, r, "script", q)
}

// Unapproved implements [Gateway].
func (r Remote) Unapproved(ctx context.Context, server string) ([]registry.UnapprovedTool, error) {
	return ask[[]registry.UnapprovedTool](ctx, r, "pinned", server)
}

// Approve implements [Gateway].
func (r Remote) Approve(ctx context.Context, a Approval) ([]string, error) {
	return ask[[]string](ctx, r, "approve", a)
}

// HiddenEntries implements [Gateway].
func (r Remote) HiddenEntries(ctx context.Context, q HiddenQuery) ([]HiddenEntry, error) {
	return ask[[]HiddenEntry](ctx, r, "off", q)
}

// Usage implements [Gateway].
func (r Remote) Usage(ctx context.Context) (report.Report, error) {
	return ask[report.Report](ctx, r, "usage", nil)
}

// Logs implements [Gateway].
func (r Remote) Logs(ctx context.Context, q LogQuery) (LogAnswer, error) {
	return ask[LogAnswer](ctx, r, "logs", q)
}

// ReloadAll implements [Gateway].
func (r Remote) ReloadAll(ctx context.Context) error {
	return Control(ctx, r.Place, "follow", nil, nil)
}

// Restart implements [Gateway].
func (r Remote) Restart(ctx context.Context, server string) error {
	return Control(ctx, r.Place, "restart", server, nil)
}

// Diagnose implements [Gateway].
func (r Remote) Diagnose(ctx context.Context, server string) (report.Diagnosis, error) {
	return ask[report.Diagnosis](ctx, r, "diagnose", server)
}

// Stop implements [Gateway].
func (r Remote) Stop(ctx context.Context) error {
	return Control(ctx, r.Place, "stop", nil, nil)
}
