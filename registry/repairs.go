package registry

import "sync"

// ChangedText is said of definitions that were repaired.
const ChangedText = "changed to satisfy clients"

// Repairs reports how a server's last lists differ from the lists that it sent. They must not be
// modified.
type Repairs struct {
	Changed int // definitions that client SDKs would refuse
	Dropped int // definitions that cannot be listed
	// Details are at most [MaxRepairs] of them.
	Details []Repair
}

// Repair is a definition that was changed or dropped.
type Repair struct {
	Kind    Kind
	Name    string // the server's own; "" where that is unknown
	Dropped bool
	Text    string // what was changed, or why it was dropped
}

// MaxRepairs bounds the details that are kept of each list, and of each server.
const MaxRepairs = 20

// add adds a detail unless there are already [MaxRepairs].
func (r *Repairs) add(d Repair) {
	if len(r.Details) < MaxRepairs {
		r.Details = append(r.Details, d)
	}
}

// repairTable is the table of repairs, by server.
type repairTable struct {
	mu   sync.RWMutex
	rows map[string]*[Kinds]Repairs
}

// set reports whether the counts of the server have changed.
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

// forServer returns the repairs in all lists of a server.
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
