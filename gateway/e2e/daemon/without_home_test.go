//go:build e2e

package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// homes are environments without a folder for state. Some service managers and containers
// set none, or one in the working directory.
var homes = map[string][]string{
	"none":     {"HOME=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME="},
	"relative": {"HOME=.", "XDG_STATE_HOME=state", "XDG_CONFIG_HOME=cfg"},
}

func TestWithoutAHomeToolsAreServedUnpinned(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Env = append(w.Env, env...)
			w.Backend("calc", e2e.RugPull())
			require.Contains(t, w.Succeeds("list", "tools"), "calc_add")
			require.Contains(t, w.Succeeds("call", "calc_same"), "calc:same")
			w.Succeeds("validate")
			out := w.Run("approve")
			require.Equal(t, e2e.ExitFailure, out.Code)
			require.Contains(t, out.Stderr, "set HOME or XDG_STATE_HOME")

			alone := w.Standalone()
			require.Contains(t, alone.CallText("calc_add", e2e.Obj{}), "calc:add")
			alone.Prog.Logs("set HOME or XDG_STATE_HOME")

			c := w.Bridged()
			require.Contains(t, c.CallText("calc_add", e2e.Obj{}), "calc:add")
			require.Contains(t, w.Succeeds("status"), "notice   changed tools are not detected: no folder for approved tools; set HOME or XDG_STATE_HOME")
			require.Contains(t, w.DaemonLog(), "changed tools are not detected")
			for _, made := range []string{".local", ".config", "state"} {
				_, err := os.Lstat(filepath.Join(w.Dir, made))
				require.ErrorIs(t, err, os.ErrNotExist, "nothing is stored in the working directory")
			}
		})
	}
}

func TestWithoutAHomeStrictPinsSayWhatToSet(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["pin"] = "strict"
			w.Env = append(w.Env, env...)
			b := w.Backend("calc", e2e.RugPull())
			for _, args := range [][]string{{"list", "tools"}, {"approve"}, {"stdio"}, {"stdio", "--standalone"}, {"serve", "--listen", "127.0.0.1:0"}} {
				out := w.Run(args...)
				require.Equal(t, e2e.ExitFailure, out.Code, args)
				require.Contains(t, out.Stderr, "set HOME or XDG_STATE_HOME", args)
			}
			require.Zero(t, b.Starts())
			w.Env = append(w.Env, "XDG_STATE_HOME="+filepath.Join(w.Dir, "kept"))
			require.Contains(t, w.Succeeds("list", "tools"), "calc_add")
		})
	}
}

// Without a home folder, a config at the same relative path in the working directory is
// ignored.
func TestWithoutAHomeNoConfigIsTakenFromTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("trap", e2e.Shop())
			w.Write()
			text, err := os.ReadFile(w.Config)
			require.NoError(t, err)
			for _, dir := range []string{".config", "cfg"} {
				require.NoError(t, os.MkdirAll(filepath.Join(w.Dir, dir, "goblin"), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(w.Dir, dir, "goblin", "config.yaml"), text, 0o600))
			}
			w.Env = append(append(w.Env, env...), "GOBLIN_CONFIG=")
			require.NotContains(t, w.Succeeds("list", "servers"), "trap")
			require.NotContains(t, w.Run("status").Stderr, "trap")
			require.Zero(t, b.Starts())
		})
	}
}
