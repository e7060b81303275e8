package stack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/registry/report"
)

// AddServer puts a server into the config's file and serves it; keys are those of its
// entry.
func (i *Stack) AddServer(name string, keys map[string]any) error {
	return i.edit(addServerEdit(name, keys))
}

func addServerEdit(name string, keys map[string]any) func(*configedit.File) error {
	return func(f *configedit.File) error {
		if !config.ValidName(name) {
			return fmt.Errorf("%q cannot name a server", name)
		}
		return f.Add(configedit.Server{Name: name, Keys: keys})
	}
}

// TryServer starts a server once, as if AddServer had put it into the config, and says what
// keeps it from working. That it wants a login, or offers what some clients refuse, does
// not. It fails as AddServer would, and blocks as [Stack.Diagnose] does.
func (i *Stack) TryServer(ctx context.Context, name string, keys map[string]any) (lacks string, err error) {
	f, err := i.editedFile(addServerEdit(name, keys))
	if err != nil {
		return "", err
	}
	cfg, err := config.Parse(f.Path(), f.Text(), os.LookupEnv)
	if err != nil {
		return "", err
	}
	i.o.Mask.Add(cfg)
	s, _ := cfg.Server(name) // it was put there
	for _, c := range i.diagnose(ctx, cfg, s).Checks {
		if c.State == report.Broken && c.Name != "login" && c.Name != "schemas" && c.Name != "limits" {
			return c.Text + "; " + c.Fix, nil
		}
	}
	return "", nil
}

// RemoveServer takes a server out of the config's file.
func (i *Stack) RemoveServer(server string) error {
	return i.edit(func(f *configedit.File) error { return f.Remove(server) })
}

// SetDisabled turns a server off or on in the config's file, and here.
func (i *Stack) SetDisabled(server string, disabled bool) error {
	if err := i.edit(func(f *configedit.File) error { return f.SetDisabled(server, disabled) }); err != nil {
		return err
	}
	return i.SetEnabled(server, !disabled) // the file may have said so before
}

// edit changes the config's file, and follows it.
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

// editedFile returns the config's file with a change that is not saved.
func (i *Stack) editedFile(change func(f *configedit.File) error) (*configedit.File, error) {
	if i.o.Config.Demo || i.o.Only != nil {
		return nil, errors.New("there is no config to change")
	}
	f, err := configedit.Open(i.o.Config.Path)
	if err != nil {
		return nil, err
	}
	err = change(f)
	if errors.Is(err, configedit.ErrNone) {
		err = fmt.Errorf("%s has no server of that name; its name may be written otherwise there (goblin edit)", f.Path())
	}
	return f, err
}
