package instance

import (
	"errors"
	"fmt"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
)

// AddServer puts a server into the config's file and serves it; keys are those of its
// entry.
func (i *Instance) AddServer(name string, keys map[string]any) error {
	if !config.ValidName(name) {
		return fmt.Errorf("%q cannot name a server", name)
	}
	return i.edit(func(f *configedit.File) error { return f.Add(configedit.Server{Name: name, Keys: keys}) })
}

// RemoveServer takes a server out of the config's file.
func (i *Instance) RemoveServer(server string) error {
	return i.edit(func(f *configedit.File) error { return f.Remove(server) })
}

// SetDisabled turns a server off or on in the config's file, and here.
func (i *Instance) SetDisabled(server string, disabled bool) error {
	if err := i.edit(func(f *configedit.File) error { return f.SetDisabled(server, disabled) }); err != nil {
		return err
	}
	return i.SetEnabled(server, !disabled) // the file may have said so before
}

// edit changes the config's file, and follows it.
func (i *Instance) edit(change func(f *configedit.File) error) error {
	if i.o.Config.Demo || i.o.Only != nil {
		return errors.New("there is no config to change")
	}
	f, err := configedit.Open(i.o.Config.Path)
	if err != nil {
		return err
	}
	err = change(f)
	if errors.Is(err, configedit.ErrNone) {
		return fmt.Errorf("%s has no server of that name; its name may be written otherwise there (goblin edit)", f.Path())
	}
	if err == nil {
		err = f.Save()
	}
	if err != nil {
		return err
	}
	i.reload(true)
	return nil
}
