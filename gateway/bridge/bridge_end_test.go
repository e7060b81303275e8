package bridge_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/bridge"
)

func TestBridgeEndsWhenTheFirstDaemonCannotBeReached(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bridge.Options) {
		o.Connect = func(context.Context) (net.Conn, error) { return nil, errors.New("no luck") }
	})
	require.ErrorContains(t, r.end(), "no luck")
}

func TestBridgeEndsThoughTheDaemonNeverAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bridge.Options) { o.Hasten(20*time.Millisecond, time.Second) })
	h := r.open()
	r.send(request("1", "tools/call", `{}`))
	h.expect(request("1", "tools/call", `{}`))
	r.in.Close()
	require.Contains(t, r.read(), `"id":1,"result":{"content":[{"type":"text","text":"the connection to Goblin ended before tools/call was answered`)
	require.NoError(t, r.end())
}

func TestBridgeThatIsEndingAnswersWhatComesLate(t *testing.T) {
	t.Parallel()
	// Such an input cannot be interrupted, so frames keep coming.
	r := newRig(t, func(o *bridge.Options) { o.In = struct{ io.Reader }{o.In} })
	h := r.open()
	r.send(request("1", "tools/call", `{}`))
	h.expect(request("1", "tools/call", `{}`))
	r.cancel()
	_, err := h.r.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the daemon is notified of the end")
	r.send(request("2", "tools/list", `{}`), initNote)
	r.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the connection to Goblin is closing; tools/list did not run, so it is safe to retry","data":{"code":"CONNECTION_ERROR","server":"goblin"}}}`)
	h.send(result("1", "{}"))
	r.expect(result("1", "{}"))
	require.NoError(t, h.c.Close())
	require.NoError(t, r.end())
}

func TestBridgeEndsThoughTheClientNeverReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bridge.Options) { o.Hasten(50*time.Millisecond, time.Second) })
	h := r.open()
	big := result("1", `"`+strings.Repeat("x", 1<<20)+`"`)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range 64 { // far more than pipes and queues hold
			if _, err := io.WriteString(h.c, big+"\n"); err != nil {
				return
			}
		}
	}()
	r.in.Close()
	require.NoError(t, r.end())
	<-sent
}

func TestBridgeEndsWhenTheClientTakesNoOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	require.NoError(t, r.outFile.Close())
	h.send(result("1", "{}"))
	require.ErrorContains(t, r.end(), "write to the client")
}
