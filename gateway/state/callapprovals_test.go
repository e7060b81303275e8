package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func approval(name string) registry.CallApproval {
	return registry.CallApproval{When: "name:<x> \"y\"", Client: "codex", Server: "s", Kind: "tool", Name: name}
}

func TestCallApprovalsAreSharedByProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals", "a.json")
	one, err := OpenCallApprovals(path)
	require.NoError(t, err)
	two, err := OpenCallApprovals(path)
	require.NoError(t, err)
	require.NoError(t, one.Add(approval("a")))
	require.NoError(t, two.Add(approval("b")))
	require.NoError(t, two.Add(approval("b")), "already there")
	require.NoError(t, one.Refresh())
	require.Equal(t, two.All(), one.All())
	require.Len(t, one.All(), 2)
	require.Equal(t, approval("a").When, one.All()[0].When)
	found, err := one.Remove(one.All()[0].ID)
	require.NoError(t, err)
	require.True(t, found)
	found, err = two.Remove(CallApprovalID(&registry.CallApproval{}))
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, "b", two.All()[0].Name)
	require.NoError(t, os.Remove(path))
	require.NoError(t, two.Refresh())
	require.Empty(t, two.All(), "the user removed all")
}

func TestDamagedCallApprovalsApproveNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"cut": `{"version":1,"approvals":[{"client":"c"`, "version": `{"version":2,"approvals":[]}`, "empty": ``, "list": `{"version":1}`,
		"member": `{"version":1,"approvals":[{"when":"w","client":"c","server":"s","kind":"tool"}]}`,
		"client": `{"version":1,"approvals":[{"when":"w","client":"","server":"s","kind":"tool","name":"n"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.json")
			s, err := OpenCallApprovals(path)
			require.NoError(t, err)
			require.NoError(t, s.Add(approval("a")))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.ErrorContains(t, s.Refresh(), path+": ")
			require.ErrorContains(t, s.Refresh(), "until then no approval applies")
			require.Empty(t, s.All())
			require.Error(t, s.Add(approval("b")))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(after), "it is kept for the user")
		})
	}
}

func TestCallApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	s, err := OpenCallApprovals("")
	require.NoError(t, err)
	for i := range MaxCallApprovals {
		require.NoError(t, s.Add(approval(fmt.Sprint(i))))
	}
	require.ErrorContains(t, s.Add(approval("more")), "revoke one first")
	require.ErrorContains(t, s.Add(approval(string(make([]byte, maxName)))), "bytes")
}
