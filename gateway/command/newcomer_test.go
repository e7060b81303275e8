package command

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
)

// slow is a gateway whose list takes until something happens.
type slow struct {
	*scripted
	until <-chan struct{}
	began func()
}

func (s *slow) List(ctx context.Context, q daemon.ListQuery) ([]daemon.Entry, error) {
	if s.began != nil {
		s.began()
	}
	select {
	case <-s.until:
	case <-ctx.Done(): // what is there by then
	}
	return s.scripted.List(ctx, q)
}

// signalled tells of its first write.
type signalled struct {
	bytes.Buffer
	once  sync.Once
	wrote chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	defer s.once.Do(func() { close(s.wrote) })
	return s.Buffer.Write(p)
}

// runApp is try.run for what try has no knob for.
func runApp(t *testing.T, ctx context.Context, a *App, g Gateway, args ...string) int {
	t.Helper()
	a.Getenv = func(k string) string { return map[string]string{"XDG_CONFIG_HOME": t.TempDir()}[k] }
	a.Open = func(context.Context, *App, *config.Config, []string) (Gateway, error) { return g, nil }
	root := &cobra.Command{Use: "goblin", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddGroup(cli.Groups()...)
	root.AddCommand(a.Commands()...)
	root.SetArgs(args)
	root.SetOut(io.Discard)
	return a.Report(root.ExecuteContext(ctx))
}

func TestAListReportsWhatItWaitsFor(t *testing.T) {
	g := catalog()
	g.status.Servers = append(g.status.Servers,
		daemon.Server{Name: "files", State: "connecting"}, daemon.Server{Name: "memory", State: "retrying"},
		daemon.Server{Name: "off", State: "disabled"})
	for _, args := range [][]string{{"list", "tools"}, {"read", "goblin://servers"}} {
		g.answer = gives(`{"contents":[]}`)
		errs := &signalled{wrote: make(chan struct{})}
		a := &App{App: &cli.App{Out: io.Discard, Err: errs, ErrTTY: true}, patience: 1}
		runApp(t, t.Context(), a, &slow{scripted: g, until: errs.wrote}, args...)
		require.Contains(t, errs.String(), "goblin: waiting for files, memory …\n")
	}
}

func TestAnInterruptedListIsNoList(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	code := runApp(t, ctx, &App{App: &cli.App{Out: &out, Err: &errs}}, &slow{scripted: catalog(), began: interrupt}, "list", "tools")
	require.Equal(t, cli.CodeFailure, code)
	require.Equal(t, "goblin: interrupted\n", errs.String())
	require.Empty(t, out.String())
}

func TestGoblinsOwnResourceIsReadWhenTheServersHaveStarted(t *testing.T) {
	for _, args := range [][]string{
		{"read", "goblin://servers"},
		{"read", "mcp://goblin/goblin://servers"},
		{"read", "goblin://servers", "--server", "goblin"},
	} {
		g := &scripted{answer: gives(`{"contents":[{"uri":"u","text":"states"}]}`)}
		g.t = t
		listed := false
		started := make(chan struct{})
		close(started)
		var out, errs bytes.Buffer
		code := runApp(t, t.Context(), &App{App: &cli.App{Out: &out, Err: &errs}},
			&slow{scripted: g, until: started, began: func() { listed = len(g.requests) == 0 }}, args...)
		require.Zero(t, code, errs.String())
		require.True(t, listed, "listing waits for the servers, and comes first")
		require.Equal(t, "states", out.String())
	}
}

func TestListServersIsCode4IfNoneCameUp(t *testing.T) {
	g := catalog()
	for i := range g.status.Servers {
		g.status.Servers[i].State, g.status.Servers[i].Error = "failed", "no program"
	}
	g.status.Servers = append(g.status.Servers, daemon.Server{Name: "off", State: "disabled"})
	for _, args := range [][]string{{"list", "servers"}, {"list", "servers", "--json"}} {
		got := try{gateway: g}.run(t, args...)
		require.Equal(t, cli.CodeConnect, got.code)
		require.Contains(t, got.out, "no program")
		require.Empty(t, got.err, "the table has told it")
	}
}

const troubled = `
servers:
  off: {url: "https://example.com/mcp", headers: {A: "${GOBLIN_TEST_UNSET}"}, disabled: true}
  spaced: {command: echo hello world}
`

func TestADisabledServerLacksNothing(t *testing.T) {
	for _, args := range [][]string{{"validate"}, {"validate", "--json"}} {
		got := try{config: troubled}.run(t, args...)
		require.Zero(t, got.code)
		require.Contains(t, got.out, "disabled")
		require.NotContains(t, got.out+got.err, "GOBLIN_TEST_UNSET")
		require.NotContains(t, got.out, "cannot start")
	}
	g := &scripted{status: daemon.Status{Servers: []daemon.Server{
		{Name: "spaced", State: "failed", Error: `start "echo hello world": no such program`},
	}}}
	got := try{config: troubled, gateway: g}.run(t, "list", "servers")
	require.Contains(t, got.out, `no such program; put arguments into "args"`)
}

func TestMisuseIsAnsweredWithTheRightUse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "T", `{"query":"x"}`}, `arguments go into --args, as in: goblin call T --args '{"name": "value"}'`},
		{[]string{"prompt", "P", "a=b"}, "arguments go into --arg, as in: goblin prompt P --arg NAME=VALUE"},
		{[]string{"prompt", "P", "--arg", "a=1", "--arg", "a=2"}, "--arg a is given twice"},
		{[]string{"call", "T", "--sever", "a"}, `unknown flag: --sever; did you mean --server? See "goblin call --help"`},
		{[]string{"list", "tools", "--jsno"}, "did you mean --json?"},
	} {
		got := try{gateway: catalog()}.run(t, tt.args...)
		require.Equal(t, cli.CodeUsage, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
	}
}

