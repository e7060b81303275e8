package secrets

import (
	"errors"
	"fmt"
)

const maxSuffix = 99

// Transaction sets secrets for config changes that may fail afterwards, and can restore
// their previous values. It belongs to one goroutine.
type Transaction struct {
	store *Store
	undo  []func() error
}

// Begin returns an empty Transaction.
func (s *Store) Begin() *Transaction { return &Transaction{store: s} }

// FreeName returns wanted, with a number if another secret has that name. A nil
// Transaction returns wanted.
func (t *Transaction) FreeName(wanted, value string) string {
	name := wanted
	for n := 2; t != nil && n <= maxSuffix; n++ {
		if known, err := t.store.Get(name); err != nil || known == value {
			break
		}
		name = fmt.Sprintf("%s-%d", wanted, n)
	}
	return name
}

// Set stores a secret and returns its place, like [Store.Set].
func (t *Transaction) Set(name, value string) (place string, err error) {
	before, getErr := t.store.Get(name)
	if getErr == nil && before == value {
		return t.store.Location(name), nil
	}
	place, err = t.store.Set(name, value)
	if err != nil {
		return "", err
	}
	t.undo = append(t.undo, func() error {
		if getErr != nil {
			return t.store.Remove(name)
		}
		_, err := t.store.Set(name, before)
		return err
	})
	return place, nil
}

// Rollback restores all secrets in reverse order.
func (t *Transaction) Rollback() error {
	var all []error
	for i := len(t.undo) - 1; i >= 0; i-- {
		all = append(all, t.undo[i]())
	}
	return errors.Join(all...)
}
