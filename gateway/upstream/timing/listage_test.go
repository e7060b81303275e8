package timing_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/timing"
)

func TestHowLongAListIsFresh(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, result string
		fresh        time.Duration
		hints        timing.Hints // right after the fetch
	}{
		{"a minute, if the server says nothing", `{}`, time.Minute, timing.Hints{TTL: time.Minute}},
		{"as the server says", `{"ttlMs":5000,"cacheScope":"public"}`, 5 * time.Second, timing.Hints{TTL: 5 * time.Second, Public: true, IsSet: true}},
		{"a second at least", `{"ttlMs":0}`, time.Second, timing.Hints{IsSet: true}},
		{"a day at most", `{"ttlMs":9000000000000000000}`, 24 * time.Hour, timing.Hints{TTL: 24 * time.Hour, IsSet: true}},
		{"a minute, if what it says is less than nothing", `{"ttlMs":-1}`, time.Minute, timing.Hints{TTL: time.Minute}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var l timing.ListAge
				fetches := 0
				stale := func() bool { return l.AwaitFresh(func() { fetches++ }) != nil }
				require.True(t, stale(), "never fetched")
				l.SetHints([]byte(tt.result))
				l.FetchEnded()
				require.Equal(t, tt.hints, l.Hints())
				time.Sleep(tt.fresh - time.Nanosecond)
				require.False(t, stale())
				time.Sleep(time.Nanosecond)
				require.True(t, stale())
				require.True(t, stale())
				require.Equal(t, 2, fetches, "only the first caller fetches")
			})
		})
	}
}
