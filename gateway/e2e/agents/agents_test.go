//go:build agents && !windows

package agents

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// picture is a PNG of one pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// CLIENTS.md names the agents with the versions that are run here.
func TestDocumentedAgentsAreCurrent(t *testing.T) {
	text, err := os.ReadFile("../../CLIENTS.md")
	require.NoError(t, err)
	for _, p := range programs {
		require.Regexp(t, `(?m)^\| .*\b`+regexp.QuoteMeta(p.name+" "+p.packages[p.of])+`\b.* \| yes \|`, string(text))
	}
}

// limit is the time limit of an agent's whole run.
const limit = 5 * time.Minute

// TestAgents checks what an agent must show, in the order of the conversation.
func TestAgents(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.converse(t)
		})
	}
}

func (p program) converse(t *testing.T) {
	w := p.world(t)
	shop := w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("greet"), e2e.Tool("draw"), e2e.Tool("break"), e2e.Tool("ask"), e2e.Tool("ponder"), e2e.Tool("die")},
		"calls": e2e.Obj{
			"greet": "Good morning from the shop",
			"draw":  e2e.Obj{"content": []e2e.Obj{{"type": "image", "data": picture, "mimeType": "image/png"}}},
			"break": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": "the till is broken"}}},
		},
		"on": e2e.Obj{
			"tools/call ask": e2e.Actions(
				e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "Which size?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"size": e2e.Obj{"type": "string"}}}}}),
				e2e.Do("answers")),
			"tools/call ponder": e2e.Actions(
				e2e.Do("delay", e2e.Obj{"ms": 40_000}), e2e.Do("text", e2e.Obj{"text": "forty-two after all"})),
			"tools/call die": e2e.Actions(e2e.Do("crash")),
		},
	})
	w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("hello")}, "calls": e2e.Obj{"hello": "better late"}, "on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 2_000})),
	}})
	w.Write()
	if p.mayHurry {
		w.Succeeds("list", "tools") // caches the lists of the late server, too
	}
	steps := []step{
		{tool: "shop_greet"},
		{tool: "shop_draw"},
		{tool: "shop_break"},
		{tool: "shop_ask"},
		{tool: "shop_ponder"},
		{tool: "late_hello"},
		{tool: "shop_die"},
		{tool: "shop_greet", before: func() { killDaemon(t, w) }},
	}
	m := newModel(t, steps)
	out, err := p.run(t, w, m, "Try all tools of the shop.")

	counts := map[string]int{}
	for _, call := range shop.Received("tools/call") {
		counts[e2e.Str(call.Msg, "params", "name")]++
	}
	row := "| " + p.name + " | "
	for _, check := range []struct {
		what  string
		holds bool
	}{
		{"ends well", err == nil && strings.Contains(out, "All is done.")},
		{"all tools", m.offered("shop_greet", "shop_draw", "shop_break", "shop_ask", "shop_ponder", "shop_die")},
		{"call", strings.Contains(m.after(0), "Good morning from the shop")},
		{"image", strings.Contains(m.after(1), picture)},
		{"error", strings.Contains(m.after(2), "the till is broken")},
		{"question", m.after(3) != ""},
		{"slow tool", strings.Contains(m.after(4), "forty-two after all")},
		{"late server", m.offered("late_hello") && strings.Contains(m.after(5), "better late")},
		{"crash", strings.Contains(m.after(6), "the process exited")},
		{"daemon killed", strings.Count(m.after(7), "Good morning from the shop") > strings.Count(m.after(6), "Good morning from the shop")},
		{"each call once", fmt.Sprint(counts) == "map[ask:1 break:1 die:1 draw:1 greet:2 ponder:1]"},
		{"no orphan", len(w.Survivors("", e2e.Patience, nil)) == 0},
	} {
		t.Run(check.what, func(t *testing.T) { require.True(t, check.holds) })
		cell := map[bool]string{true: "yes", false: "no"}[check.holds]
		if check.what == "question" && !strings.Contains(m.after(3), "decline") {
			cell = "not asked" // Goblin tells the server that no user can answer
		}
		row += cell + " | "
	}
	t.Log(row)
	if t.Failed() || testing.Verbose() {
		t.Logf("%v\n%s\nstrange: %v\ntools: %v\ncalls: %v\nafter each step:", err, e2e.Tail(out, 3000), m.strange, m.names(), counts)
		for i := range m.texts {
			t.Logf("%d: …%s", i, e2e.Tail(m.texts[i], 1500))
		}
	}
}

// An agent that does not wait for slow servers begins with the tools of the fast ones.
func TestAgentsInAHurryAreNotHeldUpByAServerThatNeverListed(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		if !p.mayHurry {
			continue
		}
		p.hurries = true
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := p.world(t)
			w.Backend("shop", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("greet")}, "calls": e2e.Obj{"greet": "Good morning from the shop"}})
			w.Backend("never", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("hello")}, "on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang"))}})
			w.Write()
			var m *model
			var out string
			for range 3 { // a busy machine may take longer than the agent waits
				var err error
				m = newModel(t, []step{{tool: "shop_greet"}})
				out, err = p.run(t, w, m, "Greet the shop.")
				require.NoError(t, err, out)
				if m.offered("shop_greet") {
					break
				}
			}
			require.True(t, m.offered("shop_greet"), "%v\n%s", m.names(), out)
			require.Contains(t, m.after(0), "Good morning from the shop")
		})
	}
}

// world returns a world for an agent.
func (p program) world(t *testing.T) *e2e.World {
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	delete(w.Gateway, "startup_wait")
	w.Gateway["linger"] = "1s"
	return w
}

// run runs the agent with a question until it exits. Goblin gets further arguments.
func (p program) run(t *testing.T, w *e2e.World, m *model, question string, more ...string) (out string, err error) {
	t.Helper()
	command := p.install(t)
	place := place{home: filepath.Join(w.Dir, "home"), project: filepath.Join(w.Dir, "project"), model: m.server.URL, hurries: p.hurries}
	place.goblin = append([]string{e2e.Goblin, "--config", w.Config, "stdio"}, more...)
	require.NoError(t, os.MkdirAll(filepath.Join(place.project, ".git"), 0o700))
	env := append(p.configure(t, place),
		"HOME="+place.home, "TERM=dumb", "NO_COLOR=1", "CI=1",
		"PATH="+filepath.Dir(nodeBinary(t))+":"+os.Getenv("PATH"))
	cmd := exec.Command(command[0], append(append(command[1:], p.args...), question)...)
	cmd.Env, cmd.Dir = env, place.project
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	timer := time.AfterFunc(limit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err = cmd.Wait()
	timer.Stop()
	return all.String(), err
}

// killDaemon sends SIGKILL to the daemon and waits for the next one.
func killDaemon(t *testing.T, w *e2e.World) {
	t.Helper()
	daemon := func() (pid int) {
		for _, p := range w.Processes(e2e.Goblin + " daemon") {
			_, _ = fmt.Sscan(p, &pid) // it begins with one
		}
		return pid
	}
	old := daemon()
	require.NoError(t, e2e.Kill(old))
	e2e.Eventually(t, "the next daemon", func() bool { next := daemon(); return next != 0 && next != old })
}

// offered reports whether the model was given a tool for each of the names.
func (m *model) offered(names ...string) bool {
	for _, name := range names {
		found := false
		for _, t := range m.tools {
			found = found || strings.HasSuffix(t.full(), name)
		}
		if !found {
			return false
		}
	}
	return true
}

// names returns the tools that the model was offered first.
func (m *model) names() (all []string) {
	for _, t := range m.tools {
		all = append(all, t.full())
	}
	return all
}
