//go:build soak

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"goblin/gateway/e2e"
)

// calm is the server without faults: every request to it succeeds.
const calm = "calm"

// moving is the server that config edits add and remove.
const moving = "moving"

// fleet are the servers, calm first.
var fleet = []struct {
	name   string
	script e2e.Obj
	http   string // path, "" for stdio
	conf   e2e.Obj
}{
	{calm, e2e.Obj{}, "", e2e.Obj{"timeout": "30s", "call_timeout": "30s"}}, // for an overloaded machine
	{"legacy", e2e.Obj{}, "", e2e.Obj{}},
	{"modern", e2e.Obj{"era": "modern"}, "", e2e.Obj{}},
	{"dual", e2e.Obj{"era": "dual"}, "", e2e.Obj{"era": "both"}},
	{"each", e2e.Obj{}, "", e2e.Obj{"isolation": "session"}},
	{"web", e2e.Obj{"sse": true}, "/mcp", e2e.Obj{"type": "http"}},
	{"webmodern", e2e.Obj{"era": "modern"}, "/mcp", e2e.Obj{"type": "http"}},
	{"events", e2e.Obj{}, "/sse", e2e.Obj{"type": "sse"}},
	{moving, e2e.Obj{}, "", e2e.Obj{}},
}

// soakScript returns the script of all servers: their tools, and the faults that calls
// trigger.
func soakScript() e2e.Obj {
	var tools []e2e.Obj
	for _, name := range []string{
		"echo", "slow", "steps", "ask", "updates", "garbage", "loud", "storm", "turnover",
		"crash", "half", "closeout", "deaf", "hang", "forget", "hangup",
	} {
		tools = append(tools, e2e.Tool(name))
	}
	var resources []e2e.Obj
	for i := range 4 {
		resources = append(resources, e2e.Resource(fmt.Sprint("mem:///watch/", i)))
	}
	update := func(n int) e2e.Obj {
		return e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "mem:///watch/$n"}, "n": n})
	}
	changed := func(kind string, n int) e2e.Obj {
		return e2e.Do("notify", e2e.Obj{"method": "notifications/" + kind + "/list_changed", "n": n})
	}
	return e2e.Obj{
		"tools": tools, "resources": resources, "prompts": []e2e.Obj{e2e.Prompt("say")},
		"templates": []e2e.Obj{e2e.Template("mem:///{id}")}, "pagesize": 7,
		"on": e2e.Obj{
			"tools/call slow":    e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 200})),
			"tools/call steps":   e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 5, "ms": 10})),
			"tools/call ask":     e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{}}}})),
			"tools/call updates": e2e.Actions(update(4)),
			"tools/call garbage": e2e.Actions(e2e.Do("write", e2e.Obj{"text": `{"jsonrpc":"2.0","id":987654,"result":{}}`}), e2e.Do("write", e2e.Obj{"text": "no JSON", "n": 3}), e2e.Do("write", e2e.Obj{"text": `{"a":[[[[`})),
			"tools/call loud":    e2e.Actions(e2e.Do("stderr", e2e.Obj{"text": strings.Repeat("loud ", 200), "n": 5000})),
			"tools/call storm":   e2e.Actions(changed("tools", 3000), changed("resources", 3000), update(4), update(4)),
			"tools/call turnover": e2e.Actions(
				e2e.Do("remove", e2e.Obj{"kind": "tools", "name": "extra"}), changed("tools", 1),
				e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Tool("extra")}), changed("tools", 1)),
			"tools/call crash":    e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 1, "text": "out of memory"})),
			"tools/call half":     e2e.Actions(e2e.Do("write", e2e.Obj{"text": `{"jsonrpc":"2.0","id":`}), e2e.Do("crash", e2e.Obj{"code": 0})),
			"tools/call closeout": e2e.Actions(e2e.Do("closeout")),
			"tools/call deaf":     e2e.Actions(e2e.Do("deaf")),
			"tools/call hang":     e2e.Actions(e2e.Do("hang")),
			"tools/call forget":   e2e.Actions(e2e.Do("forget")),
			"tools/call hangup":   e2e.Actions(e2e.Do("hangup")),
		},
	}
}

// launchFleet writes the scripts and starts the HTTP servers.
func (s *soak) launchFleet() {
	s.conf = e2e.Obj{}
	for i, f := range fleet {
		path := filepath.Join(s.w.Dir, f.name+".json")
		script := e2e.Merge(e2e.Merge(soakScript(), []e2e.Obj{f.script}), []e2e.Obj{{"name": f.name}})
		if err := os.WriteFile(path, e2e.Marshal(script), 0o600); err != nil {
			s.t.Fatal(err)
		}
		conf := e2e.Merge(e2e.Obj{"timeout": "3s", "call_timeout": "3s", "startup_timeout": "5s"}, []e2e.Obj{f.conf})
		if f.http == "" {
			conf["command"], conf["args"] = e2e.TestServer, []string{path}
		} else {
			addr := fmt.Sprint("127.0.0.1:", e2e.FreePort(s.t))
			p := e2e.NewProxy(s.t, addr)
			conf["url"] = "http://" + p.Addr() + f.http
			s.proxies = append(s.proxies, p)
			s.keep(addr, path, uint64(i))
		}
		s.conf[f.name] = conf
		s.names = append(s.names, f.name)
	}
	s.names = append(s.names, calm, calm) // used more often than the others
}

