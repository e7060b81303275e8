package stack

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/tracing"
)

// traceSecretsTimeout limits the wait for references in otel.headers.
const traceSecretsTimeout = 30 * time.Second

// traces is the export of traces.
type traces struct {
	tracer  *tracing.Tracer
	applied config.OTel           // guarded by reloadMu
	err     atomic.Pointer[error] // why there are no traces
}

// applyTraces starts, changes or stops the traces as the config demands. It reports whether
// the config changed. The caller holds reloadMu, except in New.
func (i *Stack) applyTraces(cfg *config.Config) (changed bool) {
	t := &i.traces
	if t.err.Load() == nil && t.applied.Equal(cfg.OTel) {
		return false
	}
	changed = !t.applied.Equal(cfg.OTel)
	t.applied = cfg.OTel
	ctx, cancel := context.WithTimeout(i.stopped, traceSecretsTimeout)
	defer cancel()
	now, secrets := cfg.OTel.Resolve(ctx, i.o.Resolve)
	i.o.Mask.AddSecrets(secrets...)
	var err error
	if now.On && now.Missing.Text != "" {
		err = errors.New(now.Missing.String())
		now.On = false
	}
	err = errors.Join(err, t.tracer.Apply(now, i.gateway.AddSink))
	if err == nil {
		t.err.Store(nil)
		return changed
	}
	err = fmt.Errorf("no traces: %w", err)
	i.o.Logger.Warn("no traces", "err", errors.Unwrap(err))
	t.err.Store(&err)
	i.notify()
	return changed
}
