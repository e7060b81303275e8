package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/instance"
)

// profileEnv makes a process a gateway that writes profiles into the folder
// that it names. Goblin itself carries nothing for that.
const profileEnv = "GOBLIN_LOAD_PROFILE"

// gatewayProfiled serves on the standard streams and reports true when this
// process was started as that gateway.
func gatewayProfiled() bool {
	dir := os.Getenv(profileEnv)
	if dir == "" {
		return false
	}
	if err := gateway(dir); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	return true
}

func gateway(dir string) error {
	cfg, err := config.Load(os.Getenv("GOBLIN_CONFIG"))
	if err != nil {
		return err
	}
	i, err := instance.New(instance.Options{Config: cfg, Version: "load", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	running := make(chan error, 1)
	go func() { running <- i.Run(ctx) }()
	in, restoreIn := cli.Unblock(os.Stdin)
	defer restoreIn()
	out, restoreOut := cli.Unblock(os.Stdout)
	defer restoreOut()
	err = i.ServeStdio(ctx, in, out)
	pprof.StopCPUProfile()
	heap, fault := os.Create(filepath.Join(dir, "heap.pprof"))
	if fault == nil {
		fault = errors.Join(pprof.Lookup("allocs").WriteTo(heap, 0), heap.Close())
	}
	stop()
	return errors.Join(err, fault, <-running, cpu.Close())
}

// profiled puts load on such a gateway.
func (l *load) profiled(window, size int) error {
	dir, err := filepath.Abs(l.profile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if l.progs.Goblin, err = os.Executable(); err != nil {
		return err
	}
	f, err := l.newFixture(1, 1)
	if err != nil {
		return err
	}
	f.Env = append(f.Env, profileEnv+"="+dir)
	p, err := f.Through()
	if err != nil {
		return err
	}
	defer p.Close()
	t := &target{name: "gateway", tool: "s0_echo", load: stream(p)}
	if err := t.turn(min(max(window, 1), 64), size, l.during(20*time.Second)); err != nil {
		return err
	}
	l.out.line(fmt.Sprintf("%.0f calls/s; look at it with: go tool pprof -top %s", median(t.rate), filepath.Join(dir, "cpu.pprof")))
	return nil
}
