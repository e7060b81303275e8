package devloop

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"time"

	"goblin/gateway/state"
)

const (
	// maxOwnRounds is the number of builds in a row that one file may cause by changing
	// during the previous build.
	maxOwnRounds = 5
	// ownTime is the maximum delay between a change by a build or restart and its report.
	ownTime = 4 * time.Second
	// ownSlack is the time after a restart in which a server may write files of its own.
	ownSlack = 300 * time.Millisecond
	// maxHashed is the size of the largest file that is compared by content.
	maxHashed = 4 << 20
)

// ownChanges finds watched files that each build or start writes. They would cause
// builds forever.
type ownChanges struct {
	folder       string
	began, ended time.Time           // of the last attempt; ended is zero while it runs
	suspects     []string            // changed during each of the last rounds
	rounds       int                 // attempts in a row that only suspects caused
	ignored      map[string]bool     // changes during an attempt cause no build
	contents     map[string][32]byte // hashes of files that changed during an attempt
}

func (o *ownChanges) begin(now time.Time) { o.began, o.ended = now, time.Time{} }
func (o *ownChanges) end(now time.Time)   { o.ended = now }

// filter returns the files that must cause a build. found are the files whose changes
// during attempts are ignored from now on.
func (o *ownChanges) filter(files []string, now time.Time) (kept, found []string) {
	var own []string
	for _, f := range files {
		mine := o.isOwn(f, now)
		same := o.isSame(f, mine)
		switch {
		case mine && (same || o.ignored[f]):
			continue
		case mine:
			own = append(own, f)
		default:
			delete(o.ignored, f) // the user changed it
		}
		kept = append(kept, f)
	}
	slices.Sort(kept)
	if len(kept) == 0 {
		return nil, nil
	}
	if len(own) < len(kept) {
		o.suspects, o.rounds = nil, 0
		return kept, nil
	}
	both := slices.DeleteFunc(slices.Clone(own), func(f string) bool { return !slices.Contains(o.suspects, f) })
	if o.rounds == 0 || len(both) == 0 {
		o.suspects, o.rounds = own, 1
		return kept, nil
	}
	o.suspects, o.rounds = both, o.rounds+1
	if o.rounds < maxOwnRounds {
		return kept, nil
	}
	if o.ignored == nil {
		o.ignored = make(map[string]bool)
	}
	for _, f := range both {
		o.ignored[f] = true
	}
	o.suspects, o.rounds = nil, 0
	return kept, both // built once more, in case the user changed them
}

// isOwn reports whether a file probably changed during the last attempt, and not after it.
func (o *ownChanges) isOwn(file string, now time.Time) bool {
	if o.began.IsZero() || !o.ended.IsZero() && now.Sub(o.ended) > ownTime {
		return false
	}
	if o.ended.IsZero() {
		return true
	}
	info, err := os.Stat(o.path(file))
	return err != nil || !info.ModTime().After(o.ended.Add(ownSlack))
}

func (o *ownChanges) path(file string) string {
	return filepath.Join(o.folder, filepath.FromSlash(file))
}

// isSame reports whether a file has the content that it had at its last change. That is
// known only for files that have changed during an attempt.
func (o *ownChanges) isSame(file string, mine bool) bool {
	before, known := o.contents[file]
	if !known && !mine {
		return false
	}
	text, err := state.Read(o.path(file), maxHashed)
	if err != nil {
		delete(o.contents, file)
		return false
	}
	if o.contents == nil {
		o.contents = make(map[string][32]byte)
	}
	o.contents[file] = sha256.Sum256(text)
	return known && o.contents[file] == before
}
