// This file defines the non-MCP operations on a running gateway. The control channel
// transports them between [Remote] and [NewHandlers]. Their types are also the JSON of
// the commands' --json.

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

// Gateway is a running gateway. Its methods are safe for concurrent use and block until
// they finish or their context ends. List, Search, Script, Unapproved, HiddenEntries and
// Usage wait for servers that have not listed yet, at most startup_wait.
type Gateway interface {
	Status(ctx context.Context) (Status, error)
	// Servers returns the servers that clients of a profile see, "" for no profile, with
	// the numbers of visible entries.
	Servers(ctx context.Context, profile string) ([]Server, error)
	// List returns entries in the order of clients' lists.
	List(ctx context.Context, q ListQuery) ([]Entry, error)
	Search(ctx context.Context, q SearchQuery) (SearchAnswer, error)
	// Script runs a program over all servers. It cannot ask the user.
	Script(ctx context.Context, q ScriptQuery) (ScriptAnswer, error)
	// Unapproved returns the tools of a server that await approval; "" means all servers.
	Unapproved(ctx context.Context, server string) ([]registry.UnapprovedTool, error)
	// Approve permanently approves tools in their current form and returns their names.
	Approve(ctx context.Context, a Approval) ([]string, error)
	// CallApprovals returns the remembered approvals of calls that rules stop.
	CallApprovals(ctx context.Context) ([]registry.CallApproval, error)
	RevokeCallApproval(ctx context.Context, id string) error
	// HiddenEntries returns the entries that clients don't see, with reasons.
	HiddenEntries(ctx context.Context, q HiddenQuery) ([]HiddenEntry, error)
	// Logs returns log records, oldest first. With Wait it blocks until there is a
	// record.
	Logs(ctx context.Context, q LogQuery) (LogAnswer, error)
	// Traffic returns requests and notifications, oldest first. With Wait it blocks until
	// there is one.
	Traffic(ctx context.Context, q TrafficQuery) (TrafficAnswer, error)
	// Changes returns changes of servers' definitions since the cached lists of the
	// previous gateway.
	Changes(ctx context.Context, q ChangeQuery) (ChangeAnswer, error)
	Usage(ctx context.Context) (report.Report, error)
	// ReloadAll applies the current config file. A config with mistakes changes nothing.
	ReloadAll(ctx context.Context) error
	Restart(ctx context.Context, server string) error
	// Diagnose finds why a server does not work. It uses a separate process or connection
	// in the gateway's environment.
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
	// Stop stops the gateway without waiting.
	Stop(ctx context.Context) error
}

// Status is the output of "goblin status".
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Build   string    `json:"build,omitempty"` // of a development version; see [Endpoint]
	Config  string    `json:"config"`          // path, or "demo"
	Demo    bool      `json:"demo,omitempty"`
	Started time.Time `json:"started"`
	// Terminal is the terminal that it was started from, or "".
	Terminal     string `json:"terminal,omitempty"`
	TerminalGone bool   `json:"terminalGone,omitempty"`

	Address  string   `json:"address,omitempty"`  // URL
	Log      string   `json:"log,omitempty"`      // path of the log; "" means stderr
	Notice   string   `json:"notice,omitempty"`   // such as a rejected config edit
	Warnings []string `json:"warnings,omitempty"` // about the running config
	Linger   string   `json:"linger,omitempty"`   // idle time before exiting, such as "1m"; "" means it keeps running
	// Recording is nil if nothing is recorded.
	Recording *report.Recording `json:"recording,omitempty"`
	// Rules is nil if there are none.
	Rules    *Rules    `json:"rules,omitempty"`
	Sessions []Session `json:"sessions"`
	Servers  []Server  `json:"servers"`
}

// Clients returns the number of client sessions except silent ones.
func (s Status) Clients() (n int) {
	for i := range s.Sessions {
		if c := &s.Sessions[i]; !c.IsScreen() && c.SilentSince.IsZero() {
			n++
		}
	}
	return n
}

// Rules counts the rules of a gateway.
type Rules struct {
	Total    int    `json:"total"`
	Disabled int    `json:"disabled,omitempty"` // by the user, or after their last match
	Matches  uint64 `json:"matches"`
	Stopped  int    `json:"stoppedRequests"` // requests and answers that wait for the user
}

