package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// recordingTurn is longer than the turns of other measurements, because the recorder
// writes in rounds of 0.5 s. A turn without it must not pay for them.
const recordingTurn = 2 * time.Second

// recordings measures the cost of a recording with 64 calls in flight. The budget is a
// ratio, so a server of an SDK judges it.
func (l *load) recordings() error {
	sdk, err := l.progs.sdkPrograms()
	if err != nil {
		return err
	}
	for _, server := range []struct {
		programs
		name  string
		judge func(*report, measurement) string
	}{{sdk, "a server of an SDK", judgeRecording}, {l.progs, "the least server", judgeNothing}} {
		for _, size := range []int{100, 10_000} {
			if err := l.recording(server.programs, server.name, size, server.judge); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *load) recording(p programs, server string, size int, judge func(*report, measurement) string) error {
	var targets []*target
	for _, name := range []string{"without a recording", "with a recording"} {
		f, err := l.fixtureOf(p, 1, 0)
		if err != nil {
			return err
		}
		if len(targets) > 0 {
			if err := f.record(); err != nil {
				return err
			}
		}
		through, err := f.Through("stdio", "--standalone")
		if err != nil {
			return err
		}
		defer through.Close()
		targets = append(targets, &target{name: name, tool: "s0_echo", load: stream(through), pids: []int{through.PID}})
	}
	targets[0].judge, targets[1].judge = judgeNothing, judge
	pause := min(l.during(20*time.Second), time.Second) // shorter in tests only
	turn := max(l.during(recordingTurn), pause)
	for round := range 9 {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		for i := range targets {
			t := targets[(i+round)%len(targets)]
			if err := t.turn(64, size, turn); err != nil {
				return err
			}
			time.Sleep(pause) // for the rest of the recorder's work
			if round == 0 {
				t.reset()
			}
		}
	}
	l.callReport(targets, server, size, 64)
	return nil
}

// record adds a recording to the config.
func (s *setup) record() error {
	text, err := os.ReadFile(s.config)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("record: {dir: %q}\n", filepath.Join(filepath.Dir(s.config), "recordings"))
	return os.WriteFile(s.config, append(text, line...), 0o600)
}

func judgeRecording(r *report, m measurement) string {
	return least(r, "throughput", m.share, 90) + ", " + judgeNothing(r, m)
}

func judgeNothing(_ *report, m measurement) string { return "CPU per call " + duration(m.cpu) }
