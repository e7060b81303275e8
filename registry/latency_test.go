package registry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestLatencyIsTheMedianOfTheLastAnswers(t *testing.T) {
	r := registry.New(registry.Options{Servers: []string{"a", "b"}})
	latency := func(server string) time.Duration {
		s, ok := r.State(server)
		require.True(t, ok)
		return s.Latency
	}
	require.Zero(t, latency("a"))
	r.RecordLatency("a", time.Hour) // the program was downloaded first
	require.Equal(t, time.Hour, latency("a"))
	for range 4 {
		r.Traffic().Append(registry.TrafficRecord{Server: "a", Duration: time.Millisecond, Status: "success"})
	}
	require.Equal(t, time.Millisecond, latency("a"))
	for range 40 {
		r.Traffic().Append(registry.TrafficRecord{Server: "a", Duration: time.Minute, Status: "failure"})
		r.Traffic().Append(registry.TrafficRecord{Server: "a", Status: registry.StatusNotification})
		r.Traffic().Append(registry.TrafficRecord{Server: "a", Duration: time.Minute, Status: "success", Direction: registry.ToClient})
		r.Traffic().Append(registry.TrafficRecord{Server: "a", Duration: time.Minute, Status: "success", UserAsked: true})
	}
	require.Equal(t, time.Millisecond, latency("a"), "only answers of the server count")
	for range 40 {
		r.RecordLatency("a", 2*time.Millisecond)
	}
	require.Equal(t, 2*time.Millisecond, latency("a"), "the last 32 count")
	require.Zero(t, latency("b"))
	r.RecordLatency("nobody", time.Second)
	r.SetServers(nil, nil)
	r.SetServers([]string{"a"}, nil)
	require.Zero(t, latency("a"))
}

func TestOnlyTheServersOwnTimeCounts(t *testing.T) {
	answered := registry.TrafficRecord{Duration: time.Second, Status: "success"}
	for what, c := range map[string]struct {
		change func(*registry.TrafficRecord)
		took   time.Duration // 0: not measured
	}{
		"answer":       {func(*registry.TrafficRecord) {}, time.Second},
		"tool error":   {func(r *registry.TrafficRecord) { r.Status = registry.StatusToolError }, time.Second},
		"server start": {func(r *registry.TrafficRecord) { r.StartWait = 900 * time.Millisecond }, 100 * time.Millisecond},
		"failure":      {func(r *registry.TrafficRecord) { r.Status = "failure" }, 0},
		"cancelled":    {func(r *registry.TrafficRecord) { r.Status = registry.StatusCancelled }, 0},
		"client left":  {func(r *registry.TrafficRecord) { r.Status = registry.StatusLeft }, 0},
		"notification": {func(r *registry.TrafficRecord) { r.Status = registry.StatusNotification }, 0},
		"of a server":  {func(r *registry.TrafficRecord) { r.Direction = registry.ToClient }, 0},
		"asked":        {func(r *registry.TrafficRecord) { r.UserAsked = true }, 0},
		"waited":       {func(r *registry.TrafficRecord) { r.UserWait = time.Millisecond }, 0},
		"rule":         {func(r *registry.TrafficRecord) { r.Events = []registry.RuleEvent{{Text: "delayed 1 s"}} }, 0},
	} {
		rec := answered
		c.change(&rec)
		took, measured := rec.ServerTime()
		require.Equal(t, c.took, took, what)
		require.Equal(t, c.took > 0, measured, what)
	}
}