// NewRules counts rules and stopped requests, or returns nil if there are none.
func NewRules(state *registry.RuleState) *Rules {
	if len(state.Rules)+len(state.Stopped) == 0 {
		return nil
	}
	r := &Rules{Total: len(state.Rules), Stopped: len(state.Stopped)}
	for _, e := range state.Rules {
		r.Matches += e.Hits
		if !e.Enabled || e.Left == 0 {
			r.Disabled++
		}
	}
	return r
}

// Session is a connected client or UI.
type Session struct {
	ID        string    `json:"id"`
	Transport string    `json:"transport"`
	Client    string    `json:"client,omitempty"`
	Version   string    `json:"clientVersion,omitempty"`
	Protocol  string    `json:"protocolVersion,omitempty"`
	Since     time.Time `json:"since"`
	// SilentSince is set for a client that probably left without closing its session.
	SilentSince time.Time `json:"silentSince,omitzero"`
	Screen
}

// IsScreen reports whether the session belongs to a UI.
func (s *Session) IsScreen() bool { return s.Transport == downstream.ScreenTransport }

// IsBridged reports whether the client would start the next daemon.
func (s *Session) IsBridged() bool { return s.Transport == downstream.SocketTransport }

// Screen describes a UI's terminal. It is zero for clients.
type Screen struct {
	Terminal string `json:"terminal,omitempty"` // its own name, untrusted
	Width    int    `json:"width,omitempty"`    // in cells
	Height   int    `json:"height,omitempty"`
	Owner    bool   `json:"owner,omitempty"` // the daemon stops with it
}

