//go:build interop

// Package proxies tests the configurations of gateway/deploy with the real programs.
package proxies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

const (
	name  = "goblin.example.com"
	token = "t0ken-of-the-test"
)

// site is two processes of one config behind nginx.
type site struct {
	*testing.T
	w       *e2e.World
	b       *e2e.Backend
	addrs   [2]string
	servers [2]*e2e.Web
	front   string // address of nginx
	ids     atomic.Int64
}

// newSite starts everything. change edits the shipped configuration of nginx.
func newSite(t *testing.T, change func(conf string) string) *site {
	t.Helper()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"], w.Gateway["allowed_hosts"] = token, []string{name}
	s := &site{T: t, w: w}
	// Slow ones take longer than the grace period of a process that is not replaced.
	work := func(ms int) []e2e.Obj { return e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": ms}), e2e.Do("echo")) }
	s.b = w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("work"), e2e.Tool("slow")},
		"on":    e2e.Obj{"tools/call work": work(20), "tools/call slow": work(6000)},
	})
	for i := range s.servers {
		s.addrs[i] = fmt.Sprintf("127.0.0.1:%d", e2e.FreePort(t))
		s.start(i)
	}
	s.front = fmt.Sprintf("127.0.0.1:%d", e2e.FreePort(t))
	shipped, err := os.ReadFile("../../deploy/nginx.conf")
	require.NoError(t, err)
	conf := change(string(shipped))
	dir := filepath.Join(w.Dir, "nginx")
	require.NoError(t, os.Mkdir(dir, 0o755))
	own := "http {\n  access_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		own += fmt.Sprintf("  %s_temp_path %s;\n", kind, kind)
	}
	for from, to := range map[string]string{"127.0.0.1:7331": s.addrs[0], "127.0.0.1:7332": s.addrs[1], "127.0.0.1:8080": s.front, "http {\n": own} {
		require.Equal(t, 1, strings.Count(conf, from), from)
		conf = strings.Replace(conf, from, to, 1)
	}
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(conf), 0o600))
	global := "daemon off; pid nginx.pid; error_log stderr;"
	if os.Getuid() == 0 {
		global += " user root;"
	}
	p := w.Execute(nginx(t), nil, "-p", dir, "-c", file, "-e", "stderr", "-g", global)
	t.Cleanup(func() {
		p.Signal(syscall.SIGTERM)
		p.Ends(e2e.Patience)
	})
	e2e.Eventually(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", s.front)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return s
}

// nginx returns the program's path. It fails without nginx instead of skipping the tests.
func nginx(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatal("not found: nginx; install it (on Debian: apt-get install nginx)")
	return ""
}

// start starts one of the processes, with its own port and folder.
func (s *site) start(i int) {
	s.Helper()
	dir := filepath.Join(s.w.Dir, fmt.Sprint("run", i))
	require.NoError(s, os.MkdirAll(dir, 0o700))
	s.w.Env = []string{"XDG_RUNTIME_DIR=" + dir}
	s.servers[i] = s.w.Serve("--listen", s.addrs[i])
	e2e.Eventually(s.T, "the process is ready", func() bool { return s.servers[i].Do("GET", "/readyz", nil, "").Status == http.StatusOK })
}

// from returns a client at an address of this machine.
func (s *site) from(n int) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(n))}}
	c := &http.Client{Timeout: e2e.Patience, Transport: &http.Transport{DialContext: d.DialContext}}
	s.Cleanup(c.CloseIdleConnections)
	return c
}

// send sends a message to nginx and returns the answer.
func (s *site) send(c *http.Client, frame []byte, header map[string]string) (status int, head http.Header, body string, err error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.front+"/mcp", strings.NewReader(string(frame)))
	if err != nil {
		return 0, nil, "", err
	}
	req.Host = name
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if header == nil {
		e2e.StandardHeaders(req.Header, frame)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text), err
}

// call calls a tool as a client without sessions, and checks the answer.
func (s *site) call(c *http.Client, tool string) error {
	n := s.ids.Add(1)
	status, _, body, err := s.send(c, e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": e2e.Obj{
		"name": "b_" + tool, "arguments": e2e.Obj{"n": n},
		"_meta": e2e.Obj{
			e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{},
			e2e.ProtocolPrefix + "clientInfo": e2e.Obj{"name": "e2e", "version": "1"},
		},
	}}), nil)
	return answered(n, status, body, err)
}

// begun returns the number of calls of a tool at both processes' servers. The server's
// lock is held.
func (s *site) begun(tool string) (n int) {
	for _, told := range s.b.Pick("tools/call") {
		if e2e.Str(told.Msg, "params", "name") == tool {
			n++
		}
	}
	return n
}

