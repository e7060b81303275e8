package stack

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
	"goblin/registry"
)

func TestTrafficComesInAnswersOfLimitedSize(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools + `,"on":{"tools/call t":[{"do":"hang"}]}`})
	_, err := io.WriteString(join(t, i).conn, `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"s_t"}}`+"\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(i.gateway.Pending.All()) == 1 }, patience, time.Millisecond)
	body := []byte(`"` + strings.Repeat("x", 60_000) + `"`)
	const large, small = 40, 2 * daemon.MaxTraffic
	for n := range uint64(large + small) {
		r := registry.TrafficRecord{Number: 1_000_000 + n, Server: "test", Method: "tools/call"}
		if n < large {
			r.Request = body
		}
		i.Registry().Traffic().Append(r)
	}

	q := daemon.TrafficQuery{Bodies: true, Head: true, Running: true}
	next, more := uint64(1_000_000), true
	for more {
		answer, err := i.Traffic(context.Background(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(answer.Lines), daemon.MaxTraffic)
		size := 0
		for _, l := range answer.Lines {
			if l.Params != nil {
				size += l.Params.Size
			}
			if l.Server == "test" {
				require.Equal(t, next, l.Number, "each record comes once, in order")
				next++
			}
		}
		require.Less(t, size, daemon.MaxTrafficBodies+len(body))
		more = answer.More
		require.Equal(t, more, len(answer.Running) == 0, "requests in flight come last")
		q.From, q.Head = answer.Next, false
	}
	require.EqualValues(t, 1_000_000+large+small, next)
}
