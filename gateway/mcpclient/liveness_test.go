package mcpclient_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
)

// mute is a gateway that answers initialize only.
func mute(conn net.Conn) {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		m, err := jsonrpc.Parse(lines.Bytes())
		if err == nil && m.Method == "initialize" {
			_, _ = conn.Write(append(jsonrpc.ResultFrame(m.ID, []byte(`{}`)), '\n'))
		}
	}
}

// A slow request continues. A request to a hanging gateway fails.
func TestARequestEndsWhenItsGatewayHangs(t *testing.T) {
	t.Parallel()
	hangs := errors.New("it does not answer")
	for name, row := range map[string]struct {
		alive []error // results of successive checks; then nil
		ends  time.Duration
	}{
		"it lives":          {nil, 0},
		"it was busy twice": {[]error{hangs, hangs, nil, hangs, hangs}, 0},
		"it hangs":          {[]error{hangs, hangs, hangs}, 30 * time.Second},
		"it hangs later":    {[]error{nil, hangs, nil, hangs, hangs, hangs}, 60 * time.Second},
		"no check before":   {[]error{hangs, hangs, hangs}, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go mute(far)
				looks := 0
				c, err := mcpclient.Open(t.Context(), near, mcpclient.Options{Name: "a", Revision: "2025-11-25", CheckAlive: func(context.Context) error {
					if looks++; looks <= len(row.alive) {
						return row.alive[looks-1]
					}
					return nil
				}})
				require.NoError(t, err)
				if name == "no check before" {
					time.Sleep(time.Hour + 5*time.Second) // without requests
					require.Zero(t, looks)
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err = c.Request(ctx, "tools/call", nil, nil)
				if row.ends == 0 {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.ErrorIs(t, err, mcpclient.ErrLost)
					require.ErrorIs(t, err, hangs)
					require.Equal(t, row.ends, time.Since(began))
				}
				require.NoError(t, c.Close())
				require.NoError(t, far.Close())
			})
		})
	}
}