func answered(n int64, status int, body string, err error) error {
	if err == nil && (status != http.StatusOK || !strings.Contains(body, fmt.Sprintf(`\"n\":%d}`, n)) || strings.Contains(body, `"isError":true`)) {
		err = fmt.Errorf("call %d: status %d: %s", n, status, body)
	}
	return err
}

// legacy calls a tool in a session. It begins another session after the server has closed
// that one.
func (s *site) legacy(c *http.Client, session *string) error {
	for range 3 {
		if *session == "" {
			status, head, body, err := s.send(c, []byte(e2e.InitBody), map[string]string{})
			if err != nil || status != http.StatusOK {
				return errors.Join(err, fmt.Errorf("initialize: status %d: %s", status, body))
			}
			*session = head.Get("Mcp-Session-Id")
			in := map[string]string{"Mcp-Session-Id": *session}
			if _, _, _, err := s.send(c, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), in); err != nil {
				return err
			}
		}
		n := s.ids.Add(1)
		status, _, body, err := s.send(c, e2e.Marshal(e2e.Obj{
			"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": e2e.Obj{"name": "b_work", "arguments": e2e.Obj{"n": n}},
		}), map[string]string{"Mcp-Session-Id": *session})
		if status == http.StatusNotFound {
			*session = ""
			continue
		}
		return answered(n, status, body, err)
	}
	return errors.New("the session was lost repeatedly")
}

func TestInteropNginxLosesNoCallWhileAProcessIsReplaced(t *testing.T) {
	for what, change := range map[string]func(string) string{
		"as it is shipped": func(conf string) string { return conf },
		"spread evenly": func(conf string) string {
			lines := strings.Split(conf, "\n")
			for i, line := range lines {
				if strings.HasPrefix(strings.TrimSpace(line), "hash ") {
					lines[i] = ""
				}
			}
			return strings.Join(lines, "\n")
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, change)
			stays := strings.HasPrefix(what, "as")
			var calls, failures sync.Map
			var done atomic.Int64
			stop := make(chan struct{})
			var workers sync.WaitGroup
			work := func(id int, call func() error) {
				workers.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							calls.Store(id, n)
							return
						default:
						}
						if err := call(); err != nil {
							failures.Store(fmt.Sprint(id, " ", n), err.Error())
						}
						done.Add(1)
					}
				})
			}
			for id := 2; id < 8; id++ {
				c := s.from(id)
				work(id, func() error { return s.call(c, "work") })
			}
			sessions := 0
			if stays {
				sessions = 3
			}
			for id := 20; id < 20+sessions; id++ {
				c, session := s.from(id), ""
				work(id, func() error { return s.legacy(c, &session) })
			}
			more := func(n int64) {
				t.Helper()
				from := done.Load()
				e2e.Eventually(t, "calls still work", func() bool { return done.Load() >= from+n })
			}
			more(50)
			slow := 0
			for i := range s.servers {
				var under sync.WaitGroup
				for id := 40; id < 46; id++ {
					c := s.from(id)
					slow++
					under.Go(func() {
						if err := s.call(c, "slow"); err != nil {
							failures.Store(fmt.Sprint("slow ", id), err.Error())
						}
					})
				}
				s.b.Wait("the slow calls", func() bool { return s.begun("slow") >= slow })
				s.servers[i].Signal(syscall.SIGTERM)
				require.Zero(t, s.servers[i].Ends(e2e.Patience))
				under.Wait()
				more(20)
				s.start(i)
				more(50)
			}
			close(stop)
			workers.Wait()
			failures.Range(func(who, err any) bool { t.Errorf("%v: %v", who, err); return true })
			sent := 0
			calls.Range(func(_, n any) bool { sent += n.(int); return true })
			s.b.CatchUp()
			s.b.Mu.Lock()
			defer s.b.Mu.Unlock()
			require.Equal(t, sent, s.begun("work"), "each call was done once")
			require.Equal(t, slow, s.begun("slow"))
		})
	}
}

func TestInteropNginxIsServedByTheNamesThatAreAllowed(t *testing.T) {
	s := newSite(t, func(conf string) string { return conf })
	require.NoError(t, s.call(s.from(2), "work"))
	for host, want := range map[string]int{name: http.StatusOK, strings.ToUpper(name) + ":443": http.StatusOK, "localhost": http.StatusOK, "evil.example": http.StatusForbidden, "goblin": http.StatusForbidden} {
		require.Equal(t, want, s.servers[0].Do("GET", "/readyz", map[string]string{"Host": host}, "").Status, host)
	}
}
