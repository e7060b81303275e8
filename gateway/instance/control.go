package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"goblin/gateway"
	"goblin/gateway/fleet"
	"goblin/registry"
)

// Operations of the host's control channel.
const (
	OpStatus  = "status"  // → Status
	OpList    = "list"    // ListQuery → []Item
	OpStop    = "stop"    // ends the host
	OpRestart = "restart" // RestartArgs: closes a server's connections and opens them anew
	OpSearch  = "search"  // SearchQuery → SearchAnswer
	OpScript  = "script"  // ScriptArgs → ScriptAnswer
	OpPinned  = "pinned"  // → []PinnedTool
	OpApprove = "approve" // ApproveArgs → []string: the tools that are approved now
)

// Status is what `goblin status` shows.
type Status struct {
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Config   string    `json:"config"` // path, or "demo"
	Demo     bool      `json:"demo,omitempty"`
	Started  time.Time `json:"started"`
	Address  string    `json:"address,omitempty"` // URL of the HTTP endpoint
	Log      string    `json:"log,omitempty"`     // file that the log goes to; none: its stderr
	Notice   string    `json:"notice,omitempty"`  // such as why the edited config was not taken
	Sessions []Session `json:"sessions"`
	Servers  []Server  `json:"servers"`
}

// Clients counts the sessions that are not those of screens.
func (s Status) Clients() (n int) {
	for _, c := range s.Sessions {
		if c.Transport != gateway.ScreenTransport {
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
	// Of a screen only.
	Terminal string `json:"terminal,omitempty"` // what it calls itself
	Width    int    `json:"width,omitempty"`    // in cells
	Height   int    `json:"height,omitempty"`
	Owner    bool   `json:"owner,omitempty"` // the host ends with it
}

// Server is a configured server and what it offers.
type Server struct {
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Transport string  `json:"transport"`
	Protocol  string  `json:"protocolVersion,omitempty"`
	Error     string  `json:"error,omitempty"`
	Listed    bool    `json:"listed"` // its lists were fetched at least once, so the counts are known
	Tools     int     `json:"tools"`
	Prompts   int     `json:"prompts"`
	Resources int     `json:"resources"`
	Templates int     `json:"templates"`
	Awaiting  int     `json:"awaitingApproval,omitempty"` // tools that are new or changed
	Withheld  int     `json:"withheld,omitempty"`         // those of them that clients do not get
	Restarts  int     `json:"restarts"`
	PID       int     `json:"pid,omitempty"`
	LatencyMS float64 `json:"latencyMs,omitempty"`
}

// RestartArgs are the arguments of [OpRestart].
type RestartArgs struct {
	Server string `json:"server"`
}

// ApproveArgs are the arguments of [OpApprove].
type ApproveArgs struct {
	Server string   `json:"server"`
	Tools  []string `json:"tools,omitempty"` // their own names; none: all that await it
	// Seen are the hashes of definitions, by name: others are not approved, and
	// if one is another by now, nothing is. nil: whatever there is.
	Seen map[string]string `json:"seen"`
}

// PinnedTool is a tool that awaits approval.
type PinnedTool struct {
	Server   string          `json:"serverId"`
	Name     string          `json:"name"` // its own
	New      bool            `json:"new"`
	Withheld bool            `json:"withheld"`
	Approved json.RawMessage `json:"approved,omitempty"`
	Offered  json.RawMessage `json:"offered,omitempty"`
	Hash     string          `json:"sha256"` // of what is offered
}

// ListQuery chooses what to list.
type ListQuery struct {
	Kind   string `json:"kind"`             // servers, tools, prompts, resources or templates
	Server string `json:"server,omitempty"` // only this server's
	MIME   string `json:"mime,omitempty"`   // only this MIME type; * stands for any text
}

// Item is an entry of the catalog with what clients are not told of it. Name
// is the listed name of a tool or prompt; URI the listed URI or template.
type Item struct {
	Name        string          `json:"name,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Server      string          `json:"serverId"`
	Original    string          `json:"original"` // the server's own name or URI
	FlatID      string          `json:"flatId,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mimeType,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Definition  json.RawMessage `json:"definition"` // as clients get it
}

// Status reports on this instance.
func (i *Instance) Status() Status {
	s := Status{
		PID: pid, Version: i.o.Version, Config: i.ConfigName(), Demo: i.o.Config.Demo,
		Started: i.started, Address: i.Address(), Log: i.o.Log, Notice: i.registry.Notice(),
		Sessions: []Session{}, Servers: []Server{},
	}
	for _, c := range i.gateway.Sessions() {
		info := c.Client()
		row := Session{
			ID: c.ID(), Transport: c.Transport(), Client: info.Name, Version: info.Version,
			Protocol: c.Protocol(), Since: c.Since,
		}
		if at, ok := i.screens.Load(c.Session); ok {
			shown := at.(func() Screen)()
			row.Terminal, row.Width, row.Height, row.Owner = shown.Terminal, shown.Width, shown.Height, shown.Owner
		}
		s.Sessions = append(s.Sessions, row)
	}
	for _, state := range i.registry.States() {
		pinned := i.registry.Pinned(state.Name)
		withheld := 0
		for _, p := range pinned {
			if p.Withheld {
				withheld++
			}
		}
		s.Servers = append(s.Servers, Server{
			Awaiting: len(pinned), Withheld: withheld,
			Name: state.Name, State: string(state.State), Transport: state.Transport,
			Protocol: state.ProtocolVersion, Error: state.LastError,
			Listed: state.Listed, Tools: state.Counts[registry.Tool], Prompts: state.Counts[registry.Prompt],
			Resources: state.Counts[registry.Resource], Templates: state.Counts[registry.Template],
			Restarts: state.Restarts, PID: state.PID,
			LatencyMS: float64(state.Latency.Microseconds()) / 1000,
		})
	}
	return s
}

var kinds = map[string]registry.Kind{
	"tools": registry.Tool, "prompts": registry.Prompt,
	"resources": registry.Resource, "templates": registry.Template,
}

// List lists entries in the order that clients see, once the servers have
// listed or startup_wait is over.
func (i *Instance) List(ctx context.Context, q ListQuery) ([]Item, error) {
	kind, ok := kinds[q.Kind]
	if !ok {
		return nil, fmt.Errorf("list %q: known are tools, prompts, resources and templates", q.Kind)
	}
	if err := i.knows(q.Server); err != nil {
		return nil, err
	}
	fits, err := registry.MIMEFilter(q.MIME)
	if err != nil {
		return nil, err
	}
	i.gateway.Servers.AwaitLists(ctx)
	items := []Item{}
	for e := range i.registry.Load().All(kind) {
		if q.Server != "" && e.Server != q.Server || fits != nil && !fits(e) {
			continue
		}
		items = append(items, itemOf(e))
	}
	return items, nil
}

// knows fails for a server that is not in the config; "" is any.
func (i *Instance) knows(server string) error {
	if server != "" && server != registry.Local && !slices.Contains(i.gateway.Servers.Names(), server) {
		return &fleet.UnknownError{Name: server, Known: i.gateway.Servers.Names()}
	}
	return nil
}

func itemOf(e *registry.Entry) Item {
	item := Item{
		Server: e.Server, Original: e.Name, FlatID: e.Flat,
		Title: e.Title, Description: e.Description, MIME: e.MIME, Definition: e.JSON,
	}
	if e.Kind == registry.Tool || e.Kind == registry.Prompt {
		item.Name = e.Listed
	} else {
		item.URI = e.Listed
	}
	if e.Size >= 0 {
		item.Size = &e.Size
	}
	return item
}

// Restart closes a server's connections and opens them anew. The error says
// why there is nothing to restart.
func (i *Instance) Restart(server string) error { return i.gateway.Servers.Restart(server) }

// SetEnabled turns a server on or off, for as long as this instance runs. The
// error says why it cannot be turned on.
func (i *Instance) SetEnabled(server string, on bool) error {
	return i.gateway.Servers.SetEnabled(server, on)
}

// Approve takes tools of a server as they are now for good, and returns their
// names.
func (i *Instance) Approve(what ApproveArgs) ([]string, error) {
	if i.unpinned != nil {
		return nil, i.unpinned
	}
	return i.gateway.Servers.Approve(what.Server, what.Seen, what.Tools...)
}

// Pinned are the tools that await approval, of all servers for "", once the
// servers have listed or startup_wait is over. The error says why tools are not
// pinned.
func (i *Instance) Pinned(ctx context.Context, server string) ([]PinnedTool, error) {
	if i.unpinned != nil {
		return nil, i.unpinned
	}
	i.gateway.Servers.AwaitLists(ctx)
	all := []PinnedTool{}
	for _, p := range i.registry.Pinned(server) {
		all = append(all, PinnedTool{p.Server, p.Name, p.New, p.Withheld, p.Approved, p.Offered, p.Hash})
	}
	return all, nil
}

// Stop makes Run return.
func (i *Instance) Stop() { i.stop() }

var errUnknownOp = errors.New("unknown operation")

// control performs one operation of the control channel.
func (i *Instance) control(ctx context.Context, op string, args json.RawMessage) (any, error) {
	switch op {
	case OpStatus:
		return i.Status(), nil
	case OpList:
		var q ListQuery
		if err := json.Unmarshal(args, &q); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		return i.List(ctx, q)
	case OpStop:
		i.Stop()
		return struct{}{}, nil
	case OpRestart:
		var a RestartArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, fmt.Errorf("restart: %w", err)
		}
		return struct{}{}, i.Restart(a.Server)
	case OpSearch:
		var q SearchQuery
		if err := json.Unmarshal(args, &q); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		return i.Search(ctx, q)
	case OpScript:
		var a ScriptArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, fmt.Errorf("run a script: %w", err)
		}
		return i.Script(ctx, a.Source)
	case OpPinned:
		return i.Pinned(ctx, "")
	case OpApprove:
		var a ApproveArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, fmt.Errorf("approve: %w", err)
		}
		return i.Approve(a)
	default:
		return nil, fmt.Errorf("%w %q", errUnknownOp, op)
	}
}
