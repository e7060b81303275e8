package gateway

import (
	"fmt"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/pins"
	"goblin/registry"
)

// pin compares the tools that a server lists with those that were approved,
// tells of what differs, and returns those that clients get.
func (g *Gateway) pin(server string, items [][]byte) [][]byte {
	if g.o.Pins == nil {
		return items
	}
	changes, err := g.o.Pins.Check(server, items)
	if err != nil {
		g.log.Error("Pinned tools not saved", "server", server, "err", err)
	}
	g.showPinned(server, changes)
	if !g.withholds() || len(changes) == 0 {
		return items
	}
	held := make(map[string]bool, len(changes))
	for _, c := range changes {
		held[c.Name] = true
	}
	kept := make([][]byte, 0, len(items))
	for _, item := range items {
		if !held[pins.Name(item)] {
			kept = append(kept, item)
		}
	}
	return kept
}

// withholds reports whether tools that were not approved are kept from clients.
func (g *Gateway) withholds() bool { return g.o.Config.Gateway.Pin == config.PinStrict }

// showPinned writes what awaits approval where screens see it, and logs what
// was not known before.
func (g *Gateway) showPinned(server string, changes []pins.Change) {
	rows := make([]registry.PinnedTool, len(changes))
	for i, c := range changes {
		rows[i] = registry.PinnedTool{
			Server: server, Name: c.Name, New: c.New, Withheld: g.withholds(), Approved: c.Approved, Offered: c.Offered,
		}
		if old := g.reg.PinnedTool(server, c.Name); old != nil && string(old.Offered) == string(c.Offered) {
			continue
		}
		args := []any{"server", server, "tool", c.Name, "withheld", g.withholds(), "approve", approval(server, c.Name)}
		if c.New {
			g.log.Warn("Tool is new on a server that was known without it", args...)
		} else {
			g.log.Warn("Tool changed since it was approved", args...)
		}
	}
	g.reg.SetPinned(server, rows)
}

// approval is the command that approves a tool.
func approval(server, tool string) string {
	if strings.ContainsFunc(tool, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`'"\$&;|<>*?()`, r) || r > '~' }) {
		return "goblin approve " + server
	}
	return "goblin approve " + server + " " + tool
}

// ApproveTools takes tools of a server as they are now for good: all that await
// it when none is named. It returns their names. The error says which name does
// not fit.
func (g *Gateway) ApproveTools(server string, names ...string) ([]string, error) {
	b := g.server(server)
	if b == nil {
		return nil, &UnknownServerError{Name: server, Known: g.ServerNames()}
	}
	if g.o.Pins == nil {
		return nil, fmt.Errorf("tools are not pinned (gateway.pin)")
	}
	var awaiting []string
	for _, p := range g.reg.Pinned(server) {
		awaiting = append(awaiting, p.Name)
	}
	if len(names) == 0 {
		names = awaiting
	}
	if len(names) == 0 {
		return nil, nil
	}
	unknown, err := g.o.Pins.Approve(server, names...)
	if len(unknown) > 0 {
		hint := "; none of its tools await approval"
		if len(awaiting) > 0 {
			hint = "; those that await approval: " + strings.Join(awaiting, ", ")
		}
		return nil, fmt.Errorf("server %q does not offer %s%s", server, strings.Join(unknown, ", "), hint)
	}
	if err != nil {
		return nil, err
	}
	g.log.Info("Tools approved", "server", server, "tools", names)
	g.showPinned(server, g.o.Pins.Changes(server))
	if g.withholds() {
		b.RelistTools()
	}
	return names, nil
}
