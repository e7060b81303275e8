package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/doctor"
	"goblin/registry/report"
)

func addServerEdit(s configedit.Server) func(*configedit.File) error {
	return func(f *configedit.File) error {
		if !config.ValidName(s.Name) {
			return fmt.Errorf("%q is not a valid server name", s.Name)
		}
		return f.Add(s)
	}
}

// tryServer starts a server once, as it would be added, and returns the first problem, or
// "". A required login and definitions that some clients refuse are not problems. It
// blocks like [Stack.Diagnose].
func (i *Stack) tryServer(ctx context.Context, added configedit.Server) (lacks string, err error) {
	f, err := i.editedFile(addServerEdit(added))
	if err != nil {
		return "", err
	}
	cfg, err := config.Parse(f.Path(), f.Text(), os.LookupEnv)
	if err != nil {
		return "", err
	}
	return i.try(ctx, cfg, added.Name), nil
}

// try starts a server of an unsaved config once and returns its first problem, or "".
func (i *Stack) try(ctx context.Context, cfg *config.Config, server string) (lacks string) {
	i.o.Mask.Add(cfg)
	s, ok := cfg.Server(server)
	if !ok {
		return ""
	}
	for _, c := range i.diagnose(ctx, cfg, s).Checks {
		if c.State == report.Broken && c.Name != "login" && c.Name != "schemas" && c.Name != "limits" {
			if strings.HasPrefix(c.Fix, doctor.ByHand) { // a long command, which may contain short secrets
				return c.Text
			}
			return c.Text + "; " + c.Fix
		}
	}
	return ""
}

// RemoveServer removes a server from the config file.
func (i *Stack) RemoveServer(server string) error {
	return i.edit(func(f *configedit.File) error { return f.Remove(server) })
}

// SetDisabled disables or enables a server in the file and here.
func (i *Stack) SetDisabled(server string, disabled bool) error {
	if err := i.edit(func(f *configedit.File) error { return f.SetDisabled(server, disabled) }); err != nil {
		return err
	}
	return i.SetEnabled(server, !disabled) // also if the file did not change
}

func (i *Stack) edit(change func(f *configedit.File) error) error {
	f, err := i.editedFile(change)
	if err == nil {
		err = f.Save()
	}
	if err != nil {
		return err
	}
	i.reload(true)
	return nil
}

// editedFile returns the config file with an unsaved change.
func (i *Stack) editedFile(change func(f *configedit.File) error) (*configedit.File, error) {
	if i.o.Config.Demo || i.o.Only != nil {
		return nil, errors.New("no config file to edit")
	}
	f, err := configedit.Open(i.o.Config.Path)
	if err != nil {
		return nil, err
	}
	if f.IsNew() {
		return nil, fmt.Errorf("%s was deleted; restore it first", f.Path())
	}
	err = change(f)
	if errors.Is(err, configedit.ErrNone) {
		err = fmt.Errorf("server not found in %s; its name may be spelled differently there (goblin edit)", f.Path())
	}
	return f, err
}
