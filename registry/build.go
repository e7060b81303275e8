package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// BuildPhase is a step of building and restarting a server.
type BuildPhase string

// Values of [BuildPhase].
const (
	BuildWatching   BuildPhase = "watching" // no file changed yet
	BuildRunning    BuildPhase = "building"
	BuildFailed     BuildPhase = "build failed" // the process before it still runs
	BuildRestarting BuildPhase = "restarting"
	BuildNotStarted BuildPhase = "not started" // built, but the server failed
	BuildRestarted  BuildPhase = "restarted"
)

// Limits of [Build].
const (
	MaxBuildOutput  = 64 << 10 // bytes
	maxBuildChanges = 200
	maxBuildChecks  = 200
)

// Build describes the last build and restart of a server whose files are watched. Texts
// are untrusted, but contain no secrets.
type Build struct {
	Number  int // counts builds and restarts
	Phase   BuildPhase
	Since   time.Time // of Phase
	Watched int       // number of watched files
	Command string    // of the build; "" without one
	Files   string    // the changed files; "" for the first start
	Took    time.Duration
	Error   string // why the build or the start failed
	Output  string // the end of the build's output, at most 64 KiB
	First   bool   // there was no list to compare with
	// Changes compare the definitions with those before the restart, at most 200.
	Changes []ListChange
	Checks  []BuildCheck // saved calls that ran after the restart, at most 200
	Warning string       // about the watched files
}

// BuildCheck is the result of a saved call.
type BuildCheck struct {
	Name string
	OK   bool
	Text string // why it failed
}

// Failed reports whether the user must do something.
func (b *Build) Failed() bool {
	return b != nil && (b.Phase == BuildFailed || b.Phase == BuildNotStarted || b.FailedChecks() > 0)
}

// FailedChecks returns the number of saved calls that failed.
func (b *Build) FailedChecks() (n int) {
	for _, c := range b.Checks {
		if !c.OK {
			n++
		}
	}
	return n
}

// Summary counts the changed definitions, such as "+1 -2 ~1", or is "no changes".
func (b *Build) Summary() string {
	counts := map[string]int{}
	for i := range b.Changes {
		counts[b.Changes[i].Op] += max(1, b.Changes[i].Count)
	}
	var parts []string
	for _, op := range []struct{ op, sign string }{{OpAdded, "+"}, {OpRemoved, "-"}, {OpChanged, "~"}} {
		if n := counts[op.op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", op.sign, n))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, " ")
	case b.First:
		return "first lists"
	}
	return "no changes"
}

// Line describes a change of a definition in one line, such as
// `~ tool x: argument "y" is now required`.
func (c *ListChange) Line() string {
	sign := map[string]string{OpAdded: "+", OpRemoved: "-", OpChanged: "~"}[c.Op]
	text := sign + " " + c.Kind.String()
	if c.Name != "" {
		text += " " + c.Name
	}
	if len(c.What) > 0 {
		text += ": " + strings.Join(c.What, ", ")
	}
	return text
}

type buildTable struct {
	mu   sync.RWMutex
	rows map[string]*Build // never changed
}

func (t *buildTable) get(server string) *Build {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows[server]
}

// SetBuild replaces [ServerState.Build] of a server; nil removes it. The caller must not
// change b later.
func (r *Registry) SetBuild(server string, b *Build) {
	t := &r.builds
	t.mu.Lock()
	if t.rows == nil {
		t.rows = make(map[string]*Build)
	}
	if delete(t.rows, server); b != nil {
		own := *b
		own.Error, own.Files, own.Warning = cutString(b.Error, maxField), cutString(b.Files, maxField), cutString(b.Warning, maxField)
		own.Output = b.Output[max(0, len(b.Output)-MaxBuildOutput):]
		own.Changes = slices.Clip(b.Changes[:min(len(b.Changes), maxBuildChanges)])
		own.Checks = slices.Clip(b.Checks[:min(len(b.Checks), maxBuildChecks)])
		t.rows[server] = &own
	}
	t.mu.Unlock()
	r.feed.publish(Servers)
}
