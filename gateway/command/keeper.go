package command

import (
	"errors"
	"fmt"

	"goblin/gateway/secrets"
)

// keeper keeps secrets for a change of the config that may fail, and then gives back what
// was kept before.
type keeper struct {
	store *secrets.Store
	back  []func() error
}

// name chooses a name for a secret that no other one has. The nil keeper keeps none.
func (k *keeper) name(wanted, value string) string {
	name := wanted
	for n := 2; k != nil && n < 100; n++ {
		if there, err := k.store.Get(name); err != nil || there == value {
			break
		}
		name = fmt.Sprintf("%s-%d", wanted, n)
	}
	return name
}

// keep keeps a secret, and tells where.
func (k *keeper) keep(name, value string) (place string, err error) {
	old, err := k.store.Get(name)
	if err == nil && old == value {
		return k.store.Place(name), nil
	}
	was := err == nil
	if place, err = k.store.Set(name, value); err == nil {
		k.back = append(k.back, func() error {
			if was {
				_, err := k.store.Set(name, old)
				return err
			}
			return k.store.Remove(name)
		})
	}
	return place, err
}

// undo makes all secrets as they were.
func (k *keeper) undo() error {
	var all []error
	for i := len(k.back) - 1; i >= 0; i-- {
		all = append(all, k.back[i]())
	}
	return errors.Join(all...)
}
