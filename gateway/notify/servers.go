package notify

import (
	"reflect"
	"sync"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// serversKey is the row of the subscribers to the state of the servers.
var serversKey = subscriptionKey{server: registry.Local, uri: "goblin://servers"}

// serverNews keeps the states that each watcher of the servers was sent last: of those that
// it sees, and no others.
type serverNews struct {
	mu   sync.Mutex
	told map[subscriber][]registry.ServerState
}

// watchServers notes what a new subscriber knows.
func (n *Notifier) watchServers(h subscriber) {
	n.servers.mu.Lock()
	defer n.servers.mu.Unlock()
	if n.servers.told == nil {
		n.servers.told = make(map[subscriber][]registry.ServerState)
	}
	if _, known := n.servers.told[h]; !known {
		n.servers.told[h] = n.serverStates(n.catalogOf(h))
	}
}

// serverStates are the states of servers without what changes by every request and list.
func (n *Notifier) serverStates(seen *registry.Snapshot) []registry.ServerState {
	states := n.o.Registry.StatesIn(seen)
	for i := range states {
		states[i].Latency, states[i].Counts = 0, [registry.Kinds]int{}
	}
	return states
}

// serversChanged tells those who watch the servers and to whom others, or other states, are
// shown than before.
func (n *Notifier) serversChanged() {
	n.servers.mu.Lock()
	defer n.servers.mu.Unlock()
	byChoice := make(map[registry.Visibility][]registry.ServerState)
	told := make(map[subscriber][]registry.ServerState)
	passed := make(map[subscriber]bool)
	for _, h := range n.rows.holders(serversKey) {
		seen := n.catalogOf(h)
		states, made := byChoice[seen.Visibility()]
		if !made {
			states = n.serverStates(seen)
			byChoice[seen.Visibility()] = states
		}
		told[h] = states
		if reflect.DeepEqual(n.servers.told[h], states) {
			passed[h] = true
		}
	}
	n.servers.told = told
	if len(passed) < len(told) {
		n.tellSubsOf(serversKey, serversKey.uri, rawjson.Object("uri", serversKey.uri), passed)
	}
}
