package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/registry"
)

// ended is a closed connection to a server.
type ended struct{ upstream.Conn }

func (*ended) Unit() string        { return "" }
func (*ended) Info() upstream.Info { return upstream.Info{} }

func (*ended) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func TestAConnectionThatEndsWhileItIsGivenRootsIsForgotten(t *testing.T) {
	t.Parallel()
	g := New(Options{Options: servers.Options{
		Config: &config.Config{Demo: true}, Registry: registry.New(registry.Options{}), Metrics: telemetry.NewMetrics(),
		Logger: slog.New(slog.DiscardHandler), Version: "test",
	}})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- downstream.ServeStream(t.Context(), downstream.Options{Handler: g, Order: OrderKey}, "stdio", inR, outW)
		outW.Close()
	}()
	answers := bufio.NewScanner(outR)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
	} {
		fmt.Fprintln(inW, line)
		require.True(t, answers.Scan())
	}

	server := upstream.NewServer(config.Server{Name: "s", Roots: config.ClientRoots}, upstream.Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ask := func() weak.Pointer[ended] {
		conn := &ended{}
		serverHandler{g}.ConnClosed(server, conn)
		_, fault := serverHandler{g}.HandleRequest(over, server, conn, nil, "roots/list", nil) // was in flight
		require.Nil(t, fault)
		return weak.Make(conn)
	}
	left := ask()
	for range 100 { // a collection may miss recent stack values
		if left.Value() == nil {
			break
		}
		runtime.GC()
	}
	require.Nil(t, left.Value())

	inW.Close()
	go func() { _, _ = io.Copy(io.Discard, outR) }()
	<-served
}