// Server is a configured server with the numbers of its entries.
type Server struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Transport string `json:"transport"`
	Protocol  string `json:"protocolVersion,omitempty"`
	Error     string `json:"error,omitempty"`
	Listed    bool   `json:"listed"` // it has listed at least once, so the numbers are known
	Tools     int    `json:"tools"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	Templates int    `json:"templates"`
	Awaiting  int    `json:"awaitingApproval,omitempty"` // new or changed tools
	Withheld  int    `json:"withheld,omitempty"`         // unapproved tools, hidden from clients
	Held      string `json:"keptRunningBy,omitempty"`    // reason why it is not idle
	// Definitions lists the changed and dropped definitions, or is nil.
	Definitions *Definitions      `json:"definitions,omitempty"`
	Restarts    int               `json:"restarts"`
	PID         int               `json:"pid,omitempty"`
	LatencyMS   float64           `json:"latencyMs,omitempty"`
	Login       *registry.Account `json:"login,omitempty"` // nil: not logged in
	// Remembered is the time of the cached lists, or zero after a list by this daemon.
	Remembered time.Time `json:"remembered,omitzero"`
}

// Definitions lists a server's definitions that were repaired for clients or dropped.
type Definitions struct {
	Changed int          `json:"changed"`
	Dropped int          `json:"dropped"`
	First   []Definition `json:"first"` // at most 20
}

// Definition is a changed or dropped definition. Name and Text are untrusted.
type Definition struct {
	Kind    string `json:"kind"` // tool, prompt, resource or template
	Name    string `json:"name,omitempty"`
	Dropped bool   `json:"dropped,omitempty"`
	Text    string `json:"text"` // the change, or the reason for dropping
}

// NewDefinitions describes the repairs of a server's lists, or returns nil.
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

// ListQuery selects entries to list.
type ListQuery struct {
	Kind    string `json:"kind"`              // tools, prompts, resources or templates
	Server  string `json:"server,omitempty"`  // only this server
	MIME    string `json:"mime,omitempty"`    // only this MIME type; * matches any text
	Profile string `json:"profile,omitempty"` // view of this profile; "" means everything
	// WithHidden includes hidden entries under their would-be names.
	WithHidden bool   `json:"every,omitempty"`
	Name       string `json:"name,omitempty"` // only entries matching this name, see [MatchName]
	WithOwn    bool   `json:"own,omitempty"`  // set [Entry.Own]
}

// Entry is a catalog entry with details that clients don't get.
type Entry struct {
	Name         string          `json:"name,omitempty"` // listed name of a tool or prompt; title of others
	URI          string          `json:"uri,omitempty"`  // as listed
	URITemplate  string          `json:"uriTemplate,omitempty"`
	Server       string          `json:"serverId"`
	OriginalName string          `json:"originalName,omitempty"` // the server's own
	OriginalURI  string          `json:"originalUri,omitempty"`
	FlatID       string          `json:"flatId,omitempty"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	MIMEType     string          `json:"mimeType,omitempty"`
	Size         *int64          `json:"size,omitempty"`
	Definition   json.RawMessage `json:"definition"`           // as listed for clients
	Overridden   json.RawMessage `json:"overridden,omitempty"` // as sent by the server, without renames; nil if not overridden
	Own          json.RawMessage `json:"own,omitempty"`        // as sent by the server; see [ListQuery]
	Changes      []string        `json:"changes,omitempty"`    // repairs for clients
	Remembered   time.Time       `json:"remembered,omitzero"`  // see [Server]
	// State and Reason are set by commands, from [HiddenEntry].
	State  State  `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// State is the visibility of an entry for clients.
type State string

// The visibilities of entries.
const (
	StateListed     State = "listed"
	StateFiltered   State = "filtered"   // by the config
	StateUnapproved State = "unapproved" // new, or changed since its approval
	StateDisabled   State = "disabled"   // by the user
	StateHidden     State = "hidden by profile"
	StateSearch     State = "found by search" // not listed, but callable
)

// NewEntry converts an entry of the registry.
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

// MatchName rates how well a name matches an entry. 2 means the listed name, SERVER/NAME
// or other. 1 means the server's own name. 0 means no match. other is the flat id of a
// resource, or SERVER_NAME of a prompt.
func MatchName(name, server, original, listed, other string) int {
	switch name {
	case listed, other, server + "/" + original:
		return 2
	case original:
		return 1
	}
	return 0
}

// MatchName rates a name, see the function [MatchName].
func (e *Entry) MatchName(name string) int {
	other := e.FlatID
	if other == "" {
		other = e.Server + "_" + e.OriginalName
	}
	return MatchName(name, e.Server, e.OriginalLabel(), e.ListedName(), other)
}

// ListedName returns the name, URI or template in clients' requests.
func (e *Entry) ListedName() string { return cmp.Or(e.URI, e.URITemplate, e.Name) }

// OriginalLabel returns the server's own name, URI or template.
func (e *Entry) OriginalLabel() string { return cmp.Or(e.OriginalName, e.OriginalURI) }

// SearchQuery is a search for entries.
type SearchQuery struct {
	Text    string `json:"text"`
	Kind    string `json:"kind,omitempty"`   // tools, prompts, resources or templates; "" means all
	Server  string `json:"server,omitempty"` // only this server
	MIME    string `json:"mime,omitempty"`   // only this MIME type; * matches any text
	Limit   int    `json:"limit"`
	Profile string `json:"profile,omitempty"` // view of this profile; "" means everything
}

// SearchAnswer contains the best hits and the number of all.
type SearchAnswer struct {
	Hits  []Hit `json:"hits"`
	Total int   `json:"total"`
	Weak  bool  `json:"weak,omitempty"` // even the best hit matches poorly
}

// Hit is a found entry.
type Hit struct {
	Kind  string  `json:"kind"` // tool, prompt, resource or template
	Score float64 `json:"score"`
	Entry
}

// ScriptQuery is a script to run.
type ScriptQuery struct {
	Source  string `json:"source"`
	Profile string `json:"profile,omitempty"` // view of this profile; "" means everything
}

// ScriptAnswer is the result of a script.
type ScriptAnswer struct {
	Value   json.RawMessage `json:"value,omitempty"` // return value, if any
	Printed string          `json:"printed,omitempty"`
	Hint    string          `json:"hint,omitempty"`    // hint if there is no output
	Error   string          `json:"error,omitempty"`   // cause of the failure, with the line
	Timeout bool            `json:"timeout,omitempty"` // the failure is a timeout
}

// Approval selects tools of a server to approve.
type Approval struct {
	Server string   `json:"server"`
	Tools  []string `json:"tools,omitempty"` // the server's own names; none means all unapproved
	// Seen contains the hashes of the reviewed definitions by name. Only these tools are
	// approved, and none if a definition has changed since. nil approves without this
	// check.
	Seen map[string]string `json:"seen"`
}

// HiddenQuery selects entries to list.
type HiddenQuery struct {
	Kind    string `json:"kind"`              // tools, prompts, resources or templates
	Profile string `json:"profile,omitempty"` // view of this profile; "" means the default
	All     bool   `json:"all,omitempty"`     // include visible entries
	Name    string `json:"name,omitempty"`    // only entries matching this name, see [MatchName]
}

// HiddenEntry is a hidden entry, or any entry with [HiddenQuery.All].
type HiddenEntry struct {
	Name     string    `json:"name,omitempty"` // name for clients; "" if the server does not list it
	Server   string    `json:"serverId"`
	Original string    `json:"originalName"` // the server's own name or URI
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"` // config, pin, you, profile or search
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since,omitzero"` // when the user disabled it
}

