package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever either side sends, each request has an answer, and nothing panics.
func TestOddMessagesAreAnsweredInBothEras(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		raw := func(s string) json.RawMessage { return json.RawMessage(s) }
		deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
		within := strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400) // gateway.limits.depth
		odd := []json.RawMessage{raw("null"), raw("5"), raw("[]"), raw("{}"), raw(`""`), raw(`"x"`), raw("true"), raw(`[null,{"a":1}]`), raw("1e400"), raw(deep), raw(within)}
		on := obj{}
		tools := []obj{}
		n := 0
		add := func(acts ...obj) {
			name := fmt.Sprintf("t%d", n)
			n++
			tools = append(tools, tool(name))
			on["tools/call "+name] = actions(acts...)
		}
		for _, o := range odd {
			for _, m := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "odd/method"} {
				add(do("request", obj{"method": m, "params": o}), do("answers"))
			}
			for _, m := range []string{"notifications/progress", "notifications/message", "notifications/cancelled", "notifications/resources/updated", "notifications/elicitation/complete", "notifications/tasks/status", "x"} {
				add(do("notify", obj{"method": m, "params": o}), do("text", obj{"text": "ok"}))
				add(do("notify", obj{"method": m, "params": obj{"_meta": o, "progressToken": o, "requestId": o, "uri": o, "level": o, "data": o, "elicitationId": o, "taskId": o}}), do("text", obj{"text": "ok"}))
			}
			add(do("result", obj{"result": o}))
			add(do("result", obj{"result": obj{"resultType": o, "content": o, "_meta": o, "structuredContent": o}}))
			add(do("result", obj{"result": obj{"resultType": "input_required", "inputRequests": o, "requestState": o}}))
			add(do("result", obj{"result": obj{"resultType": "input_required", "inputRequests": obj{"k": o}, "requestState": "s"}}))
			add(do("result", obj{"result": obj{"resultType": "task", "taskId": o}}))
			add(do("error", obj{"error": o}))
			add(do("error", obj{"error": obj{"code": -32042, "message": "m", "data": obj{"elicitations": o}}}))
			add(do("error", obj{"error": obj{"code": -32021, "message": "m", "data": obj{"requiredCapabilities": o}}}))
			add(do("error", obj{"error": obj{"code": o, "message": o, "data": o}}))
		}
		for _, era := range []string{"", "modern"} {
			w.backend("b"+era, obj{"tools": tools, "on": on, "era": era, "resources": []obj{resource("x:1")}}, obj{"timeout": "500ms"})
		}
		c := connect()
		c.caps = obj{"elicitation": obj{"url": obj{}, "form": obj{}}, "sampling": obj{}, "roots": obj{}, "extensions": obj{tasksExtension: obj{}}}
		var ids []string
		for i := range n {
			for _, b := range []string{"b", "bmodern"} {
				ids = append(ids, c.begin("tools/call", obj{"name": fmt.Sprintf("%s_t%d", b, i)}))
			}
			for _, id := range ids { // one after another: what is asked waits for an answer
				c.end(id)
			}
			ids = nil
		}
		for _, o := range odd {
			for _, p := range []obj{
				{"name": "b_t5", "requestState": o},
				{"name": "b_t5", "inputResponses": o},
				{"name": "bmodern_t5", "requestState": o, "inputResponses": o},
				{"name": "b_t5", "arguments": o},
				{"name": o},
				{"name": "b_t5", "task": o},
			} {
				ids = append(ids, c.begin("tools/call", p))
			}
			for _, m := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				ids = append(ids, c.begin(m, obj{"taskId": o}))
			}
			ids = append(ids, c.begin("tools/list", obj{"cursor": o}))
		}
		for _, id := range ids {
			c.end(id)
		}
		for _, p := range w.programs {
			require.NotContains(t, p.stderr.String(), "panic")
		}
		require.NotContains(t, w.hostLog(), "panic")
	})
}
