package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// asks records requests to a server that end now.
func (r *rig) asks(server string, n int, took time.Duration, status string) *rig {
	for range n {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(-took), Server: server, Method: "tools/call", Duration: took, Status: status})
	}
	return r
}

func TestTheLastMinutesOfEachServerAreDrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t, 220, 60, "files", "github").ready("files").ready("github").keys("1 P P")
	require.Regexp(t, `requests +errors +times`, r.screen())
	require.NotContains(t, r.screen(), "▁", "nothing was asked")
	require.NotContains(t, r.screen(), "req ")
	r.asks("files", 2, 10*time.Millisecond, "success").beat(10 * time.Second)
	r.asks("files", 8, 20*time.Millisecond, "success").asks("github", 1, time.Millisecond, "failure").beat(500 * time.Millisecond)
	files, github := r.line(" files "), r.line(" github ")
	require.Contains(t, files, "▁▁▁▁▁▁▁▁▁▁▃█ ", "each as high as its own largest")
	require.Contains(t, files, "▁▁▁▁▁▁▁▁▁▁▅█ ", "what took twice as long")
	require.Equal(t, 2, strings.Count(github, "▁▁▁▁▁▁▁▁▁▁▁█"), "a request and an error")
	head := strings.Split(r.screen(), "\n")[0]
	require.Regexp(t, `req ▁+▃█  err ▁+█  ms ▁+▅█`, head)

	r.beat(20 * time.Second)
	require.Contains(t, r.line(" files "), "▁▁▁▁▁▁▁▁▃█▁▁ ", "time goes on")
	r.beat(6 * time.Minute)
	require.NotContains(t, r.screen(), "█", "it is over")
}

func TestTheDetailOfAServerTellsItsLastMinutes(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 45, "files").ready("files").keys("1")
	r.asks("files", 3, 10*time.Millisecond, "success").asks("files", 1, time.Second, "failure").asks("files", 1, time.Second, registry.StatusCancelled)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Direction: registry.ToClient, Method: "notifications/progress", Status: registry.StatusNotification})
	r.beat(500 * time.Millisecond).clock.advance(5 * time.Second)
	r.keys("down")
	require.Regexp(t, `requests +▁+.* 5 in 5 min`, r.screen(), "notifications are none")
	require.Regexp(t, `failed +▁+.* 1 `, r.screen())
	require.Regexp(t, `took +▁+.* 10 ms on average`, r.screen(), "of those that were answered")
}

func TestTheHeaderShowsTheLastMinutesWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	for w, shown := range map[int]bool{80: false, 99: false, 100: true, 140: true} {
		r := newRig(t, w, 24, "files").asks("files", 1, time.Millisecond, "success").beat(time.Second)
		require.Equal(t, shown, strings.Contains(strings.Split(r.screen(), "\n")[0], "▁█"), "%d columns", w)
	}
}

// What a screen draws while nothing happens stays as it is, so nothing is written.
func TestAnIdleScreenDoesNotChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, 160, 45, "files").ready("files").keys("1").asks("files", 3, time.Millisecond, "success").beat(10 * time.Minute).beat(time.Second)
	before := r.screen()
	for range 100 {
		r.beat(500 * time.Millisecond)
	}
	require.Equal(t, before, r.screen())
}
