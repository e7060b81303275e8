package daemon

import (
	"encoding/json"
	"time"

	"goblin/registry"
)

// ChangeQuery asks for changes of servers' definitions.
type ChangeQuery struct {
	Server      string    `json:"server,omitempty"` // "" for all
	Since       time.Time `json:"since,omitzero"`
	Definitions bool      `json:"definitions,omitempty"` // include Before and After
}

// ChangeAnswer has changes, the oldest first.
type ChangeAnswer struct {
	Changes []ListChange `json:"changes"`
	Dropped uint64       `json:"missed,omitempty"` // older ones that were evicted
	From    time.Time    `json:"from,omitzero"`    // start of the journal
}

// ListChange is a change of one definition by its server. All texts are untrusted.
type ListChange struct {
	Time   time.Time `json:"time"`
	Server string    `json:"serverId"`
	Kind   string    `json:"kind"`           // tool, prompt, resource, template or skill
	Name   string    `json:"name,omitempty"` // the server's own; "" in a summary
	Op     string    `json:"op"`             // added, removed or changed
	What   []string  `json:"what,omitempty"` // meaning of a change
	Count  int       `json:"count,omitempty"`
	// Before and After are the server's own definitions, if at most 64 KiB.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// SelectChanges returns the changes of a journal that a query asks for.
func SelectChanges(j *registry.ListChangeJournal, q *ChangeQuery) ChangeAnswer {
	answer := ChangeAnswer{Changes: []ListChange{}, Dropped: j.Stats().Dropped}
	for _, c := range j.Window(0, -1) {
		if q.Server != "" && c.Server != q.Server || c.Time.Before(q.Since) {
			continue
		}
		one := ListChange{Time: c.Time, Server: c.Server, Kind: c.Kind.String(), Name: c.Name, Op: c.Op, What: c.What, Count: c.Count}
		if q.Definitions {
			one.Before, one.After = c.Before, c.After
		}
		answer.Changes = append(answer.Changes, one)
	}
	return answer
}
