package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/registry"
)

func TestTheLineOfARequestHasNoQuery(t *testing.T) {
	t.Parallel()
	for target, path := range map[string]string{"/mcp?key=secret": "/mcp", "/a%2Fb?secret": "/a%2Fb", "/?secret": "/"} {
		text := string(describeRequestLine(nil, registry.FromClient, httptest.NewRequest(http.MethodPost, target, nil)))
		require.Contains(t, text, path)
		require.NotContains(t, text, "secret")
	}
}

func TestANoticeToManyIsOneRecord(t *testing.T) {
	t.Parallel()
	mask := config.NewMask(&config.Config{})
	mask.AddSecrets("hidden-secret-1234")
	for n, records := range map[int]int{0: 0, 1: 1, maxRecipientRecords: maxRecipientRecords, maxRecipientRecords + 1: 1} {
		j := &Journal{Registry: registry.New(registry.Options{}), Mask: mask}
		to := make([]Receiver, n)
		for i := range to {
			to[i] = Receiver{new(downstream.Session), fmt.Sprint("x:hidden-secret-1234/", i)}
		}
		j.RecordBroadcast("s", "notifications/resources/updated", "x:hidden-secret-1234", []byte(`{"uri":"x:hidden-secret-1234"}`), to)
		all := j.Registry.Traffic().Window(0, -1)
		require.Len(t, all, records)
		for _, rec := range all {
			whole, _ := j.Registry.Traffic().Record(rec.Seq)
			require.NotContains(t, rec.Name+string(whole.Request), "secret")
			require.Equal(t, n > maxRecipientRecords, rec.Receivers == n)
		}
	}
}
