//go:build soak

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// calm is the server that nothing ever happens to: whatever happens to the
// others, every request to it succeeds.
const calm = "calm"

// moving is the server that comes and goes with the config.
const moving = "moving"

// fleet are the servers, calm first.
var fleet = []struct {
	name   string
	script obj
	http   string // path, "" for stdio
	conf   obj
}{
	{calm, obj{}, "", obj{"timeout": "30s"}}, // of a machine that has too much to do
	{"legacy", obj{}, "", obj{}},
	{"modern", obj{"era": "modern"}, "", obj{}},
	{"dual", obj{"era": "dual"}, "", obj{}},
	{"each", obj{}, "", obj{"isolation": "session"}},
	{"web", obj{"sse": true}, "/mcp", obj{"type": "http"}},
	{"webmodern", obj{"era": "modern"}, "/mcp", obj{"type": "http"}},
	{"events", obj{}, "/sse", obj{"type": "sse"}},
	{moving, obj{}, "", obj{}},
}

// soakScript is what all servers can do, and what can be done to them by calls.
func soakScript() obj {
	var tools []obj
	for _, name := range []string{
		"echo", "slow", "steps", "ask", "updates", "garbage", "loud", "storm", "turnover",
		"crash", "half", "closeout", "deaf", "hang", "forget", "hangup",
	} {
		tools = append(tools, tool(name))
	}
	var resources []obj
	for i := range 4 {
		resources = append(resources, resource(fmt.Sprint("mem:///watch/", i)))
	}
	update := func(n int) obj {
		return do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": "mem:///watch/$n"}, "n": n})
	}
	changed := func(kind string, n int) obj {
		return do("notify", obj{"method": "notifications/" + kind + "/list_changed", "n": n})
	}
	return obj{
		"tools": tools, "resources": resources, "prompts": []obj{prompt("say")},
		"templates": []obj{template("mem:///{id}")}, "pagesize": 7,
		"on": obj{
			"tools/call slow":    actions(do("delay", obj{"ms": 200})),
			"tools/call steps":   actions(do("progress", obj{"n": 5, "ms": 10})),
			"tools/call ask":     actions(do("request", obj{"method": "elicitation/create", "params": obj{"message": "?", "requestedSchema": obj{"type": "object", "properties": obj{}}}})),
			"tools/call updates": actions(update(4)),
			"tools/call garbage": actions(do("write", obj{"text": `{"jsonrpc":"2.0","id":987654,"result":{}}`}), do("write", obj{"text": "no JSON", "n": 3}), do("write", obj{"text": `{"a":[[[[`})),
			"tools/call loud":    actions(do("stderr", obj{"text": strings.Repeat("loud ", 200), "n": 5000})),
			"tools/call storm":   actions(changed("tools", 3000), changed("resources", 3000), update(4), update(4)),
			"tools/call turnover": actions(
				do("remove", obj{"kind": "tools", "name": "extra"}), changed("tools", 1),
				do("add", obj{"kind": "tools", "entry": tool("extra")}), changed("tools", 1)),
			"tools/call crash":    actions(do("crash", obj{"code": 1, "text": "out of memory"})),
			"tools/call half":     actions(do("write", obj{"text": `{"jsonrpc":"2.0","id":`}), do("crash", obj{"code": 0})),
			"tools/call closeout": actions(do("closeout")),
			"tools/call deaf":     actions(do("deaf")),
			"tools/call hang":     actions(do("hang")),
			"tools/call forget":   actions(do("forget")),
			"tools/call hangup":   actions(do("hangup")),
		},
	}
}

