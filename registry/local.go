package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"goblin/registry/names"
	"goblin/registry/rawjson"
)

// LocalResource is one of Goblin's own resources. Its URI may have any scheme and is
// listed unchanged.
type LocalResource struct {
	URI, Name, Title, Description, MIME string
	// Read returns the text. Each read calls it in the goroutine of the request.
	Read func(ctx context.Context) (string, error)
}

// LocalTool is one of Goblin's own tools, listed without a prefix.
type LocalTool struct {
	Definition []byte // raw MCP tool definition
	// Call receives the raw arguments object and returns the raw CallToolResult. It may
	// report progress with [Progress].
	Call func(ctx context.Context, args []byte) (result []byte, err error)
	// MakesRequests reports whether Call makes requests in the name of the calling
	// client, with the ctx that it receives. Another such tool cannot call it.
	MakesRequests bool
	// ForwardsCall replaces Call: a call of this tool becomes a call of the tool in its
	// arguments `name` and `arguments`.
	ForwardsCall bool
}

// AddResource lists Goblin's own resources, all or none. It fails if a URI is already
// listed or has no scheme, or if Read is missing.
func (r *Registry) AddResource(rs ...LocalResource) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	handlers := maps.Clone(r.Load().handlers)
	if handlers == nil {
		handlers = map[string]*LocalResource{}
	}
	for _, l := range rs {
		if scheme, _, ok := strings.Cut(l.URI, ":"); !ok || scheme == "" {
			return fmt.Errorf("local resource %q: not a URI", l.URI)
		}
		if l.Read == nil {
			return fmt.Errorf("local resource %q: no Read", l.URI)
		}
		if handlers[l.URI] != nil {
			return fmt.Errorf("local resource %q: already listed", l.URI)
		}
		handlers[l.URI] = &l
	}
	return r.setResources(handlers)
}

func (r *Registry) setResources(handlers map[string]*LocalResource) error {
	items := make([][]byte, 0, len(handlers))
	for _, l := range handlers {
		def := struct {
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Title       string `json:"title,omitempty"`
			Description string `json:"description,omitempty"`
			MIME        string `json:"mimeType,omitempty"`
		}{l.URI, l.Name, l.Title, l.Description, l.MIME}
		if def.Name == "" {
			def.Name = l.URI
		}
		item, err := json.Marshal(def)
		if err != nil {
			return fmt.Errorf("local resource %q: %w", l.URI, err)
		}
		items = append(items, item)
	}
	return r.setLocal(Resource, items, func(next *Snapshot) { next.handlers = handlers })
}

// AddTool lists Goblin's own tools, all or none. It fails if a name is already listed or
// contains characters outside of [A-Za-z0-9_-], or if Call is missing. A server's tool
// with the same listed name gets a suffix.
func (r *Registry) AddTool(ts ...LocalTool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	tools := maps.Clone(r.Load().tools)
	if tools == nil {
		tools = map[string]*LocalTool{}
	}
	for _, l := range ts {
		if err := rawjson.Valid(l.Definition); err != nil {
			return fmt.Errorf("local tool: %w", err)
		}
		name := rawjson.GetString(l.Definition, "name")
		switch {
		case name == "" || !names.IsToolName(name):
			return fmt.Errorf("local tool %q: not a tool name", name)
		case l.Call == nil && !l.ForwardsCall:
			return fmt.Errorf("local tool %q: no Call", name)
		case tools[name] != nil:
			return fmt.Errorf("local tool %q: already listed", name)
		}
		tools[name] = &l
	}
	items := make([][]byte, 0, len(tools))
	for _, l := range tools {
		items = append(items, l.Definition)
	}
	return r.setLocal(Tool, items, func(next *Snapshot) { next.tools = tools })
}

func (r *Registry) setLocal(kind Kind, items [][]byte, change func(next *Snapshot)) error {
	run, err := buildLocal(kind, items, r.opt)
	if err != nil {
		return err
	}
	old := r.Load()
	next := *old
	next.tables = slices.Clone(old.tables)
	change(&next)
	changed, was := Locals, old.tables[0].runs[kind]
	if !was.same(run) {
		changed |= next.replace(kind, old.tables[0], run)
	}
	if kind == Tool {
		for _, t := range old.tables[1:] {
			changed |= r.rename(&next, t, Tool)
		}
	}
	r.snap.Store(&next)
	if was != next.tables[0].runs[kind] {
		r.logListChange(next.tables[0], kind, was, nil)
	}
	r.feed.publish(changed)
	return nil
}

