// Package resourcehistory lists the reads and updates of one resource.
//
// A [Store] keeps contents that its UI read, at most [maxContents] per resource and
// [maxBytes] in total. It reads followed resources again after updates. A [View] is the
// dialog: it combines the Store with the traffic journal. Both must run on the UI's Update
// goroutine; decoding runs in commands.
package resourcehistory

import (
	"bytes"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// Limits of a [Store]. maxBytes is also the limit of the recorded contents of one View.
const (
	maxContents = 50 // per resource
	maxBytes    = 32_000_000
	maxFollowed = 50 // resources
	maxPaths    = 200
	// overhead is the approximate size of a read without its content, in bytes.
	overhead = 512
	// readDelay combines several updates into one read. It is longer than the delay of reads
	// for the detail, which make another one unnecessary.
	readDelay = 350 * time.Millisecond
)

// Store holds contents that one UI read. The oldest are dropped first.
type Store struct {
	app      *uicontext.Context
	reads    []*registry.Invocation // oldest first
	bytes    int
	paths    map[uicontext.Item]string // of numbers
	followed map[uicontext.Item]*follow
	view     *View // the open one, or nil
}

type follow struct {
	updates uint64 // of the subscription, before the last read
	waiting bool   // a read is scheduled
}

// NewStore returns an empty Store.
func NewStore(a *uicontext.Context) *Store {
	return &Store{app: a, paths: map[uicontext.Item]string{}, followed: map[uicontext.Item]*follow{}}
}

// Add keeps a read and shows it in an open View. Equal contents in a row share their
// memory.
func (s *Store) Add(inv *registry.Invocation) tea.Cmd {
	kept := *inv
	of := s.of(inv.Server, inv.Name)
	if n := len(of); n > 0 && bytes.Equal(of[n-1].Result, inv.Result) {
		kept.Result = of[n-1].Result
	}
	s.reads = append(s.reads, &kept)
	s.bytes += len(kept.Result) + overhead
	if len(of) >= maxContents {
		s.drop(of[0])
	}
	for s.bytes > maxBytes && len(s.reads) > 1 {
		s.drop(s.reads[0])
	}
	if s.view != nil {
		return s.view.Refresh(registry.Cached)
	}
	return nil
}

func (s *Store) drop(inv *registry.Invocation) {
	s.reads = slices.DeleteFunc(s.reads, func(o *registry.Invocation) bool { return o == inv })
	s.bytes -= len(inv.Result) + overhead
}

// of returns the reads of a resource, the oldest first.
func (s *Store) of(server, uri string) (out []*registry.Invocation) {
	for _, inv := range s.reads {
		if inv.Server == server && inv.Name == uri {
			out = append(out, inv)
		}
	}
	return out
}

// Follow reads a resource after each of its updates, while this UI is subscribed to it.
// Above the limit the resource is not followed.
func (s *Store) Follow(it uicontext.Item) {
	sub, subscribed := s.subscription(it)
	if !subscribed || s.follows(it) {
		return
	}
	for old := range s.followed {
		if _, subscribed := s.subscription(old); !subscribed {
			delete(s.followed, old)
		}
	}
	if len(s.followed) < maxFollowed {
		s.followed[it] = &follow{updates: sub.Updates}
	}
}

func (s *Store) follows(it uicontext.Item) bool {
	for other := range s.followed { // few
		if other.Server == it.Server && other.Name == it.Name {
			return true
		}
	}
	return false
}

func (s *Store) subscription(it uicontext.Item) (sub registry.SubscriptionState, subscribed bool) {
	sub, _ = s.app.Reg.Subscription(it.Server, it.Name)
	return sub, sub.Status == registry.SubscriptionOn && slices.Contains(sub.Sessions, s.app.Backend.Session())
}

// Refresh schedules reads of the followed resources that have new updates.
func (s *Store) Refresh() tea.Cmd {
	var cmds []tea.Cmd
	for it, f := range s.followed {
		sub, subscribed := s.subscription(it)
		if subscribed && !f.waiting && sub.Updates > f.updates {
			f.waiting = true
			cmds = append(cmds, s.readLater(it, f))
		}
	}
	return tea.Batch(cmds...)
}

func (s *Store) readLater(it uicontext.Item, f *follow) tea.Cmd {
	return s.app.After(readDelay, keys.FuncMsg(func() tea.Cmd {
		if s.app.Calls.ForItem(it) != nil {
			return s.readLater(it, f)
		}
		f.waiting = false
		sub, subscribed := s.subscription(it)
		f.updates = sub.Updates
		inv := uicontext.CachedInvocation(s.app.Reg, it)
		if !subscribed || inv != nil && !inv.Stale && !inv.Time.Before(sub.LastUpdate) {
			return nil // already read, for the detail
		}
		return s.app.Calls.Start(uicontext.Request{Item: it, Method: "resources/read", Silent: true})
	}))
}

func (s *Store) setPath(it uicontext.Item, path string) {
	if len(s.paths) >= maxPaths {
		clear(s.paths)
	}
	s.paths[it] = path
}
