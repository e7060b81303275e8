package stack

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

func TestPlainCallsWaitWithoutAGoroutine(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: `"tools":[{"name":"t","inputSchema":{"type":"object"}}],"on":{"tools/call t":[{"do":"hang"}]}`})
	p := join(t, i)
	p.ask("tools/list", "{}")
	const calls = 200
	before := runtime.NumGoroutine()
	for n := range calls {
		p.send(jsonrpc.RequestFrame([]byte(strconv.Itoa(100+n)), "tools/call", []byte(`{"name":"s_t"}`)))
	}
	p.ask("ping", "{}") // earlier messages were read
	require.Less(t, runtime.NumGoroutine(), before+calls/4)
	for n := range calls { // otherwise the end of the session waits seconds for answers
		p.send(jsonrpc.NotificationFrame("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%d}`, 100+n)))
	}
}
