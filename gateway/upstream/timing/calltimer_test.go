package timing_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/timing"
)

// act is an event of a timer, at a time after its start.
type act struct {
	at time.Duration
	do func(*timing.CallTimer)
}

func TestTheTimeOfACall(t *testing.T) {
	t.Parallel()
	extend, pause, resume := (*timing.CallTimer).Extend, (*timing.CallTimer).Pause, (*timing.CallTimer).Resume
	const s = time.Second
	again := func(c *timing.CallTimer) { c.Start(s, 0, 10*s) }
	tests := []struct {
		name         string
		limit, whole time.Duration
		acts         []act
		over         time.Duration // 0: never
	}{
		{"ends with its limit", s, 10 * s, nil, s},
		{"never ends without one", 0, 10 * s, []act{{s, extend}}, 0},
		{"restarts with each progress", s, 10 * s, []act{{s / 2, extend}, {s, extend}}, 2 * s},
		{"is not made longer than the whole by progress", s, 2 * s, []act{{s / 2, extend}, {s, extend}, {3 * s / 2, extend}}, 2 * s},
		{"pauses during requests to the user", s, 10 * s, []act{{s / 4, pause}, {5 * s, resume}}, 5*s + 3*s/4},
		{"rests until the last of them has answered", s, 10 * s, []act{{s / 4, pause}, {s / 2, pause}, {2 * s, resume}, {3 * s, resume}}, 3*s + 3*s/4},
		{"continues when the call is sent again", s, 10 * s, []act{{s / 4, again}, {s / 2, again}}, s},
		{"continues after the user's answer", s, 10 * s, []act{{s / 2, pause}, {5 * s, resume}, {5*s + s/4, again}}, 5*s + s/2},
		{"continues during requests of other calls", s, 10 * s, []act{{s / 2, pause}, {2 * s, again}, {3 * s, resume}}, 3*s + s/2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c timing.CallTimer
				start := time.Now()
				c.Start(tt.limit, 0, tt.whole)
				acts := tt.acts
				for now := time.Duration(0); now <= 20*s; now += s / 20 {
					if len(acts) > 0 && acts[0].at == now {
						acts[0].do(&c)
						acts = acts[1:]
					}
					over, silent, _ := c.Check(time.Now())
					require.False(t, silent)
					if over {
						require.Equal(t, tt.over, time.Since(start))
						return
					}
					time.Sleep(s / 20)
				}
				require.Zero(t, tt.over, "it is still running")
			})
		})
	}
}

func TestASilentServerIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c timing.CallTimer
		next := c.Start(10*time.Second, time.Second, time.Minute)
		require.Equal(t, time.Now().Add(time.Second), next)
		time.Sleep(time.Second)
		over, silent, next := c.Check(time.Now())
		require.False(t, over)
		require.True(t, silent)
		require.Equal(t, time.Now().Add(time.Second), next, "pinged again")
		c.Extend()
		time.Sleep(time.Second - 1)
		_, silent, _ = c.Check(time.Now())
		require.False(t, silent, "progress is a sign of life")
	})
}

func TestWaitsBeforeACallIsSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration][]time.Duration{
			0:           {200, 400, 800, 1600, 3200, 5000, 5000},
			time.Second: {200, 400, 400, 0, 0},
		} {
			var c timing.CallTimer
			c.Start(limit, 0, time.Minute)
			for _, ms := range want {
				wait := c.RetryDelay()
				require.Equal(t, ms*time.Millisecond, wait, limit)
				time.Sleep(wait)
			}
			over, _, _ := c.Check(time.Now())
			require.Equal(t, limit > 0, over)
		}
	})
}
