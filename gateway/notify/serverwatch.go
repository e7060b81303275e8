package notify

import (
	"reflect"
	"sync"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// serversKey is the row of the subscribers to the state of the servers.
var serversKey = subscriptionKey{server: registry.Local, uri: "goblin://servers"}

// serverWatch tracks the server states that each subscriber was sent last. They have only the
// servers that it sees.
type serverWatch struct {
	mu   sync.Mutex
	sent map[subscriber][]registry.ServerState
}

// addServerWatch records the states that a new subscriber knows.
func (n *Notifier) addServerWatch(h subscriber) {
	n.serverWatch.mu.Lock()
	defer n.serverWatch.mu.Unlock()
	if n.serverWatch.sent == nil {
		n.serverWatch.sent = make(map[subscriber][]registry.ServerState)
	}
	if _, known := n.serverWatch.sent[h]; !known {
		n.serverWatch.sent[h] = n.serverStates(n.catalogOf(h))
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

// notifyServers notifies the subscribers that see other server states than before.
func (n *Notifier) notifyServers() {
	n.serverWatch.mu.Lock()
	defer n.serverWatch.mu.Unlock()
	byChoice := make(map[registry.Visibility][]registry.ServerState)
	told := make(map[subscriber][]registry.ServerState)
	passed := make(map[subscriber]bool)
	for _, h := range n.subscriptions.subscribers(serversKey) {
		seen := n.catalogOf(h)
		states, made := byChoice[seen.Visibility()]
		if !made {
			states = n.serverStates(seen)
			byChoice[seen.Visibility()] = states
		}
		told[h] = states
		if reflect.DeepEqual(n.serverWatch.sent[h], states) {
			passed[h] = true
		}
	}
	n.serverWatch.sent = told
	if len(passed) < len(told) {
		n.notifySubscribers(serversKey, serversKey.uri, rawjson.Object("uri", serversKey.uri), passed)
	}
}
