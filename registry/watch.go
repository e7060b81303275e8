package registry

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// Changes is a set of changes.
type Changes uint32

// The first five are the merged visible lists.
const (
	Tools Changes = 1 << iota
	Prompts
	Resources
	Templates
	Skills
	Servers       // a state, or the set of servers
	Subscriptions // a row or counter of [Registry.Subscriptions]
	Logs          // records in [Registry.Logs]
	Traffic       // records in [Registry.Traffic]
	Locals        // the set of local tools and resources
	Sessions      // rows of [Registry.Sessions]
	Cached        // contents in [Registry.Contents]
	Pins          // a row of [Registry.UnapprovedTools]
	ListChanged   // records in [Registry.ListChanges]
	Rules         // [Registry.Rules]
	SavedCalls    // files of saved calls, see [Registry.SavedCallsChanged]

	AllChanges Changes = math.MaxUint32
)

// SavedCallsChanged notifies watchers that files of saved calls changed.
func (r *Registry) SavedCallsChanged() { r.feed.publish(SavedCalls) }

// feed notifies watchers of changes. The zero value is ready.
type feed struct {
	wantedChanges atomic.Uint32 // union of the watchers' masks
	mu            sync.Mutex
	subs          map[*watcher]struct{}
}

type watcher struct {
	ch   chan Changes // capacity one, written only under feed.mu
	mask Changes
}

// Watch returns a channel that receives all changes after the call, or only the given
// ones. Unread changes merge: a slow reader misses intermediate states but never the last
// one. Readers should receive first and then read the state. The channel is closed when
// ctx is done.
func (r *Registry) Watch(ctx context.Context, only ...Changes) <-chan Changes {
	var mask Changes
	for _, c := range only {
		mask |= c
	}
	if len(only) == 0 {
		mask = AllChanges
	}
	return r.feed.watch(ctx, mask)
}

func (f *feed) watch(ctx context.Context, mask Changes) <-chan Changes {
	w := &watcher{ch: make(chan Changes, 1), mask: mask}
	f.mu.Lock()
	if f.subs == nil {
		f.subs = map[*watcher]struct{}{}
	}
	f.subs[w] = struct{}{}
	f.wantLocked()
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, w)
		f.wantLocked()
		close(w.ch)
	})
	return w.ch
}

func (f *feed) wantLocked() {
	var all Changes
	for w := range f.subs {
		all |= w.mask
	}
	f.wantedChanges.Store(uint32(all))
}

// publish never blocks: each channel has capacity one, and only holders of the lock send.
func (f *feed) publish(c Changes) {
	if c&Changes(f.wantedChanges.Load()) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.subs {
		news := c & w.mask
		if news == 0 {
			continue
		}
		select {
		case old := <-w.ch:
			w.ch <- old | news
		default:
			w.ch <- news
		}
	}
}

// NotifyDisabled notifies watchers that clients see other lists of the same catalog.
func (r *Registry) NotifyDisabled() { r.feed.publish(Tools | Prompts | Resources | Templates) }
