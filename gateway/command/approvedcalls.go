package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/termtext"
)

// callFlags are the flags of approve for calls that rules stop.
type callFlags struct {
	calls, all bool
	revoke     []string
}

func (f *callFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.calls, "calls", false, "list the remembered approvals of calls that rules stop")
	cmd.Flags().StringArrayVar(&f.revoke, "revoke", nil, "with --calls: revoke the approval with this `ID`; repeatable")
	cmd.Flags().BoolVar(&f.all, "revoke-all", false, "with --calls: revoke all approvals")
}

func (f *callFlags) check(cmd *cobra.Command, args []string) error {
	switch revokes := len(f.revoke) > 0 || f.all; {
	case !f.calls && revokes:
		return cli.Usage(cmd, "--revoke and --revoke-all need --calls")
	case f.calls && len(args) > 0:
		return cli.Usage(cmd, "--calls takes no servers or tools")
	case f.all && len(f.revoke) > 0:
		return cli.Usage(cmd, "--revoke and --revoke-all exclude each other")
	}
	return nil
}

// callApprovals is the part of a daemon, or of a config's file, that has the approvals.
type callApprovals interface {
	CallApprovals(ctx context.Context) ([]registry.CallApproval, error)
	RevokeCallApproval(ctx context.Context, id string) error
}

// approvalFile has the approvals of a config without a running daemon.
type approvalFile struct{ *state.CallApprovalStore }

func (f approvalFile) CallApprovals(context.Context) ([]registry.CallApproval, error) {
	return f.All(), nil
}

func (f approvalFile) RevokeCallApproval(_ context.Context, id string) error {
	_, err := f.Remove(id)
	return err
}

// openCallApprovals needs no server, so it starts none.
func (a *App) openCallApprovals(ctx context.Context) (callApprovals, error) {
	r, err := a.findDaemon(ctx)
	if err == nil {
		return r.Remote, nil
	}
	if !errors.Is(err, daemon.ErrNotRunning) {
		return nil, r.explain(err)
	}
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	store, err := state.OpenCallApprovals(a.CallApprovalsPath(cfg))
	return approvalFile{store}, err
}

func (a *App) showOrRevokeCalls(ctx context.Context, f *callFlags) error {
	from, err := a.openCallApprovals(ctx)
	if err != nil {
		return err
	}
	all, err := from.CallApprovals(ctx)
	if err != nil {
		return err
	}
	if !f.all && len(f.revoke) == 0 {
		return a.print(append([]registry.CallApproval{}, all...), func() error { return a.printCalls(all) })
	}
	ids := f.revoke
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(c registry.CallApproval) bool { return c.ID == id }) {
			return cli.Fail(cli.CodeNotFound, "no remembered approval %q; nothing was revoked. To list them: %s", id, a.CommandLine("approve --calls"))
		}
	}
	if f.all {
		ids = each(all, func(c *registry.CallApproval) string { return c.ID })
	}
	revoked := []string{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if err := from.RevokeCallApproval(ctx, id); err != nil {
			return fmt.Errorf("revoke %s: %w", id, err)
		}
		revoked = append(revoked, id)
	}
	return a.printResult(map[string]any{"revoked": revoked}, fmt.Sprintf("Revoked %s.\n", termtext.Count(len(revoked), "approval")))
}

func (a *App) printCalls(all []registry.CallApproval) error {
	if len(all) == 0 {
		return a.printText("No approvals of calls are remembered.")
	}
	t := table{header: []string{"ID", "CLIENT", "SERVER", "KIND", "NAME", "VALID", "SINCE", "RULE"}}
	for i := range all {
		c := &all[i]
		valid := "always"
		switch {
		case c.Session != "":
			valid = "until the session ends"
		case c.Definition != "":
			valid = "until the definition changes"
		}
		t.add(c.ID, cmp.Or(c.Client, "(unnamed)"), c.Server, c.Kind, c.Name, valid, termtext.Age(time.Since(c.Since))+" ago", c.When)
	}
	return a.printTable(&t)
}