// Label returns the listed name, or SERVER/NAME for an unlisted entry.
func (o *HiddenEntry) Label() string { return cmp.Or(o.Name, o.Server+"/"+o.Original) }

type operation = func(ctx context.Context, g Gateway, args json.RawMessage) (any, error)

var operations = map[string]operation{
	"status":  func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return g.Status(ctx) },
	"stop":    func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return nil, g.Stop(ctx) },
	"usage":   func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return g.Usage(ctx) },
	"logs":    with(Gateway.Logs),
	"traffic": with(Gateway.Traffic),
	"changes": with(Gateway.Changes),
	"follow":  func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return nil, g.ReloadAll(ctx) },
	"servers": with(Gateway.Servers),
	"list":    with(Gateway.List), "search": with(Gateway.Search), "script": with(Gateway.Script),
	"diagnose": with(Gateway.Diagnose),
	"pinned":   with(Gateway.Unapproved), "approve": with(Gateway.Approve), "off": with(Gateway.HiddenEntries),
	"calls": func(ctx context.Context, g Gateway, _ json.RawMessage) (any, error) { return g.CallApprovals(ctx) },
	"revoke": with(func(g Gateway, ctx context.Context, id string) (any, error) {
		return nil, g.RevokeCallApproval(ctx, id)
	}),
	"restart": with(func(g Gateway, ctx context.Context, server string) (any, error) { return nil, g.Restart(ctx, server) }),
}

func with[A, R any](method func(Gateway, context.Context, A) (R, error)) operation {
	return func(ctx context.Context, g Gateway, raw json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		return method(g, ctx, args)
	}
}

// NewHandlers returns [Handlers.Control] for a gateway.
func NewHandlers(g Gateway) func(ctx context.Context, op string, args json.RawMessage) (any, error) {
	return func(ctx context.Context, op string, args json.RawMessage) (any, error) {
		do, ok := operations[op]
		if !ok {
			return nil, fmt.Errorf("unknown operation %q", op)
		}
		return do(ctx, g, args)
	}
}

// Remote is the gateway of the daemon at an endpoint. See [Control] for the errors.
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

// CallApprovals implements [Gateway].
func (r Remote) CallApprovals(ctx context.Context) ([]registry.CallApproval, error) {
	return ask[[]registry.CallApproval](ctx, r, "calls", nil)
}

// RevokeCallApproval implements [Gateway].
func (r Remote) RevokeCallApproval(ctx context.Context, id string) error {
	return Control(ctx, r.Place, "revoke", id, nil)
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

// Traffic implements [Gateway].
func (r Remote) Traffic(ctx context.Context, q TrafficQuery) (TrafficAnswer, error) {
	return ask[TrafficAnswer](ctx, r, "traffic", q)
}

// Changes implements [Gateway].
func (r Remote) Changes(ctx context.Context, q ChangeQuery) (ChangeAnswer, error) {
	return ask[ChangeAnswer](ctx, r, "changes", q)
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
