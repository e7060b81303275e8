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

// grace is the time that a group has to exit before it is killed. Tests shorten it.
var grace = 2 * time.Second

const (
	killWait     = time.Second
	pollInterval = 25 * time.Millisecond
)

type member struct {
	pid, session int
	start        int64
}

// Sweep stops the groups that dead processes recorded in the folder. It terminates them,
// and kills those left after two seconds or when ctx is done. It returns when they have
// exited or one more second passed.
func (r *Registry) Sweep(ctx context.Context) {
	if r == nil {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(r.dir, prefix+"*"))
	var left []child
	for _, path := range paths {
		f := abandoned(path)
		if f == nil {
			continue
		}
		// The lock keeps other new processes away until the end.
		defer func() {
			_ = os.Remove(path) // if this fails, the next sweep finds only dead groups
			_ = f.Close()
		}()
		text, err := io.ReadAll(io.LimitReader(f, maxSlots*slot))
		if err != nil {
			r.log.Warn("cannot read record of child processes", "file", path, "err", err)
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
			r.log.Info("stopping server left by a finished command", "server", c.Server, "pid", c.PID, "command", c.Command)
		} else {
			r.log.Warn("stopping server left by a killed Goblin", "server", c.Server, "pid", c.PID, "command", c.Command)
		}
		_ = unix.Kill(-c.PID, unix.SIGTERM) // awaitEnd checks the result
	}
	left = awaitEnd(ctx, left, grace)
	for _, c := range left {
		_ = unix.Kill(-c.PID, unix.SIGKILL)
	}
	for _, c := range awaitEnd(context.WithoutCancel(ctx), left, killWait) {
		log := r.log.With("server", c.Server, "pid", c.PID, "command", c.Command)
		if c.handedOver {
			log.Error("server left by a finished command does not stop")
		} else {
			log.Error("server left by a killed Goblin does not stop")
		}
	}
}

// abandoned opens and locks a file whose owner is dead. It returns nil for others.
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

// awaitEnd waits until all groups have exited and returns those left after limit or when ctx
// is done.
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

func alive(all []child) []child {
	now := bootID()
	all = slices.DeleteFunc(all, func(c child) bool { return c.Era != now })
	if len(all) == 0 {
		return nil
	}
	groups := members(all)
	return slices.DeleteFunc(all, func(c child) bool { return !c.leads(groups[c.PID]) })
}

// leads reports whether a group belongs to the child. A group's number is not reused
// while it has members. So a group with the child in it is the child's, and one with
// another leader is not. A group without a leader may be newer, so session and start
// times decide.
func (c child) leads(group []member) bool {
	if i := slices.IndexFunc(group, func(m member) bool { return m.pid == c.PID }); i >= 0 {
		return group[i].start == c.Start
	}
	return len(group) > 0 && !slices.ContainsFunc(group, func(m member) bool {
		return m.session != c.Session || m.start < c.Start
	})
}