func TestAPromptNamesTheArgumentsItLacks(t *testing.T) {
	items := map[string][]daemon.Entry{"prompts": {{
		Name: "a/p", Server: "a", OriginalName: "p",
		Definition: []byte(`{"name":"a/p","arguments":[{"name":"title","required":true},{"name":"mood"},{"name":"author","required":true}]}`),
	}}}
	refuse := fails(-32602, "bad", "")
	for _, name := range []string{"a/p", "p", "a_p"} {
		got := try{gateway: &scripted{isDaemon: true, items: items, answer: refuse}}.run(t, "prompt", name, "--arg", "mood=x")
		require.Equal(t, outcome{code: cli.CodeUsage, err: "goblin: prompt \"" + name + "\" needs --arg title=… --arg author=…\n"}, got)
	}
	got := try{gateway: &scripted{isDaemon: true, items: items, answer: refuse}}.run(t, "prompt", "a/p", "--arg", "title=x", "--arg", "author=y")
	require.Equal(t, outcome{code: cli.CodeFailure, err: "goblin: prompt \"a/p\": bad\n"}, got)
}

func TestAThingOfAnotherServerIsFound(t *testing.T) {
	items := map[string][]daemon.Entry{"resources": {
		{URI: "mcp://b/file:///x", OriginalURI: "file:///x", Server: "b"},
		{URI: "mcp://a/file:///y", OriginalURI: "file:///y", Server: "a"},
	}}
	ask := func(isDaemon bool, args ...string) outcome {
		return try{gateway: &scripted{isDaemon: isDaemon, status: ready("a", "b"), items: items, answer: noResource}}.run(t, args...)
	}
	got := ask(true, "read", "file:///x", "--server", "a")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `of server "a"; server "b" has it`)
	got = ask(false, "read", "mcp://b/file:///x", "--server", "a")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `by its name, it is of server "b"`)
	got = ask(true, "read", "file:///zzz", "--server", "c")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `there is no server "c"`)
}

func TestHelpOnNoCommandNamesTheNearest(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		a := &App{App: &cli.App{}}
		root := &cobra.Command{Use: "goblin", Long: "All about it.", SilenceErrors: true, SilenceUsage: true}
		root.AddGroup(cli.Groups()...)
		root.AddCommand(a.Commands()...)
		root.SetHelpCommand(a.Help())
		root.SetArgs(args)
		root.SetOut(&out)
		err := root.Execute()
		return out.String(), err
	}
	for args, want := range map[string]string{
		"lst":  `there is no command "lst"; did you mean "list"? See "goblin --help"`,
		"zzzz": `there is no command "zzzz"; see "goblin --help"`,
	} {
		out, err := run("help", args)
		require.EqualError(t, err, want)
		require.Equal(t, cli.CodeUsage, cli.ExitCode(err))
		require.Empty(t, out)
	}
	out, err := run("help", "read")
	require.NoError(t, err)
	require.Contains(t, out, "Read a resource")
	require.Contains(t, out, "goblin read URI")
	out, err = run("help")
	require.NoError(t, err)
	require.Contains(t, out, "All about it.")
}
