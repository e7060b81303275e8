package main

import (
	"fmt"
	"sync"
	"time"
)

// memoryStep is one situation in which anonymous memory is measured.
type memoryStep struct {
	name      string
	resources int  // of the server
	budget    int  // maximum in MiB, or 0
	after     bool // the budget is for the memory after it
	run       func(*client) error
}

// memory measures RssAnon while and after clients call and list, and RssFile apart. The
// maximum is sampled every 2 ms.
func (l *load) memory() error {
	steps := []memoryStep{
		{"idle, lists read", 1, 0, false, func(*client) error { return nil }},
		{"1 MiB answers, one at a time", 1, 20, true, func(c *client) error { return l.callsOfSize(c, 1<<20-256, 1) }},
		{"1 KiB results, 64 in flight", 1, 25, false, func(c *client) error { return l.callsOfSize(c, 1<<10, 64) }},
		{"100,000 resources listed", 100_000, 110, false, func(c *client) error {
			_, _, _, err := pages(c)
			return err
		}},
	}
	l.out.section("memory of goblin stdio --standalone, in MiB", "", "most anon", "anon after", "after 4 s", "file", "budget")
	for _, s := range steps {
		if err := l.memoryOf(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (l *load) memoryOf(s memoryStep) error {
	f, err := l.newFixture(1, s.resources)
	if err != nil {
		return err
	}
	c, err := f.Through("stdio", "--standalone")
	if err != nil {
		return err
	}
	defer c.Close()
	highest := highestOf(c.PID)
	err = s.run(c)
	maximum, after := highest(), ownMemory(c.PID)
	if err != nil {
		return err
	}
	time.Sleep(l.during(4 * time.Second))
	verdict := ""
	judged := maximum
	if s.after {
		judged = after
	}
	if s.budget > 0 && judged > 0 {
		verdict = most(&l.out, "MiB", float64(judged)/1024, float64(s.budget))
	}
	mib := func(kib int) string { return fmt.Sprintf("%.1f", float64(kib)/1024) }
	l.out.row(s.name, mib(maximum), mib(after), mib(ownMemory(c.PID)), mib(status(processDir(c.PID), "RssFile:")), verdict)
	return nil
}

// callsOfSize calls for three seconds.
func (l *load) callsOfSize(c *client, size, window int) error {
	t := &target{name: "memory", tool: "s0_echo", load: stream(c)}
	return t.turn(window, size, l.during(3*time.Second))
}

// highestOf samples anonymous memory until the returned function is called, which returns
// the maximum in KiB.
func highestOf(pid int) func() int {
	var sampler sync.WaitGroup
	stop, highest := make(chan struct{}), 0
	sampler.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			highest = max(highest, ownMemory(pid))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return func() int {
		close(stop)
		sampler.Wait()
		return highest
	}
}
