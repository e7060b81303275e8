package stack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/state"
	"goblin/gateway/view"
	"goblin/registry"
)

func (i *Stack) readToggles() {
	i.reportToggles(i.toggles.Refresh())
	i.gateway.SetDisabled(i.toggles.Disabled(), i.toggles.Hidden()...)
}

// reportToggles reports errors in that file, and backs up a valid one.
func (i *Stack) reportToggles(err error) {
	i.report(&i.togglesError, err, "tools off")
	text := strings.Join(i.toggles.Skipped(), "; ")
	if was := i.skipped.Swap(&text); text != "" && (was == nil || *was != text) {
		i.o.Logger.Warn("invalid disabled entries skipped", "entries", text)
	}
	if err != nil {
		return
	}
	if err := i.toggles.UpdateCopy(); err != nil {
		i.o.Logger.Warn("backup of disabled entries not written", "err", err)
	}
}

// report logs and shows an error in a state file until it is fixed.
func (i *Stack) report(last *atomic.Pointer[error], err error, file string) {
	was := last.Load()
	switch {
	case err == nil && was == nil, err != nil && was != nil && (*was).Error() == err.Error():
		return
	case err == nil:
		last.Store(nil)
	default:
		last.Store(&err)
		i.o.Logger.Error("state file damaged", "file", file, "err", err)
	}
	i.notify()
}

func (i *Stack) pinsChanged() {
	i.gateway.Servers.PinsChanged()
	i.reportPins(i.pinStore)
}

// reportPins reports errors in that file, and backs up a valid one.
func (i *Stack) reportPins(store *state.PinStore) {
	err := store.Damaged()
	i.report(&i.pinsReadError, err, "pins")
	if err != nil {
		return
	}
	if err := store.UpdateCopy(); err != nil {
		i.o.Logger.Warn("backup of pinned tools not written", "err", err)
	}
}

// SetEntriesDisabled permanently disables or enables entries for a profile, or for all
// clients if it is "". It fails if an enabled entry stays hidden.
func (i *Stack) SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error {
	if profile != "" && !i.gateway.Views.Has(profile) {
		return i.unknownProfileError(profile)
	}
	things := make([]state.ToggleEntry, len(entries))
	for n, e := range entries {
		things[n] = state.ToggleEntry{Profile: profile, Server: e.Server, Kind: e.Kind.String(), Name: e.Name, Since: time.Now().UTC().Truncate(time.Second)}
	}
	if err := i.toggles.Set(on, things...); err != nil {
		return err
	}
	i.gateway.SetDisabled(i.toggles.Disabled(), i.toggles.Hidden()...)
	for _, e := range entries {
		if off := i.gateway.Views.HiddenBy(profile, e); on && off != nil && off.By != view.BySearch {
			return fmt.Errorf("%s stays hidden: %s", e.Listed, i.hiddenReason(profile, off))
		}
	}
	return nil
}

func (i *Stack) unknownProfileError(name string) error {
	return fmt.Errorf("no profile %q%s", name, i.config().SuggestProfile(name))
}

// Profiles returns the names of profiles.
func (c *Client) Profiles() (names []string) {
	for _, p := range c.stack.config().Profiles {
		names = append(names, p.Name)
	}
	return names
}

// VisibleCounts returns the number of listed entries by kind. "" means clients without a
// profile.
func (c *Client) VisibleCounts(profile string) (counts [registry.Kinds]int) {
	if seen, ok := c.stack.gateway.Views.ForProfile(profile); ok {
		for k := range registry.Kind(registry.Kinds) {
			counts[k] = seen.Lists.Count(k)
		}
	}
	return counts
}

// HiddenReason returns the origin and reason of hiding an entry, or "" if it is listed.
func (c *Client) HiddenReason(profile string, e *registry.Entry) (by, why string) {
	if off := c.stack.gateway.Views.HiddenBy(profile, e); off != nil {
		return string(off.By), c.stack.hiddenReason(profile, off)
	}
	return "", ""
}

// ListedAs returns an entry's name in a profile's lists, or "".
func (c *Client) ListedAs(profile string, e *registry.Entry) string {
	if seen, ok := c.stack.gateway.Views.ForProfile(profile); ok {
		if own := seen.Lists.ShownEntry(e); own != nil {
			return own.Listed
		}
	}
	return ""
}

