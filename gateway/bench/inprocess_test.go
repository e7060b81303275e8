//go:build bench

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"goblin/gateway/config"
	"goblin/gateway/stack"
)

// BenchmarkAllocations measures a tools/call through the gateway inside this process. The
// client allocates only its request, so allocs/op is the proxy's share. -cpuprofile shows
// where the time goes. Profiles and rules that do not exist add no cost to a call; enabled
// rules and traces do.
func BenchmarkAllocations(b *testing.B) {
	f := newFixture(b, 1, 1)
	text, err := os.ReadFile(f.config)
	check(b, err)
	check(b, os.WriteFile(f.config, append(text, "profiles: {part: {tools: {allow: [echo]}}}\n"...), 0o600))
	cfg, err := config.Load(f.config)
	check(b, err)
	for _, profile := range []string{"", "part"} {
		b.Run("profile="+profile, func(b *testing.B) { allocations(b, cfg, profile) })
	}
	for name, rule := range map[string]string{
		"rule=other": `{when: "method:tools/call name:none", then: stop}`,
		"rule=hit":   `{when: "name:s0_echo", then: delay, delay: 1ns}`,
	} {
		b.Run(name, func(b *testing.B) { allocations(b, cfg, "", rule) })
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer receiver.Close()
	cfg.OTel = config.OTel{On: true, Endpoint: receiver.URL}
	b.Run("traces", func(b *testing.B) { allocations(b, cfg, "") })
}

func allocations(b *testing.B, cfg *config.Config, profile string, rules ...string) {
	i, err := stack.New(stack.Options{Config: cfg, Version: "bench", Logger: slog.New(slog.DiscardHandler)})
	check(b, err)
	for _, rule := range rules {
		_, err := i.AddRule(rule)
		check(b, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan error, 1)
	go func() { running <- i.Run(ctx) }()
	fromClient, toGoblin, err := os.Pipe()
	check(b, err)
	fromGoblin, toClient, err := os.Pipe()
	check(b, err)
	served := make(chan error, 1)
	go func() { served <- i.ServeStdio(ctx, profile, fromClient, toClient) }()

	p := peer{connect(toGoblin, fromGoblin)}
	p.ask(b, "initialize", hello)
	p.ask(b, "tools/list", "{}")
	request := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s0_echo","arguments":{"size":100}}}` + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := toGoblin.Write(request); err != nil {
			b.Fatal(err)
		}
		p.receive(b)
	}
	b.StopTimer()
	toGoblin.Close()
	check(b, <-served)
	cancel()
	check(b, <-running)
	for _, c := range []io.Closer{fromClient, fromGoblin, toClient} {
		c.Close()
	}
}