// launchFleet writes the scripts and starts what speaks HTTP.
func (s *soak) launchFleet() {
	s.conf = obj{}
	for i, f := range fleet {
		path := filepath.Join(s.w.dir, f.name+".json")
		script := merge(merge(soakScript(), []obj{f.script}), []obj{{"name": f.name}})
		if err := os.WriteFile(path, marshal(script), 0o600); err != nil {
			s.t.Fatal(err)
		}
		conf := merge(obj{"timeout": "3s", "startup_timeout": "5s"}, []obj{f.conf})
		if f.http == "" {
			conf["command"], conf["args"] = fakeserver, []string{path}
		} else {
			addr := fmt.Sprint("127.0.0.1:", freePort(s.t))
			p := newProxy(s.t, addr)
			conf["url"] = "http://" + p.addr() + f.http
			s.proxies = append(s.proxies, p)
			s.keep(addr, path, uint64(i))
		}
		s.conf[f.name] = conf
		s.names = append(s.names, f.name)
	}
	s.names = append(s.names, calm, calm) // asked more often than the others
}

// keep runs an HTTP server until the end of the test, again after each crash.
func (s *soak) keep(addr, path string, n uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r := rand.New(rand.NewPCG(s.seed, 1000+n))
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, fakeserver, "-http", addr, path)
			cmd.Env = s.w.environ()
			_ = cmd.Run() // it crashes now and then
			s.pause(ctx, r, 1500)
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// writeConfig writes the config with another moving server, nil for none.
func (s *soak) writeConfig(mine obj) {
	servers := merge(obj{}, []obj{s.conf})
	delete(servers, moving)
	if mine != nil {
		servers[moving] = mine
	}
	text := fmt.Sprintf("servers: %s\ngateway: %s\n", marshal(servers), marshal(s.w.gateway))
	next := s.w.config + ".next"
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, s.w.config)
	}
	if err != nil {
		s.wrong("write the config: %v", err)
	}
}

// reload changes the config as people do, mistakes included.
func (s *soak) reload(ctx context.Context, r *rand.Rand) {
	mine, _ := s.conf[moving].(obj)
	for n := 0; ctx.Err() == nil; n++ {
		switch r.IntN(6) {
		case 0:
			s.writeConfig(nil)
		case 1:
			s.writeConfig(merge(obj{"disabled": true}, []obj{mine}))
		case 2:
			s.mistake(ctx, r, "servers:\n  moving: {comand: x}\n")
		case 3:
			s.mistake(ctx, r, "")
		case 4:
			s.writeConfig(merge(obj{"env": obj{"N": fmt.Sprint(n)}}, []obj{mine}))
			s.host.signal(syscall.SIGHUP)
		default:
			s.writeConfig(mine)
		}
		s.pause(ctx, r, 4000)
	}
	s.writeConfig(mine)
}

// mistake makes the config invalid for a while: the host goes on with what it
// has, and whoever starts would be told.
func (s *soak) mistake(ctx context.Context, r *rand.Rand, text string) {
	s.file.Lock()
	defer s.file.Unlock()
	good, err := os.ReadFile(s.w.config)
	if err == nil {
		err = os.WriteFile(s.w.config, []byte(text), 0o600)
	}
	s.pause(ctx, r, 1000)
	if err == nil {
		err = os.WriteFile(s.w.config, good, 0o600)
	}
	if err != nil {
		s.wrong("write the config: %v", err)
	}
}

// trouble does something bad to one of the servers every now and then.
func (s *soak) trouble(ctx context.Context, r *rand.Rand) {
	p := s.guest("trouble", r)
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
			x.vanish()
			s.pause(ctx, r, 5000)
			x.appear()
		case "reset":
			s.proxies[r.IntN(len(s.proxies))].reset()
		case "deaf":
			p.do(s.call(server, kind))
			for range 3 {
				p.do(s.call(server, "echo", obj{"pad": strings.Repeat("x", 50_000)}))
			}
			s.restart(server) // it lives, and cannot be told from a slow one
		default:
			p.do(s.call(server, kind))
		}
		s.pause(ctx, r, 1500)
	}
	for _, x := range s.proxies {
		x.appear()
	}
}

// restart restarts a server by hand; one that is not there cannot be.
func (s *soak) restart(server string) {
	s.file.RLock()
	defer s.file.RUnlock()
	cmd := exec.Command(goblin, "restart", server)
	cmd.Env, cmd.Dir = s.w.environ(), s.w.dir
	if out, err := cmd.CombinedOutput(); err != nil && server != moving {
		s.wrong("goblin restart %s: %v: %s", server, err, out)
	}
}
