package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/registry/rawjson"
)

// pages returns the times until the first and the last page of resources.
func pages(p *client) (count int, first, all time.Duration, err error) {
	begin := time.Now()
	params := "{}"
	for {
		answer, err := p.Ask("resources/list", params)
		if err != nil {
			return 0, 0, 0, err
		}
		if first == 0 {
			first = time.Since(begin)
		}
		count += bytes.Count(answer, []byte(`"uri":`))
		cursor := rawjson.Path(bytes.TrimSpace(answer), "result", "nextCursor")
		if cursor == nil {
			return count, first, time.Since(begin), nil
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
}

func (l *load) catalogs() error {
	l.out.section("resources/list in pages of 1,000, and memory", "", "first page", "p99", "all pages", "p99", "MiB", "budget")
	for _, n := range []int{1000, 10_000, 100_000} {
		f, err := l.newFixture(1, n)
		if err != nil {
			return err
		}
		if err := l.catalog(f, n); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) catalog(f *setup, n int) error {
	direct, err := f.Direct(n)
	if err != nil {
		return err
	}
	defer direct.Close()
	through, err := f.Through("stdio", "--standalone")
	if err != nil {
		return err
	}
	defer through.Close()
	var first, all [2][]time.Duration
	end := time.Now().Add(l.during(4 * time.Second))
	for round := 0; round < 3 || time.Now().Before(end); round++ {
		for i, p := range []*client{direct, through} {
			count, one, whole, err := pages(p)
			if err != nil {
				return err
			}
			if count < n { // Goblin adds its own
				return fmt.Errorf("%d of %d resources are listed", count, n)
			}
			first[i], all[i] = append(first[i], one), append(all[i], whole)
		}
	}
	for i, p := range []*client{direct, through} {
		name, memory, verdict := "direct", "", ""
		if i > 0 {
			name = "stdio --standalone"
			if kib := resident(p.PID); kib > 0 {
				memory = fmt.Sprint(kib / 1024)
				if n == 100_000 {
					verdict = most(&l.out, "MiB", kib/1024, 150)
				}
			}
		}
		l.out.row(fmt.Sprintf("%d, %s", n, name), duration(median(first[i])), duration(quantile(first[i], 0.99)),
			duration(median(all[i])), duration(quantile(all[i], 0.99)), memory, verdict)
	}
	return nil
}

// begin starts Goblin. memory and own are measured when all servers have listed.
func begin(f *setup) (answered, ready time.Duration, memory, own int, err error) {
	start := time.Now()
	p, err := f.Start("stdio", "--standalone")
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer p.Close()
	answered = time.Since(start)
	_, err = p.Ask("tools/list", "{}")
	return answered, time.Since(start), resident(p.PID), ownMemory(p.PID), err
}

// beginBridged starts Goblin as a bridge to a running daemon, or to one that it starts.
func beginBridged(f *setup, running bool) (answered, ready time.Duration, err error) {
	defer f.Command("stop").Run() //nolint:errcheck // the next start reports it
	if running {
		first, err := f.Through("stdio")
		if err != nil {
			return 0, 0, err
		}
		defer first.Close()
	}
	start := time.Now()
	p, err := f.Start("stdio")
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	answered = time.Since(start)
	_, err = p.Ask("tools/list", "{}")
	return answered, time.Since(start), err
}

// beginDirect starts servers in parallel and lists their tools: the lower limit for any
// gateway.
func beginDirect(f *setup, servers int) (time.Duration, error) {
	start := time.Now()
	faults := make(chan error, servers)
	peers := make([]*client, servers)
	for i := range peers {
		go func() {
			var err error
			if peers[i], err = f.Direct(1); err == nil {
				_, err = peers[i].Ask("tools/list", "{}")
			}
			faults <- err
		}()
	}
	var fault error
	for range peers {
		if err := <-faults; err != nil {
			fault = err
		}
	}
	took := time.Since(start)
	for _, p := range peers {
		if p != nil {
			p.Close()
		}
	}
	return took, fault
}

func (l *load) starts() error {
	l.out.section("from start to ready", "", "p50", "p99", "p50 ratio", "MiB", "budget")
	budgets := map[int]time.Duration{1: 30 * time.Millisecond, 20: 60 * time.Millisecond}
	for _, servers := range []int{1, 10, 20} {
		f, err := l.newFixture(servers, 1)
		if err != nil {
			return err
		}
		var direct, answered, ready []time.Duration
		var bridged [2]struct{ answered, ready []time.Duration } // with a running daemon, or without
		var memory []int
		end := time.Now().Add(l.during(6 * time.Second))
		for round := 0; round < 3 || time.Now().Before(end); round++ {
			near, err := beginDirect(f, servers)
			if err != nil {
				return err
			}
			soon, all, kib, _, err := begin(f)
			if err != nil {
				return err
			}
			for i := range bridged {
				soon, all, err := beginBridged(f, i == 0)
				if err != nil {
					return err
				}
				bridged[i].answered, bridged[i].ready = append(bridged[i].answered, soon), append(bridged[i].ready, all)
			}
			direct = append(direct, near)
			answered = append(answered, soon)
			ready = append(ready, all)
			memory = append(memory, kib)
		}
		floor := float64(median(direct))
		line := func(name string, all []time.Duration, verdict ...string) {
			l.out.row(fmt.Sprintf("%d servers, %s", servers, name), duration(median(all)), duration(quantile(all, 0.99)),
				fmt.Sprintf("%.2f", float64(median(all))/floor), "", strings.Join(verdict, ""))
		}
		line("direct, at once", direct)
		line("initialize", answered, most(&l.out, "initialize", median(answered), 15*time.Millisecond))
		if limit, ok := budgets[servers]; ok {
			line("all listed", ready, most(&l.out, "ready", median(ready), limit))
		} else {
			line("all listed", ready)
		}
		for i, name := range []string{"daemon runs", "daemon starts"} {
			line(name+", initialize", bridged[i].answered)
			line(name+", listed", bridged[i].ready)
		}
		if kib := median(memory); kib > 0 && servers == 10 {
			l.out.row("10 servers, memory", "", "", "", fmt.Sprint(kib/1024), most(&l.out, "MiB", kib/1024, 30))
		}
	}
	return nil
}

const subscribers = 50

// crowd is a set of HTTP sessions that are subscribed to one resource of a daemon.
type crowd struct {
	ctx       context.Context
	caller    *web
	heard     chan error
	listeners sync.WaitGroup
	ends      []func()
}

func (l *load) crowd(f *setup) (c *crowd, err error) {
	h, err := l.serveOf(f)
	if err != nil {
		return nil, err
	}
	c = &crowd{ctx: l.ctx, heard: make(chan error, subscribers), ends: []func(){h.stop}}
	defer func() {
		if err != nil {
			c.end()
		}
	}()
	for range subscribers {
		s, err := subscriber(h.url)
		if err != nil {
			return nil, err
		}
		c.ends = append(c.ends, func() { _ = s.Body.Close() })
		c.listeners.Go(func() { listen(s, c.heard) })
	}
	c.caller, err = newWeb(h.url, false)
	return c, err
}

func (c *crowd) end() {
	for _, f := range slices.Backward(c.ends) {
		f()
	}
	c.listeners.Wait()
}

func (c *crowd) update() (time.Duration, error) {
	begin := time.Now()
	if _, err := c.caller.post(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"s0_touch"}}`); err != nil {
		return 0, err
	}
	for range subscribers {
		select {
		case err := <-c.heard:
			if err != nil {
				return 0, err
			}
		case <-c.ctx.Done():
			return 0, c.ctx.Err()
		case <-time.After(10 * time.Second):
			return 0, fmt.Errorf("an update did not come in 10 s")
		}
	}
	return time.Since(begin), nil
}

// updates measures the delivery of one update to 50 sessions, compared with a direct
// connection.
func (l *load) updates() error {
	f, err := l.newFixture(1, 1)
	if err != nil {
		return err
	}
	c, err := l.crowd(f)
	if err != nil {
		return err
	}
	defer c.end()
	direct, err := f.Direct(1)
	if err != nil {
		return err
	}
	defer direct.Close()
	one := func() error {
		if err := direct.Send("tools/call", `{"name":"touch"}`); err != nil {
			return err
		}
		_, err := direct.Next()
		return err
	}
	var near, far []time.Duration
	end := time.Now().Add(l.during(8 * time.Second))
	for round := 0; round < 5 || time.Now().Before(end); round++ {
		begin := time.Now()
		if err := one(); err != nil {
			return err
		}
		near = append(near, time.Since(begin))
		if _, err := direct.Receive(); err != nil {
			return err
		}
		took, err := c.update()
		if err != nil {
			return err
		}
		far = append(far, took)
	}
	l.out.section(fmt.Sprintf("one update to %d subscribers", subscribers), "", "p50", "p99", "p50 ratio", "")
	l.out.row("direct, 1 subscriber", duration(median(near)), duration(quantile(near, 0.99)), "1.00", "")
	l.out.row("Streamable HTTP, 50", duration(median(far)), duration(quantile(far, 0.99)), fmt.Sprintf("%.2f", float64(median(far))/float64(median(near))), "")
	return nil
}

func subscriber(url string) (*http.Response, error) {
	w, err := newWeb(url, false)
	if err != nil {
		return nil, err
	}
	stream, err := w.request(http.MethodGet, http.NoBody)
	if err != nil {
		return nil, err
	}
	_, err = w.post(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"mcp://s0/` + touched + `"}}`)
	if err != nil {
		_ = stream.Body.Close()
	}
	return stream, err
}

func listen(s *http.Response, heard chan<- error) {
	lines := bufio.NewScanner(s.Body)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte("notifications/resources/updated")) {
			heard <- nil
		}
	}
}
