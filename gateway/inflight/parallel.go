package inflight

import "golang.org/x/sync/errgroup"

// ForEachLimit calls do for each item, at most width at a time, and waits for all.
func ForEachLimit[T any](width int, items []T, do func(i int, item T)) {
	var all errgroup.Group
	all.SetLimit(width)
	for i, item := range items {
		all.Go(func() error {
			do(i, item)
			return nil
		})
	}
	_ = all.Wait() // do returns no errors
}
