package notify

import (
	"reflect"
	"sync"

	"goblin/registry"
	"goblin/registry/rawjson"
)

// serversKey is the key of subscriptions to server states.
var serversKey = subscriptionKey{server: registry.Local, uri: "goblin://servers"}

// serverWatch holds the visible server states last sent to each subscriber.
type serverWatch struct {
	mu   sync.Mutex
	sent map[subscriber][]registry.ServerState
}

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

// serverStates omits values that change with each request and list.
func (n *Notifier) serverStates(seen *registry.Snapshot) []registry.ServerState {
	states := n.o.Registry.StatesIn(seen)
	for i := range states {
		states[i].Latency, states[i].Counts = 0, [registry.Kinds]int{}
	}
	return states
}

// notifyServers notifies subscribers whose visible states changed.
func (n *Notifier) notifyServers() {
	n.serverWatch.mu.Lock()
	defer n.serverWatch.mu.Unlock()
	byChoice := make(map[registry.Visibility][]registry.ServerState)
	next := make(map[subscriber][]registry.ServerState)
	passed := make(map[subscriber]bool)
	for _, h := range n.subscriptions.subscribers(serversKey) {
		seen := n.catalogOf(h)
		states, made := byChoice[seen.Visibility()]
		if !made {
			states = n.serverStates(seen)
			byChoice[seen.Visibility()] = states
		}
		next[h] = states
		if reflect.DeepEqual(n.serverWatch.sent[h], states) {
			passed[h] = true
		}
	}
	n.serverWatch.sent = next
	if len(passed) < len(next) {
		n.notifySubscribers(serversKey, serversKey.uri, rawjson.Object("uri", serversKey.uri), passed)
	}
}