// keep runs an HTTP server until the end of the test, again after each crash.
func (s *soak) keep(addr, path string, n uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r := rand.New(rand.NewPCG(s.seed, 1000+n))
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, e2e.TestServer, "-http", addr, path)
			cmd.Env = s.w.Environ()
			_ = cmd.Run() // it crashes periodically
			s.pause(ctx, r, 1500)
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// writeConfig writes the config with another moving server, or without one if mine is
// nil.
func (s *soak) writeConfig(mine e2e.Obj) {
	servers := e2e.Merge(e2e.Obj{}, []e2e.Obj{s.conf})
	delete(servers, moving)
	if mine != nil {
		servers[moving] = mine
	}
	text := fmt.Sprintf("servers: %s\ngateway: %s\n", e2e.Marshal(servers), e2e.Marshal(s.w.Gateway))
	next := s.w.Config + ".next"
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, s.w.Config)
	}
	if err != nil {
		s.wrong("write the config: %v", err)
	}
}

// reload edits the config as users do, including mistakes.
func (s *soak) reload(ctx context.Context, r *rand.Rand) {
	mine, _ := s.conf[moving].(e2e.Obj)
	for n := 0; ctx.Err() == nil; n++ {
		switch r.IntN(6) {
		case 0:
			s.writeConfig(nil)
		case 1:
			s.writeConfig(e2e.Merge(e2e.Obj{"disabled": true}, []e2e.Obj{mine}))
		case 2:
			s.mistake(ctx, r, "servers:\n  moving: {comand: x}\n")
		case 3:
			s.mistake(ctx, r, "")
		case 4:
			s.writeConfig(e2e.Merge(e2e.Obj{"env": e2e.Obj{"N": fmt.Sprint(n)}}, []e2e.Obj{mine}))
			s.daemon.Signal(syscall.SIGHUP)
		default:
			s.writeConfig(mine)
		}
		s.pause(ctx, r, 4000)
	}
	s.writeConfig(mine)
}

// mistake makes the config invalid for a while. The daemon keeps its last config, but a
// new process would fail.
func (s *soak) mistake(ctx context.Context, r *rand.Rand, text string) {
	s.file.Lock()
	defer s.file.Unlock()
	good, err := os.ReadFile(s.w.Config)
	if err == nil {
		err = os.WriteFile(s.w.Config, []byte(text), 0o600)
	}
	s.pause(ctx, r, 1000)
	if err == nil {
		err = os.WriteFile(s.w.Config, good, 0o600)
	}
	if err != nil {
		s.wrong("write the config: %v", err)
	}
}

// trouble periodically causes a fault of a random server.
func (s *soak) trouble(ctx context.Context, r *rand.Rand) {
	p := s.newClient("trouble", r)
	p.modern = true
	defer p.overHTTP(context.Background(), s.base)()
	kinds := []string{"crash", "crash", "half", "closeout", "deaf", "hang", "hang", "forget", "hangup", "loud", "storm", "turnover", "restart", "vanish", "reset"}
	for ctx.Err() == nil {
		server := fleet[1+r.IntN(len(fleet)-1)].name
		kind := kinds[r.IntN(len(kinds))]
		s.count("trouble: " + kind)
		switch kind {
		case "restart":
			s.restart(server)
		case "vanish":
			x := s.proxies[r.IntN(len(s.proxies))]
			x.Vanish()
			s.pause(ctx, r, 5000)
			x.Appear()
		case "reset":
			s.proxies[r.IntN(len(s.proxies))].Reset()
		case "deaf":
			p.do(s.call(server, kind))
			for range 3 {
				p.do(s.call(server, "echo", e2e.Obj{"pad": strings.Repeat("x", 50_000)}))
			}
			s.restart(server) // it runs, and looks like a slow one
		default:
			p.do(s.call(server, kind))
		}
		s.pause(ctx, r, 1500)
	}
	for _, x := range s.proxies {
		x.Appear()
	}
}

// restart restarts a server by the command, which fails if it isn't in the config.
func (s *soak) restart(server string) {
	s.file.RLock()
	defer s.file.RUnlock()
	cmd := exec.Command(e2e.Goblin, "restart", server)
	cmd.Env, cmd.Dir = s.w.Environ(), s.w.Dir
	if out, err := cmd.CombinedOutput(); err != nil && server != moving {
		s.wrong("goblin restart %s: %v: %s", server, err, out)
	}
}
