//go:build e2e

package daemon

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// exitLimit is how long anything may be left of a process that was told to end.
const exitLimit = 14 * time.Second

// stubborn is a server that ends by SIGKILL only, and has started a process
// that holds its pipes and ignores signals, too.
func stubborn() e2e.Obj {
	script := e2e.Filesystem()
	script["ignoreterm"], script["ignoreeof"] = true, true
	script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("grandchild"))}
	return script
}

// modes start Goblin so that it has servers of its own, and give the process.
var modes = map[string]func(w *e2e.World) *e2e.Program{
	"standalone": func(w *e2e.World) *e2e.Program {
		c := w.Standalone()
		require.NotEmpty(w.T, c.Names("tools"))
		return c.Prog
	},
	"serve": func(w *e2e.World) *e2e.Program {
		s := w.Serve()
		require.NotEmpty(w.T, s.Client(false).Names("tools"))
		return s.Program
	},
}

func TestP05_SIGKILLTakesTheServersAlong(t *testing.T) {
	t.Parallel()
	for _, mode := range e2e.Variants(1, slices.Sorted(maps.Keys(modes))...) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("stubborn", stubborn())
			p := modes[mode](w)
			p.Signal(syscall.SIGKILL)
			require.Empty(t, w.Survivors(b.Conf["args"].([]string)[0], exitLimit, nil))
			b.WaitGone()
			w.Kill() // the kernel ends direct children only
		})
	}
}
