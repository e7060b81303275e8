package main

import (
	"fmt"
	"time"

	"goblin/gateway/bench/internal/rig"
)

// figure is a row of a comparison.
type figure struct {
	name string
	show func(float64) string
	// mean is true for what the system counts too coarsely for one turn: the mean of all
	// turns counts, in place of medians.
	mean bool
}

func ofTime(name string) figure {
	return figure{name: name, show: func(ns float64) string { return duration(time.Duration(ns)) }}
}

func ofProcessor(name string) figure {
	f := ofTime(name)
	f.mean = true
	return f
}

func ofMemory(name string) figure {
	return figure{name: name, show: func(kib float64) string { return fmt.Sprintf("%.1f MiB", kib/1024) }}
}

// against compares this binary with another one.
func (l *load) against(other, only string) error {
	sides := [2]rig.Programs{l.progs, l.progs}
	sides[0].Goblin = other
	for _, p := range []struct {
		name string
		run  func([2]rig.Programs) error
	}{
		{"calls", l.callsAgainst},
		{"catalogs", l.catalogsAgainst},
		{"start", l.startsAgainst},
		{"updates", l.updatesAgainst},
	} {
		if !wanted(only, p.name) {
			continue
		}
		if err := p.run(sides); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// pair gives both sides turns for a time, in an order that changes, and reports each
// figure's medians and the median of the ratios of neighbouring turns.
func (l *load) pair(title string, figures []figure, d time.Duration, turn func(side int) ([]float64, error)) error {
	values := make([][2][]float64, len(figures))
	end := time.Now().Add(l.during(d))
	for round := 0; round < 3 || time.Now().Before(end); round++ {
		for i := range 2 {
			side := (i + round) % 2
			all, err := turn(side)
			if err != nil {
				return err
			}
			for f, v := range all {
				values[f][side] = append(values[f][side], v)
			}
		}
	}
	l.out.section(title, "", "other", "this", "ratio")
	for i, f := range figures {
		other, this := values[i][0], values[i][1]
		middle, ratio := median[float64], 0.0
		if f.mean {
			middle = mean
			ratio = mean(this) / mean(other) // not a number where nothing counts it
		} else {
			ratios := make([]float64, len(this))
			for i := range ratios {
				ratios[i] = this[i] / other[i]
			}
			ratio = median(ratios)
		}
		l.out.row(f.name, f.show(middle(other)), f.show(middle(this)), fmt.Sprintf("%.2f", ratio))
	}
	return nil
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}

// callsAgainst compares tools/call of three sizes, one, 16 and 64 at a time, by all
// ways into Goblin, with the server that costs as little as one can.
func (l *load) callsAgainst(sides [2]rig.Programs) error {
	var ways [2][]*target
	for i, programs := range sides {
		targets, end, err := l.ways(programs)
		if err != nil {
			return err
		}
		defer end()
		ways[i] = targets
	}
	var figures []figure
	for _, t := range ways[0] {
		figures = append(figures, ofTime(t.name), ofProcessor("  processor time"))
	}
	for _, size := range []int{100, 10_000, 1_000_000} {
		for _, window := range []int{1, 16, 64} {
			turn := func(side int) ([]float64, error) {
				var all []float64
				for _, t := range ways[side] {
					t.reset()
					if err := t.turn(window, size, min(100*time.Millisecond, l.during(time.Second))); err != nil {
						return nil, err
					}
					all = append(all, float64(median(t.latency)), float64(t.cpu)/float64(len(t.latency)))
				}
				return all, l.ctx.Err()
			}
			for side := range sides { // to warm up
				if _, err := turn(side); err != nil {
					return err
				}
			}
			title := fmt.Sprintf("tools/call, result of %s, %d in flight", bytesText(size), window)
			if err := l.pair(title, figures, 20*time.Second, turn); err != nil {
				return err
			}
		}
	}
	return nil
}

// ways are all ways into a Goblin with one backend, beside each other.
func (l *load) ways(programs rig.Programs) (targets []*target, end func(), err error) {
	f, err := l.fixtureOf(programs, 1, 1)
	if err != nil {
		return nil, nil, err
	}
	hosted, endHosted, err := l.hosted(programs)
	if err != nil {
		return nil, nil, err
	}
	alone, err := f.Through("stdio", "--standalone")
	if err != nil {
		endHosted()
		return nil, nil, err
	}
	first := &target{name: "stdio --standalone", tool: "s0_echo", load: stream(alone), pids: []int{alone.PID}}
	return append([]*target{first}, hosted...), func() { alone.Close(); endHosted() }, nil
}

// catalogsAgainst compares lists of 100,000 resources, and the memory after them.
func (l *load) catalogsAgainst(sides [2]rig.Programs) error {
	const resources = 100_000
	var peers [2]*rig.Peer
	for i, programs := range sides {
		f, err := l.fixtureOf(programs, 1, resources)
		if err != nil {
			return err
		}
		if peers[i], err = f.Through("stdio", "--standalone"); err != nil {
			return err
		}
		defer peers[i].Close()
	}
	title := fmt.Sprintf("resources/list of %d in pages of 1,000", resources)
	figures := []figure{ofTime("first page"), ofTime("all pages"), ofMemory("memory")}
	return l.pair(title, figures, 20*time.Second, func(side int) ([]float64, error) {
		count, first, all, err := pages(peers[side])
		if err == nil && count < resources {
			err = fmt.Errorf("%d of %d resources are listed", count, resources)
		}
		return []float64{float64(first), float64(all), float64(rig.Own(peers[side].PID))}, err
	})
}

// startsAgainst compares the time from the start until all is listed.
func (l *load) startsAgainst(sides [2]rig.Programs) error {
	for _, servers := range []int{1, 20} {
		var fixtures [2]*rig.Fixture
		for i, programs := range sides {
			var err error
			if fixtures[i], err = l.fixtureOf(programs, servers, 1); err != nil {
				return err
			}
		}
		title := fmt.Sprintf("from start to ready, %d servers", servers)
		figures := []figure{ofTime("initialize"), ofTime("all listed"), ofMemory("memory"), ofMemory("  without its file")}
		err := l.pair(title, figures, 20*time.Second, func(side int) ([]float64, error) {
			answered, ready, resident, own, err := begin(fixtures[side])
			return []float64{float64(answered), float64(ready), float64(resident), float64(own)}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updatesAgainst compares the way of one update to 50 sessions.
func (l *load) updatesAgainst(sides [2]rig.Programs) error {
	var crowds [2]*crowd
	for i, programs := range sides {
		f, err := l.fixtureOf(programs, 1, 1)
		if err != nil {
			return err
		}
		if crowds[i], err = l.crowd(f); err != nil {
			return err
		}
		defer crowds[i].end()
	}
	title := fmt.Sprintf("one update to %d subscribers", subscribers)
	return l.pair(title, []figure{ofTime("until the last has it")}, 20*time.Second, func(side int) ([]float64, error) {
		took, err := crowds[side].update()
		return []float64{float64(took)}, err
	})
}
