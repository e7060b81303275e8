//go:build linux || darwin

package childproc

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a group may take to end before it is killed. It is a variable so
// that tests need not wait for it.
var grace = 2 * time.Second

const (
	// killWait is the maximum wait for a killed group to be gone.
	killWait = time.Second
	// pollInterval is the time between two checks of the remaining groups.
	pollInterval = 25 * time.Millisecond
)

// member is a process of a group that is not yet dead.
type member struct {
	pid, session int
	start        int64
}

// Sweep ends the groups that dead processes have recorded in the folder: they
// are terminated, and killed if they are there two seconds later or when ctx
// ends. It returns when they are gone.
func (r *Registry) Sweep(ctx context.Context) {
	if r == nil {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(r.dir, prefix+"*")) // the pattern is right
	var left []child
	for _, path := range paths {
		f := abandoned(path)
		if f == nil {
			continue
		}
		// Until the end, so that others that start now leave it alone.
		defer func() {
			_ = os.Remove(path) // it will be found again, and nobody in it
			_ = f.Close()
		}()
		text, err := io.ReadAll(io.LimitReader(f, maxSlots*slot))
		if err != nil {
			r.log.Warn("Record of child processes is not readable", "file", path, "err", err)
		}
		for _, c := range parse(text) {
			c.handedOver = strings.HasSuffix(path, handedOver)
			left = append(left, c)
		}
	}
	if left = alive(left); len(left) == 0 {
		return
	}
	for _, c := range left {
		if c.handedOver {
			r.log.Info("Stopping a server that a finished command left running", "server", c.Server, "pid", c.PID, "command", c.Command)
		} else {
			r.log.Warn("Ending what a killed Goblin left behind", "server", c.Server, "pid", c.PID, "command", c.Command)
		}
		_ = unix.Kill(-c.PID, unix.SIGTERM) // who is gone is found out next
	}
	left = awaitEnd(ctx, left, grace)
	for _, c := range left {
		_ = unix.Kill(-c.PID, unix.SIGKILL)
	}
	for _, c := range awaitEnd(context.WithoutCancel(ctx), left, killWait) {
		log := r.log.With("server", c.Server, "pid", c.PID, "command", c.Command)
		if c.handedOver {
			log.Error("A server that a finished command left running does not stop")
		} else {
			log.Error("What a killed Goblin left behind does not end")
		}
	}
}

// abandoned opens and locks a file whose owner is dead; nil for any other.
func abandoned(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if ok, err := lock(f); ok && err == nil {
			return f
		}
	}
	_ = f.Close()
	return nil
}

// awaitEnd returns what is left of the groups after the limit, or after ctx.
func awaitEnd(ctx context.Context, left []child, limit time.Duration) []child {
	end := time.After(limit)
	for left = alive(left); len(left) > 0; left = alive(left) {
		select {
		case <-time.After(pollInterval):
		case <-end:
			return left
		case <-ctx.Done():
			return left
		}
	}
	return nil
}

// alive returns the children whose group still has a process.
func alive(all []child) []child {
	now := bootID()
	all = slices.DeleteFunc(all, func(c child) bool { return c.Era != now })
	if len(all) == 0 {
		return nil
	}
	groups := members(all)
	return slices.DeleteFunc(all, func(c child) bool { return !c.leads(groups[c.PID]) })
}

// leads reports whether a group is the child's own. While any process is in a
// group, its number is given to no other; so a group with the child in it is
// the child's, and one with another leader is not. Without a leader it may be
// one that came later and lost its leader too, hence the other signs.
func (c child) leads(group []member) bool {
	if i := slices.IndexFunc(group, func(m member) bool { return m.pid == c.PID }); i >= 0 {
		return group[i].start == c.Start
	}
	return len(group) > 0 && !slices.ContainsFunc(group, func(m member) bool {
		return m.session != c.Session || m.start < c.Start
	})
}
