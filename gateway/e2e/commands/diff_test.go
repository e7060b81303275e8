//go:build e2e && unix

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestCommandDiff(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	save := func(name, text string) string {
		path := filepath.Join(w.Dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}

	// Results of calls.
	first := save("first.json", w.Succeeds("call", "shop_stat", "--args", `{"a":1}`, "--json"))
	second := w.Succeeds("call", "shop_stat", "--args", `{"a":2}`, "--json")
	out := w.RunInput(second, "diff", first, "-", "--exit-code")
	require.Equal(t, 1, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, `~ $.content[0].text  "shop:stat:{\"a\":1}`)
	require.Contains(t, out.Stdout, "1 difference\n")
	out = w.RunInput(second, "diff", first, "-", "--exit-code", "--ignore", "..text")
	require.Zero(t, out.Code, out.Stderr)
	require.Equal(t, "no differences; 1 path ignored\n", out.Stdout)
	require.Equal(t, "$.content[0].text", e2e.Str(json.RawMessage(w.RunInput(second, "diff", first, "-", "--json").Stdout), "differences", 0, "path"))

	// Lists, before and after a change of the catalog.
	tools := save("tools.json", w.Succeeds("list", "tools", "--json"))
	prompts := save("prompts.json", w.Succeeds("list", "prompts", "--json"))
	require.Regexp(t, `^tools: no differences, \d+ equal\n$`, w.RunInput(w.Succeeds("list", "tools", "--json"), "diff", tools, "-", "--exit-code").Stdout)
	later := e2e.NewWorld(t)
	later.Backend("shop", e2e.Shop())
	later.Backend("extra", e2e.Shop())
	out = w.RunInput(later.Succeeds("list", "tools", "--json"), "diff", tools, "-", "--exit-code")
	require.Equal(t, 1, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "extra\n  + tool ")
	require.NotContains(t, out.Stdout, "shop")
	out = w.Run("diff", tools, prompts)
	require.Equal(t, e2e.ExitUsage, out.Code)
	require.Contains(t, out.Stderr, "cannot compare a list of tools with a list of prompts")
	require.Equal(t, e2e.ExitNotFound, w.Run("diff", tools, filepath.Join(w.Dir, "missing.jsonl")).Code)
}

func TestCommandDiffOfRecordings(t *testing.T) {
	t.Parallel()
	record := func(calls ...string) string {
		w := e2e.NewWorld(t)
		w.Backend("shop", e2e.Shop())
		folder := filepath.Join(w.Dir, "rec")
		s := w.Serve("--record", folder)
		c := s.Client(false)
		for _, args := range calls {
			c.Ok("tools/call", e2e.Obj{"name": "shop_stat", "arguments": json.RawMessage(args)})
		}
		s.Signal(syscall.SIGTERM)
		require.Zero(t, s.Ends(e2e.Patience))
		return folder
	}
	a, b := record(`{"a":1}`, `{"a":2}`), record(`{"a":2.0}`, `{"a":1}`, `{"a":3}`)
	w := e2e.NewWorld(t)
	out := w.Run("diff", a, b, "--exit-code")
	require.Equal(t, 1, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "+ tools/call shop_stat  B #")
	require.Contains(t, out.Stdout, "calls: 1 same, 1 different, 0 only in A, 1 only in B\n", "the tool repeats 2.0 as text")
	require.Zero(t, w.Run("diff", a, a, "--exit-code").Code)
	report := json.RawMessage(w.Run("diff", a, b, "--json").Stdout)
	number := func(side string) string { return string(e2e.At(report, "calls", 0, side, "n")) }
	out = w.Run("diff", a+"#"+number("a"), b+"#"+number("b"))
	require.Contains(t, out.Stdout, "same definition (hash ", out.Stderr)
	require.Contains(t, out.Stdout, "~ $.result.content[0].text")
	out = w.Run("diff", a, b, "--json", "--ignore", "$.result")
	require.Equal(t, "2", string(e2e.At(json.RawMessage(out.Stdout), "same")), out.Stdout)
}
