package inflight

import "golang.org/x/sync/errgroup"

// ForEachLimit does something with each item, at most width of them side by side, and
// returns when all is done.
func ForEachLimit[T any](width int, items []T, do func(i int, item T)) {
	var all errgroup.Group
	all.SetLimit(width)
	for i, item := range items {
		all.Go(func() error {
			do(i, item)
			return nil
		})
	}
	_ = all.Wait() // none of them returns an error
}