// HiddenEntries returns a profile's hidden entries of a kind, after AwaitLists. It fails
// for an unknown kind or profile.
func (i *Stack) HiddenEntries(ctx context.Context, q daemon.HiddenQuery) ([]daemon.HiddenEntry, error) {
	kind, ok := kinds[q.Kind]
	if !ok {
		return nil, fmt.Errorf("list %q: unknown kind; use tools, prompts, resources or templates", q.Kind)
	}
	if q.Profile != "" && !i.gateway.Views.Has(q.Profile) {
		return nil, i.unknownProfileError(q.Profile)
	}
	i.readToggles() // the caller may have written the file
	i.gateway.Servers.AwaitLists(ctx)
	named := i.registry.Load() // named as in the profile
	if seen, ok := i.gateway.Views.ForProfile(q.Profile); ok && q.Profile != "" {
		named = i.allNamedAs(seen.Visible)
	}
	nameOf := func(e *registry.Entry) string {
		if own := named.ByServerName(e.Server, kind, e.Name); own != nil && i.profileHasServer(q.Profile, e.Server) {
			return own.Listed
		}
		return e.Listed
	}
	all := []daemon.HiddenEntry{}
	for _, o := range i.gateway.Views.Hidden(q.Profile, kind) {
		all = append(all, i.describeHidden(q.Profile, &o))
		if o.Entry != nil {
			all[len(all)-1].Name = nameOf(o.Entry)
		}
	}
	if q.All {
		all = i.appendVisible(q.Profile, kind, all, nameOf)
	}
	if q.Name != "" {
		all = slices.DeleteFunc(all, func(o daemon.HiddenEntry) bool {
			return daemon.MatchName(q.Name, o.Server, o.Original, o.Label(), o.Label()) == 0
		})
	}
	return all, nil
}

var states = map[view.Reason]daemon.State{
	view.ByConfig: daemon.StateFiltered, view.ByPin: daemon.StateUnapproved, view.ByUser: daemon.StateDisabled,
	view.ByProfile: daemon.StateHidden, view.BySearch: daemon.StateSearch,
}

// describeHidden leaves the name empty.
func (i *Stack) describeHidden(profile string, o *view.HiddenEntry) daemon.HiddenEntry {
	why := i.hiddenReason(profile, o)
	return daemon.HiddenEntry{Server: o.Server, Original: o.Name, State: states[o.By], Reason: why, By: string(o.By), Why: why, Since: o.Since}
}

// appendVisible adds listed and searchable entries. It sorts all: Goblin's own first,
// then by name.
func (i *Stack) appendVisible(profile string, kind registry.Kind, all []daemon.HiddenEntry, nameOf func(*registry.Entry) string) []daemon.HiddenEntry {
	for e := range i.gateway.Views.Full().All(kind) {
		off := i.gateway.Views.HiddenBy(profile, e)
		switch {
		case off == nil:
			all = append(all, daemon.HiddenEntry{Name: nameOf(e), Server: e.Server, Original: e.Name, State: daemon.StateListed})
		case off.By == view.BySearch:
			row := i.describeHidden(profile, off)
			row.Name = nameOf(e)
			all = append(all, row)
		}
	}
	slices.SortStableFunc(all, func(a, b daemon.HiddenEntry) int {
		if (a.Server == registry.Local) != (b.Server == registry.Local) {
			if a.Server == registry.Local {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Label(), b.Label())
	})
	return all
}

// hiddenReason adds causes that only the config knows, such as an unset variable.
func (i *Stack) hiddenReason(profile string, off *view.HiddenEntry) string {
	p, ok := i.config().Profile(cmp.Or(profile, config.DefaultProfile))
	if off.By != view.ByProfile || !ok || !i.profileHasServer(p.Name, off.Server) {
		return off.Why
	}
	at := config.OverrideTarget{Profile: p.Name, Server: off.Server, Kind: off.Kind.String() + "s", Name: off.Name}
	return cmp.Or(p.Pending[at], off.Why)
}

func (i *Stack) profileHasServer(profile, server string) bool {
	cfg := i.config()
	p, ok := cfg.Profile(profile)
	s, known := cfg.Server(server)
	return ok && known && p.Has(s)
}

func (i *Stack) config() *config.Config {
	i.reloadMu.Lock()
	defer i.reloadMu.Unlock()
	return i.servedConfig
}
