//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Some clients fetch all pages of a list again for each notification.
func TestChangesOfListsAreToldASecondApart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	var servers []*e2e.Backend
	for _, i := range e2e.Variants(3, 0, 1, 2, 3, 4, 5, 6, 7) { // Goblin fetches each one's list less and less often
		servers = append(servers, w.Backend(fmt.Sprintf("s%d", i), e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}}}))
	}
	c := w.Standalone()
	last := servers[len(servers)-1].Name
	c.WaitListed("tools", last+"_t", true)
	c.Settle()
	began := time.Now()
	for i, s := range servers {
		s.Add("tools", e2e.Tool("new"))
		s.ListChanged("tools")
		c.WaitListed("tools", fmt.Sprintf("s%d_new", i), true)
	}
	told := len(c.NotesOf("notifications/tools/list_changed"))
	require.LessOrEqual(t, told, 2+int(time.Since(began)/time.Second))
	require.Contains(t, c.Names("tools"), last+"_new")
}
