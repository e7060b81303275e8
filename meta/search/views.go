package search

import (
	"context"
	"sync"

	"goblin/registry"
)

// maxViews is how many lists are kept that profiles show in other words.
const maxViews = 64

// viewCache holds the indices of lists as profiles show them.
type viewCache struct {
	mu  sync.Mutex
	all map[registry.Part]*source
}

// viewSource is the index of a list as a part of the catalog shows it: src, but where that has
// other words for things. Such lists are those of single servers, and read when somebody
// searches.
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
