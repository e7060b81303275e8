package downstream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	account "goblin/gateway/memory"
)

// A body may have to be given up just when the last of it has come.
func TestABodyIsServedOrRefused(t *testing.T) {
	const size = 12 << 20
	a := account.New(size * 3 / 2)
	defer a.Close()
	h := newScript()
	h.handle = func(x *downstream.Exchange) { x.Reply([]byte(`{"served":true}`)) }
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h, Memory: a}})
	id := c.open()
	large := `{"x":"` + strings.Repeat("x", size) + `"}`
	for range 20 {
		res := c.do("POST", id, request("1", "any", large))
		text := body(t, res)
		if res.StatusCode == 503 {
			require.Contains(t, text, `"code":-32603`)
			continue
		}
		require.Equal(t, 200, res.StatusCode)
		require.Contains(t, text, `{"served":true}`)
	}
}
