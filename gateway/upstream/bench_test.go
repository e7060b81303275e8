package upstream

import (
	"context"
	"testing"

	"goblin/registry"
)

// BenchmarkCall measures a small call to a child, one at a time and many at once.
func BenchmarkCall(b *testing.B) {
	cfg, _ := fakeConfig(b, "")
	cfg.Args = []string{"-fast", "0"}
	s := NewServer(cfg, Options{
		Handler: &handler{}, Registry: registry.New(registry.Options{Servers: []string{cfg.Name}}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	conn, err := s.Await(ctx)
	if err != nil {
		b.Fatal(err)
	}
	params := toolParams("echo", `,"arguments":{"size":60}`)
	call := func() {
		if _, err := conn.Call(&Call{Context: ctx, Method: "tools/call", Params: params}); err != nil {
			b.Error(err)
		}
	}
	b.Run("sequential", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call()
			}
		})
	})
}
