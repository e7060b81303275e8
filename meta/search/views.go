package search

import (
	"context"
	"sync"

	"goblin/registry"
)

// maxViews is the maximum number of cached lists with overrides of a profile.
const maxViews = 64

type viewCache struct {
	mu  sync.Mutex
	all map[registry.Part]*source
}

// viewSource returns the index of a list as a view shows it: src, unless the view
// overrides texts. Such lists are read on the first search.
func (x *Index) viewSource(ctx context.Context, in *registry.Snapshot, src *source) (*source, error) {
	if in == nil {
		return src, nil
	}
	p, other := in.ShownList(src.part)
	if !other {
		return src, nil
	}
	v := &x.views
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.all[p]; known != nil {
		return known, nil
	}
	segment, err := newSegment(ctx, p, x.maxListSize)
	if err != nil {
		return nil, err
	}
	if v.all == nil || len(v.all) >= maxViews {
		v.all = make(map[registry.Part]*source)
	}
	v.all[p] = &source{segment: segment, part: p}
	return v.all[p], nil
}
