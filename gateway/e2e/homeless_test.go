package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// homes are environments without a folder for what is to be remembered: none, as
// under some service managers and in containers, or one in the working directory.
var homes = map[string][]string{
	"none":     {"HOME=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME="},
	"relative": {"HOME=.", "XDG_STATE_HOME=state", "XDG_CONFIG_HOME=cfg"},
}

func TestWithoutAHomeToolsAreServedUnpinned(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, env...)
			w.backend("calc", rugPull())
			require.Contains(t, w.succeeds("list", "tools"), "calc_add")
			require.Contains(t, w.succeeds("call", "calc_same"), "calc:same")
			w.succeeds("validate")
			out := w.run("approve")
			require.Equal(t, exitFailure, out.code)
			require.Contains(t, out.stderr, "set HOME or XDG_STATE_HOME")

			alone := w.standalone()
			require.Contains(t, alone.callText("calc_add", obj{}), "calc:add")
			require.Contains(t, alone.prog.stderr.String(), "set HOME or XDG_STATE_HOME")

			c := w.bridged()
			require.Contains(t, c.callText("calc_add", obj{}), "calc:add")
			require.Contains(t, w.succeeds("status"), "notice   changed tools go unnoticed: there is no folder for pinned tools: set HOME or XDG_STATE_HOME")
			require.Contains(t, w.hostLog(), "Changed tools go unnoticed")
			for _, made := range []string{".local", ".config", "state", "cfg"} {
				_, err := os.Lstat(filepath.Join(w.dir, made))
				if made != "cfg" { // which the test's world has
					require.ErrorIs(t, err, os.ErrNotExist, "nothing is kept in the working directory")
				}
			}
		})
	}
}

func TestWithoutAHomeStrictPinsSayWhatToSet(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["pin"] = "strict"
			w.env = append(w.env, env...)
			b := w.backend("calc", rugPull())
			for _, args := range [][]string{{"list", "tools"}, {"approve"}, {"stdio"}, {"stdio", "--standalone"}, {"serve", "--listen", "127.0.0.1:0"}} {
				out := w.run(args...)
				require.Equal(t, exitFailure, out.code, args)
				require.Contains(t, out.stderr, "set HOME or XDG_STATE_HOME", args)
			}
			require.Zero(t, b.starts())
			w.env = append(w.env, "XDG_STATE_HOME="+filepath.Join(w.dir, "kept"))
			require.Contains(t, w.succeeds("list", "tools"), "calc_add")
		})
	}
}

// A config that lies where a home would be is not taken from the working
// directory.
func TestWithoutAHomeNoConfigIsTakenFromTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	for name, env := range homes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("trap", shop())
			w.write()
			text, err := os.ReadFile(w.config)
			require.NoError(t, err)
			for _, dir := range []string{".config", "cfg"} {
				require.NoError(t, os.MkdirAll(filepath.Join(w.dir, dir, "goblin"), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(w.dir, dir, "goblin", "config.yaml"), text, 0o600))
			}
			w.env = append(append(w.env, env...), "GOBLIN_CONFIG=")
			require.NotContains(t, w.succeeds("list", "servers"), "trap")
			require.NotContains(t, w.run("status").stderr, "trap")
			require.Zero(t, b.starts())
		})
	}
}
