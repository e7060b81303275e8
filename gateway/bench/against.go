package main

import (
	"fmt"
	"slices"
	"time"
)

type figure struct {
	name string
	show func(float64) string
	// mean is set for values that the system counts too coarsely for one turn. The mean
	// of all turns then replaces medians.
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

func (l *load) against(other, only string) error {
	sides := [2]programs{l.progs, l.progs}
	sides[0].goblin = other
	for _, p := range []struct {
		name string
		run  func([2]programs) error
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

// contender starts one side. turn returns the figures of one turn, end stops the
// processes.
type contender func(programs) (turn func() ([]float64, error), end func(), err error)

// turns holds both sides' values for each figure, in order of turns.
type turns [][2][]float64

// pair compares both sides for 20 s in several lives.
func (l *load) pair(title string, figures []figure, sides [2]programs, start contender) error {
	all := make([]turns, l.lives)
	for i := range all {
		var err error
		if all[i], err = l.live(i, len(figures), sides, start); err != nil {
			return err
		}
	}
	l.out.section(title, "", "other", "this", "ratio", "least", "most")
	for i, f := range figures {
		l.out.row(f.compared(i, all)...)
	}
	return nil
}

// live runs life n: both sides start, warm up and take turns. The side that starts
// alternates.
func (l *load) live(n, figures int, sides [2]programs, start contender) (turns, error) {
	var turn [2]func() ([]float64, error)
	values := make(turns, figures)
	for i := range 2 {
		side := (i + n) % 2
		t, end, err := start(sides[side])
		if err != nil {
			return nil, err
		}
		defer end()
		if _, err := t(); err != nil {
			return nil, err
		}
		turn[side] = t
	}
	over := time.Now().Add(l.during(20 * time.Second / time.Duration(l.lives)))
	for round := n; round < n+1 || time.Now().Before(over); round++ {
		for i := range 2 {
			side := (i + round) % 2
			all, err := turn[side]()
			if err == nil {
				err = l.ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			for f, v := range all {
				values[f][side] = append(values[f][side], v)
			}
		}
	}
	return values, nil
}

// compared returns each side's median, the median of the lives' ratios, and their minimum
// and maximum.
func (f figure) compared(i int, all []turns) []string {
	var sides [2][]float64
	var ratios []float64
	for _, values := range all {
		other, this := values[i][0], values[i][1]
		sides[0], sides[1] = append(sides[0], other...), append(sides[1], this...)
		ratios = append(ratios, f.ratio(other, this))
	}
	row := []string{f.name, f.show(f.middle(sides[0])), f.show(f.middle(sides[1]))}
	for _, r := range []float64{median(ratios), slices.Min(ratios), slices.Max(ratios)} {
		row = append(row, fmt.Sprintf("%.2f", r))
	}
	return row
}

// ratio returns the median of the ratios of neighboring turns, or the ratio of the means.
func (f figure) ratio(other, this []float64) float64 {
	if f.mean {
		return mean(this) / mean(other) // NaN where the system doesn't count it
	}
	ratios := make([]float64, len(this))
	for i := range ratios {
		ratios[i] = this[i] / other[i]
	}
	return median(ratios)
}

func (f figure) middle(all []float64) float64 {
	if f.mean {
		return mean(all)
	}
	return median(all)
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}

// callsAgainst compares tools/call of three sizes, with 1, 16 and 64 in flight, through
// all transports. The server is the cheapest possible one.
func (l *load) callsAgainst(sides [2]programs) error {
	var figures []figure
	for _, way := range waysIn {
		figures = append(figures, ofTime(way), ofProcessor("  processor time"))
	}
	for _, size := range []int{100, 10_000, 1_000_000} {
		for _, window := range []int{1, 16, 64} {
			title := fmt.Sprintf("tools/call, result of %s, %d in flight", bytesText(size), window)
			err := l.pair(title, figures, sides, func(programs programs) (func() ([]float64, error), func(), error) {
				targets, end, err := l.ways(programs)
				return func() ([]float64, error) { return l.callsOf(targets, size, window) }, end, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *load) callsOf(ways []*target, size, window int) (all []float64, err error) {
	for _, t := range ways {
		t.reset()
		if err := t.turn(window, size, min(100*time.Millisecond, l.during(time.Second))); err != nil {
			return nil, err
		}
		all = append(all, float64(median(t.latency)), float64(t.cpu)/float64(len(t.latency)))
	}
	return all, nil
}

var waysIn = [3]string{"stdio --standalone", "stdio (bridge to a daemon)", "Streamable HTTP"}

func (l *load) ways(programs programs) (targets []*target, end func(), err error) {
	f, err := l.fixtureOf(programs, 1, 1)
	if err != nil {
		return nil, nil, err
	}
	shared, endShared, err := l.daemonTargets(programs)
	if err != nil {
		return nil, nil, err
	}
	alone, err := f.Through("stdio", "--standalone")
	if err != nil {
		endShared()
		return nil, nil, err
	}
	first := &target{name: waysIn[0], tool: "s0_echo", load: stream(alone), pids: []int{alone.PID}}
	return append([]*target{first}, shared...), func() { alone.Close(); endShared() }, nil
}

func (l *load) catalogsAgainst(sides [2]programs) error {
	const resources = 100_000
	title := fmt.Sprintf("resources/list of %d in pages of 1,000", resources)
	figures := []figure{ofTime("first page"), ofTime("all pages"), ofMemory("memory")}
	return l.pair(title, figures, sides, func(programs programs) (func() ([]float64, error), func(), error) {
		f, err := l.fixtureOf(programs, 1, resources)
		if err != nil {
			return nil, nil, err
		}
		peer, err := f.Through("stdio", "--standalone")
		if err != nil {
			return nil, nil, err
		}
		return func() ([]float64, error) {
			count, first, all, err := pages(peer)
			if err == nil && count < resources {
				err = fmt.Errorf("%d of %d resources are listed", count, resources)
			}
			return []float64{float64(first), float64(all), float64(ownMemory(peer.PID))}, err
		}, peer.Close, nil
	})
}

func (l *load) startsAgainst(sides [2]programs) error {
	for _, servers := range []int{1, 20} {
		title := fmt.Sprintf("from start to ready, %d servers", servers)
		figures := []figure{ofTime("initialize"), ofTime("all listed"), ofMemory("memory"), ofMemory("  without its file")}
		err := l.pair(title, figures, sides, func(programs programs) (func() ([]float64, error), func(), error) {
			f, err := l.fixtureOf(programs, servers, 1)
			return func() ([]float64, error) {
				answered, ready, resident, own, err := begin(f)
				return []float64{float64(answered), float64(ready), float64(resident), float64(own)}, err
			}, func() {}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *load) updatesAgainst(sides [2]programs) error {
	title := fmt.Sprintf("one update to %d subscribers", subscribers)
	figures := []figure{ofTime("until the last has it")}
	return l.pair(title, figures, sides, func(programs programs) (func() ([]float64, error), func(), error) {
		f, err := l.fixtureOf(programs, 1, 1)
		if err != nil {
			return nil, nil, err
		}
		c, err := l.crowd(f)
		if err != nil {
			return nil, nil, err
		}
		return func() ([]float64, error) {
			took, err := c.update()
			return []float64{float64(took)}, err
		}, c.end, nil
	})
}
