//go:build !unix

package remoteui

import (
	"context"
	"os/exec"
)

const defaultEditor = "notepad"

func (c *console) run(ctx context.Context, command, file string) error {
	cmd := exec.Command("cmd", "/c", command, file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.out
	if err := cmd.Start(); err != nil {
		return err
	}
	end := func() { _ = cmd.Process.Kill() }
	defer endWith(ctx, end, end)()
	return cmd.Wait()
}