// buildLocal keeps names, except for too long ones of tools. Unlike in server lists, one
// invalid entry rejects the list.
func buildLocal(kind Kind, items [][]byte, o Options) (*run, error) {
	ps := &listProblems{kind: kind, server: Local}
	drafts := parse(kind, items, o.MaxEntries, false, ps)
	for _, p := range ps.list {
		return nil, fmt.Errorf("local %s %q: %s", kind, p.Name, p.Text)
	}
	if len(drafts) == 0 {
		return nil, nil
	}
	c := buildOptions{kind: kind, rule: &listingRule{Rule: &names.Rule{Server: Local}}, linkedURI: func(uri string) string { return uri }}
	for i := range drafts {
		drafts[i].listed = drafts[i].name
		if kind == Tool {
			drafts[i].listed = ownToolName(drafts[i].name, o.MaxName)
		}
	}
	sortListed(drafts)
	if kind == Resource {
		flatIDs(c.rule, drafts, ps)
	}
	r := &run{server: Local}
	r.render(c, drafts)
	r.index(kind, drafts)
	return r, nil
}

func ownToolName(name string, most int) string {
	if len(name) <= most {
		return name
	}
	short, _ := names.HashSuffixes(Local+"\x00"+name, '_')
	return name[:most-names.SuffixLen] + short
}

// ServersResource returns goblin://servers, the state of every server as JSON, for
// [Registry.AddResource].
func ServersResource(r *Registry) LocalResource {
	return LocalResource{
		URI:         "goblin://servers",
		Name:        "servers",
		Title:       "Servers",
		Description: "The state of every server behind Goblin",
		MIME:        "application/json",
		Read: func(ctx context.Context) (string, error) {
			text, err := json.Marshal(struct {
				Servers []serverJSON `json:"servers"`
			}{serversJSON(r.StatesIn(r.ViewFor(ctx)))})
			return string(text), err
		},
	}
}

type serverJSON struct {
	Name            string          `json:"name"`
	State           State           `json:"state"`
	Since           time.Time       `json:"since,omitzero"`
	Transport       string          `json:"transport,omitempty"`
	Era             string          `json:"era,omitempty"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	ServerInfo      *serverInfoJSON `json:"serverInfo,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Counts          map[string]int  `json:"counts"`
	Listed          bool            `json:"listed"`
	Stale           bool            `json:"stale"`
	Remembered      time.Time       `json:"remembered,omitzero"` // list time, if before this daemon started
	Held            string          `json:"keptRunningBy,omitempty"`
	Restarts        int             `json:"restarts"`
	LastError       string          `json:"lastError,omitempty"`
	LatencyMillis   float64         `json:"latencyMs,omitempty"`
	PID             int             `json:"pid,omitempty"`
	Projects        []Project       `json:"projects,omitempty"`
}

type serverInfoJSON struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

func serversJSON(states []ServerState) []serverJSON {
	out := make([]serverJSON, len(states))
	for i, s := range states {
		j := serverJSON{
			Name: s.Name, State: s.State, Since: s.Since, Transport: s.Transport, Era: s.Era, ProtocolVersion: s.ProtocolVersion,
			Instructions: s.Instructions, Listed: s.Listed, Stale: s.Stale, Remembered: s.CachedAt, Held: s.KeepAwakeReason, Restarts: s.Restarts, LastError: s.LastError,
			LatencyMillis: float64(s.Latency.Microseconds()) / 1000, PID: s.PID, Projects: s.Projects,
			Counts: map[string]int{
				"tools": s.Counts[Tool], "prompts": s.Counts[Prompt],
				"resources": s.Counts[Resource], "resourceTemplates": s.Counts[Template],
			},
		}
		if s.ServerName != "" || s.ServerVersion != "" {
			j.ServerInfo = &serverInfoJSON{s.ServerName, s.ServerTitle, s.ServerVersion}
		}
		if rawjson.Valid(s.Capabilities) == nil {
			j.Capabilities = s.Capabilities
		}
		out[i] = j
	}
	return out
}
