package tui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestANoticeStandsInTheBarUntilItIsOver(t *testing.T) {
	t.Parallel()
	r := office(t, 100, 30, plainEnv)
	const notice = `config not reloaded: /etc/goblin/work.yaml:3: unknown key "comand"` + "\x1b[2J"
	r.reg.SetNotice(notice)
	r.changed(registry.Servers)
	require.Contains(t, r.screen(), `! config not reloaded: work.yaml:3: unknown key "comand"`)
	require.NotContains(t, r.screen(), "\x1b[2J")
	r.keys("4 / config enter")
	require.Contains(t, r.line("/ config"), "! config not reloaded", "beside a filter")
	r.keys("esc")
	r.reg.SetNotice("")
	r.changed(registry.Servers)
	require.NotContains(t, r.screen(), "config not reloaded")
}
