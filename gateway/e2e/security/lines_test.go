//go:build e2e

package security

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestLinesOfAFailedToolAreToldFromThoseOfGoblin(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}, "on": e2e.Obj{"tools/call add": e2e.Actions(
		e2e.Do("result", e2e.Obj{"result": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": "no\ngoblin: all is well"}}}}))}})
	out := w.Run("call", "calc_add")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Equal(t, "goblin: tool \"calc_add\" failed: no\n  goblin: all is well\n", out.Stderr)
}
