package notify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// subscribeOne adds a subscription as [Notifier.subscribe] does.
func (t *subscriptionTable) subscribeOne(h subscriber, uri, spelling string) error {
	t.mu.Lock()
	key := subscriptionKey{server: "s", uri: uri}
	row := t.rowLocked(key)
	t.mu.Unlock()
	_, err := t.add(key, row, h, spelling)
	t.mu.Lock()
	t.sweepLocked(key, row)
	t.mu.Unlock()
	return err
}

func TestSubscriptionsAreBoundedInBytes(t *testing.T) {
	var all subscriptionTable
	all.init()
	long := strings.Repeat("x", 60<<10)
	fill := func(h subscriber) (n int, err error) {
		for err == nil {
			uri := fmt.Sprint(n, long)
			if err = all.subscribeOne(h, uri, "mcp://s/"+uri); err == nil {
				n++
			}
		}
		return n, err
	}
	one := &downstream.Session{}
	n, err := fill(subscriber{session: one})
	require.ErrorIs(t, err, errTooLarge)
	require.InDelta(t, maxClientBytes/(2*60<<10), n, 2)
	require.NoError(t, all.checkLimits(subscriptionKey{server: "s", uri: "0" + long}, subscriber{session: one}, "mcp://s/0"+long), "an existing subscription")
	other := subscriber{one, &listen{}}
	require.ErrorIs(t, all.subscribeOne(other, long, long), errTooLarge, "another listen request of the same client")

	held := []subscriber{{session: one}}
	for err == errTooLarge { //nolint:errorlint // compares identity
		h := subscriber{session: &downstream.Session{}}
		held = append(held, h)
		_, err = fill(h)
	}
	require.ErrorIs(t, err, errTotalTooLarge)
	require.Len(t, held, maxAllBytes/maxClientBytes+1)
	require.LessOrEqual(t, all.bytes, maxAllBytes)

	// Each spelling counts and is released separately.
	key := subscriptionKey{server: "s", uri: "0" + long}
	all.remove(key, held[0], "mcp://s/0"+long)
	require.NoError(t, all.subscribeOne(held[0], key.uri, "a"))
	require.NoError(t, all.subscribeOne(held[0], key.uri, "b"))
	all.remove(key, held[0], "a")
	for _, h := range held {
		for _, key := range all.all(h) {
			all.remove(key, h, "")
		}
	}
	require.Zero(t, all.bytes)
	require.Empty(t, all.clientBytes)
	require.Empty(t, all.rows)
	for i := range maxSubscriptions {
		require.NoError(t, all.subscribeOne(held[0], fmt.Sprintf("file:///usual/path/number/%d", i), fmt.Sprintf("mcp://s/file:///usual/path/number/%d", i)))
	}
	require.ErrorIs(t, all.subscribeOne(held[0], "x", "x"), errTooMany)
}
