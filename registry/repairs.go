package registry

import "sync"

// ChangedText introduces repairs of a definition.
const ChangedText = "changed to satisfy clients"

// Repairs describes how a server's last lists differ from what it sent. Callers must not
// modify it.
type Repairs struct {
	Changed int // definitions that client SDKs would refuse
	Dropped int // definitions that cannot be listed
	// Details holds at most [maxRepairs] of them.
	Details []Repair
}

// Repair is a definition that was changed or dropped.
type Repair struct {
	Kind    Kind
	Name    string // the server's own; "" if unknown
	Dropped bool
	Text    string // the change, or the reason for dropping it
}

// maxRepairs is the maximum number of details stored per list and returned per server.
const maxRepairs = 20

func (r *Repairs) add(d Repair) {
	if len(r.Details) < maxRepairs {
		r.Details = append(r.Details, d)
	}
}

type repairTable struct {
	mu   sync.RWMutex
	rows map[string]*[Kinds]Repairs
}

func (t *repairTable) set(server string, k Kind, r Repairs) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[server]
	if row == nil {
		row = new([Kinds]Repairs)
		if t.rows == nil {
			t.rows = map[string]*[Kinds]Repairs{}
		}
		t.rows[server] = row
	}
	before := row[k]
	row[k] = r
	return before.Changed != r.Changed || before.Dropped != r.Dropped
}

func (t *repairTable) drop(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, server)
}

func (t *repairTable) forServer(server string) (all Repairs) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	row := t.rows[server]
	if row == nil {
		return all
	}
	for _, r := range row {
		all.Changed += r.Changed
		all.Dropped += r.Dropped
		for _, d := range r.Details {
			all.add(d)
		}
	}
	return all
}
