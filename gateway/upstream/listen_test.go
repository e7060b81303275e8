package upstream

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

// A listen request overlaps the one that replaces it.
func TestOfListensThoseThatCountAreHeard(t *testing.T) {
	t.Parallel()
	const updated, acknowledged, cancelled = "notifications/resources/updated", "notifications/subscriptions/acknowledged", "notifications/cancelled"
	over, open, next := &listenStream{subscriptionID: "10"}, &listenStream{subscriptionID: "11"}, &listenStream{subscriptionID: "12"}
	tagged := func(tag string) string {
		return `{"uri":"x","_meta":{"io.modelcontextprotocol/subscriptionId":` + tag + `}}`
	}
	for name, c := range map[string]struct {
		on             *listenStream // the stream of the message
		method, params string
		passes         string // "" for messages about listen requests
	}{
		"without a tag":                         {method: updated, params: `{"uri":"x"}`, passes: `{"uri":"x"}`},
		"of the open one":                       {method: updated, params: tagged("11"), passes: `{"uri":"x"}`},
		"whose id is written as text":           {method: updated, params: tagged(`"11"`), passes: `{"uri":"x"}`},
		"of the next one":                       {method: updated, params: tagged("12"), passes: `{"uri":"x"}`},
		"of one that is over":                   {method: updated, params: tagged("10")},
		"on the stream of the open one":         {on: open, method: updated, params: `{"uri":"x"}`, passes: `{"uri":"x"}`},
		"on the stream of one that is over":     {on: over, method: updated, params: `{"uri":"x"}`},
		"acknowledged twice":                    {method: acknowledged, params: tagged("11")},
		"acknowledged when it is over":          {on: over, method: acknowledged, params: tagged("10")},
		"a cancellation of what is no listen":   {method: cancelled, params: `{"requestId":1}`, passes: `{"requestId":1}`},
		"a cancellation of a listen that ended": {method: cancelled, params: `{"requestId":10}`, passes: `{"requestId":10}`},
	} {
		ls := &listener{link: &link{}, open: open, next: next}
		call, err := ls.calls.Add(&Call{})
		require.NoError(t, err)
		require.Equal(t, "1", strconv.FormatInt(call.ID, 10))
		m := jsonrpc.Message{Method: c.method, Params: []byte(c.params)}
		require.Equal(t, c.passes == "", ls.take(&Call{listen: c.on}, &m), name)
		if c.passes != "" {
			require.Equal(t, c.passes, string(m.Params), name)
		}
		_, waits := ls.calls.Lookup(1)
		require.True(t, waits, name)
		require.Same(t, open, ls.open, name)
		require.Same(t, next, ls.next, name)
	}
}
