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
