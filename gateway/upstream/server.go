package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/oauth"
	"goblin/gateway/policy"
	"goblin/gateway/upstream/limiter"
	"goblin/gateway/upstream/timing"
	"goblin/gateway/upstream/wire"
	"goblin/registry"
)

// Catalog receives a server's lists, state and log lines. [registry.Registry] implements
// it.
type Catalog interface {
	SetList(server string, kind registry.Kind, items [][]byte) []registry.Problem
	ServesSkills(server string, serves bool)
	SetVisible(server string, visible bool)
	SetState(server string, state registry.ServerState)
	RecordLatency(server string, took time.Duration)
	Logs() *registry.LogJournal
}

// Hooks are optional callbacks. They must not block.
type Hooks struct {
	ConnectionChanged func(server string, up bool)
	Restarted         func(server string) // a connection replaced an earlier one
	// ListChanged is called after the server announced a change and the list was fetched
	// again. The list may be unchanged.
	ListChanged func(server string, kind registry.Kind)
	// FrameSkipped receives the redacted start of a frame that is not a message.
	FrameSkipped func(server, text string)
	ListFailed   func(server, method string, err error) // a list could not be fetched
}

// Options configures a Server.
type Options struct {
	Handler  Handler
	Registry Catalog
	Logger   *slog.Logger // may be nil
	// Limits: zero values mean the defaults of the config. Sessions and Unsent are not
	// used.
	Limits      config.Limits
	ListChanged config.ListChanged // disabled kinds of notifications are ignored
	Version     string             // Goblin's version, sent to servers
	// Capabilities are declared to servers, as a raw object or nil.
	Capabilities []byte
	Hooks        Hooks
	// Replaces is set if the catalog has entries of another Server with this name. They
	// are hidden after the grace time unless this Server has listed.
	Replaces    bool
	CachedLists *registry.ServerState // state of the cached lists in the catalog, or nil
	KeepEntries bool                  // entries stay while the server is down
	StartAsleep bool                  // start at first use
	// AwaitStart blocks until the server may start, or ctx is done; may be nil.
	AwaitStart func(ctx context.Context)
	// Digests returns the digests of the definitions in a list, by name.
	Digests func(kind registry.Kind, items [][]byte) map[string]string
	// VerifyLists makes tool calls wait for their connection's list; see [Server.AwaitTools].
	VerifyLists bool
	// Children records child processes in case this process is killed; may be nil.
	Children *childproc.Registry
	// Projects limits the processes for projects of all servers; may be nil.
	Projects *Projects
	// Folders returns the projects with clients; may be nil.
	Folders func() []string
	// EnvNames are the variables of the config's env_file, for explaining errors.
	EnvNames []string
	// Memory is a shared limit of the memory used for servers and clients; may be nil.
	Memory *memlimit.Pool
	// Redact removes secrets from text of a server before it enters an [Error], the state
	// or the journal. It receives whole texts, before truncation. It must be safe for
	// concurrent use and not block; may be nil.
	Redact func(string) string
	// Resolve resolves references in a definition before use; may be nil.
	Resolve func(ctx context.Context, s *config.Server) (*config.Server, error)
	// Authorizer adds the user's login to requests; nil without logins.
	Authorizer *oauth.Authorizer
}

// tuning holds what tests shorten.
type tuning struct {
	stop            time.Duration // each step of stopping a child
	stall           time.Duration // maximum time that a child doesn't read stdin
	drain           time.Duration // for the output of a dead child
	grace           time.Duration // until entries of a lost server are hidden
	settled         time.Duration // lifetime after which delays are reset
	debounce        time.Duration // initial delay from list_changed to the fetch
	maxDebounce     time.Duration
	pageTimeout     time.Duration // maximum for one page, in addition to the timeout
	emptyPages      time.Duration // maximum time without new items
	listBytes       int64         // maximum of all lists together
	requestBytes    int           // maximum of open requests; a single one may exceed it
	discoverTimeout time.Duration // before initialize is tried too
	// remoteDiscoverTimeout is discoverTimeout over HTTP, including the connection setup.
	// Legacy servers answer at once with an error.
	remoteDiscoverTimeout time.Duration
	modernWait            time.Duration // maximum wait for a connection of the request's era
	listenDebounce        time.Duration // collects changes of subscriptions
	livenessInterval      time.Duration // silence before a remote server is pinged
	livenessTimeout       time.Duration // minimum timeout of that ping
	maxCallTime           time.Duration // maximum for a call despite progress
	reconnectWait         time.Duration // maximum wait of a call for a lost connection
	reopenDelay           time.Duration // initial delay before a lost stream is reopened
	retry                 timing.Backoff
}

func defaultTuning() tuning {
	return tuning{
		stop: 2 * time.Second, stall: maxStall, drain: 500 * time.Millisecond, grace: 30 * time.Second,
		settled: 10 * time.Second, debounce: 20 * time.Millisecond, maxDebounce: time.Second,
		pageTimeout: 60 * time.Second, emptyPages: 5 * time.Second, retry: timing.DefaultBackoff(),
		requestBytes:    64 << 20,
		discoverTimeout: time.Second, remoteDiscoverTimeout: 3 * time.Second, modernWait: 10 * time.Second, listenDebounce: 5 * time.Millisecond, reopenDelay: 200 * time.Millisecond,
		livenessInterval: 30 * time.Second, livenessTimeout: 5 * time.Second, maxCallTime: 24 * time.Hour, reconnectWait: 2 * time.Second,
	}
}

// Server supervises the connections to one server. Create one with [NewServer].
type Server struct {
	cfg     config.Server
	uris    *policy.URIFilter
	opt     Options
	log     *slog.Logger
	tune    tuning
	limiter *limiter.Limiter
	memory  *memlimit.Owner

	// legacy is set if the last connection was legacy, so the next attempt starts with
	// that era.
	legacy atomic.Bool
	// modernOnly is set if the server refused the legacy era, so it is not tried again.
	modernOnly atomic.Bool
	versions   atomic.Pointer[[]string]
	// discoverCut is set if a connection ended during server/discover, so the next one
	// sends it again. discoverCuts counts these connections.
	discoverCut  atomic.Bool
	discoverCuts atomic.Int32
	// headerMirrors lists the arguments that are also sent as headers (Streamable HTTP in
	// the modern era).
	headerMirrors    atomic.Pointer[wire.HeaderMirrors]
	elicitationCount atomic.Uint64

	listed        atomic.Bool
	firstList     chan struct{}
	firstOnce     sync.Once
	attempted     chan struct{}
	attemptedOnce sync.Once
	lists         atomic.Pointer[lists]
	// listBytes are the sizes of the lists, or of the one being fetched if larger.
	listBytes [registry.Kinds]atomic.Int64
	denied    [registry.Kinds]atomic.Pointer[[]string]
	skills    timing.ListAge

	mu            sync.Mutex
	runCtx        context.Context // context of Run; nil outside
	tasks         sync.WaitGroup
	interrupt     context.CancelCauseFunc
	enabled       bool
	asleep        bool   // idle: wait for use
	stopping      bool   // conn is closed because the server became idle
	uses          uint64 // requests for conn
	firstAttempt  bool   // no request has failed yet because the server is down
	reconnecting  bool   // replacing a lost connection; first attempt
	conn          *link
	connUnit      *unit         // unit that adopted conn
	nextUnit      *unit         // unit whose connection was lost; adopts the next
	changed       chan struct{} // closed and replaced when the connection state changes
	lastErr       error
	units         map[string]*unit
	modernUnits   map[string]*unit // modern, beside the legacy ones
	hideTimer     *time.Timer
	unsentNotices map[string][][]byte

	hadConn      bool   // the next connection is a restart; used by Run only
	lostUnlisted bool   // a connection ended before it listed; used by Run only
	loggedReason string // last logged failure; used by Run only

	// Used only by the goroutine that lists.
	known    [registry.Kinds]bool
	reported [registry.Kinds]map[registry.Problem]bool

	stateMu sync.Mutex
	state   registry.ServerState
	skipped wire.SkipCounter
	// repaired holds logged repairs of results; guarded by mu.
	repaired map[string]bool
}

// NewServer returns a Server that is inactive until Run.
func NewServer(cfg config.Server, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits.Frame = cmp.Or(o.Limits.Frame, 128<<20)
	o.Limits.InFlight = cmp.Or(o.Limits.InFlight, 256)
	o.Limits.Pages = cmp.Or(o.Limits.Pages, 1000)
	o.Limits.Entries = cmp.Or(o.Limits.Entries, 1_000_000)
	o.Limits.Depth = cmp.Or(o.Limits.Depth, 512)
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Capabilities == nil {
		o.Capabilities = []byte("{}")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.StartupTimeout = cmp.Or(cfg.StartupTimeout, 20*time.Second)
	s := &Server{
		cfg: cfg, uris: policy.NewURIFilter(cfg.Resources), opt: o, tune: defaultTuning(),
		log:          o.Logger.With("server", cfg.Name),
		limiter:      limiter.New(o.Limits.InFlight),
		firstList:    make(chan struct{}),
		attempted:    make(chan struct{}),
		enabled:      !cfg.Disabled,
		asleep:       o.StartAsleep,
		firstAttempt: !cfg.Disabled && cfg.Problem == "" && !o.StartAsleep,
		changed:      make(chan struct{}),
		units:        make(map[string]*unit),
		modernUnits:  make(map[string]*unit),
	}
	s.tune.listBytes = max(o.Limits.Frame, minLists)
	s.memory = o.Memory.NewOwner()
	s.state = registry.ServerState{Transport: string(cfg.Type)}
	if o.CachedLists != nil {
		s.state = *o.CachedLists
	}
	return s
}

// CacheLoaded reports that the catalog contains the cached lists or, if ok is false, that
// they are unusable.
func (s *Server) CacheLoaded(ok bool) {
	if ok {
		s.firstOnce.Do(func() { close(s.firstList) })
		return
	}
	s.setState(func(st *registry.ServerState) { st.Listed, st.Stale, st.CachedAt = false, false, time.Time{} })
}

// Name returns the server's name in the config.
func (s *Server) Name() string { return s.cfg.Name }

// Config returns the server's configuration.
func (s *Server) Config() config.Server { return s.cfg }

// FirstList is closed when callers need no longer wait for the first lists. The lists
// were fetched, the first attempt failed, or the server is disabled.
func (s *Server) FirstList() <-chan struct{} { return s.firstList }

// Attempted is closed after the first connection attempt: the server is connected,
// failed, needs a login, is disabled or was stopped.
func (s *Server) Attempted() <-chan struct{} { return s.attempted }

func (s *Server) setAttempted() { s.attemptedOnce.Do(func() { close(s.attempted) }) }

// Listed reports whether the lists were fetched at least once.
func (s *Server) Listed() bool { return s.listed.Load() }

const toolCall = "tools/call"

func (s *Server) limit(method string) time.Duration {
	if method == toolCall {
		return s.cfg.CallTimeout
	}
	return s.cfg.Timeout
}

func limitKey(method string) string {
	if method == toolCall {
		return "call_timeout"
	}
	return "timeout"
}

// Acquire acquires a slot for a request in flight (limits.in_flight) for a client. No
// client gets all slots (see [limiter.Limiter]). It blocks until a slot is free, the
// method's timeout has passed, or ctx is done (returning its cause). release must be
// called exactly once.
func (s *Server) Acquire(ctx context.Context, who any, method string) (release func(), err error) {
	release, wait := s.limiter.Acquire(who)
	if wait == nil {
		return release, nil
	}
	limit := s.limit(method)
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case <-wait.Done():
		return release, nil
	case <-ctx.Done():
		wait.Cancel()
		return nil, context.Cause(ctx)
	case <-late:
		own, others := wait.Cancel()
		return nil, s.newError(RequestTimeout, fmt.Sprintf(
			"no free slot within %s (%s): %d calls of this client and %d of others are in flight (limits.in_flight: %d); send fewer at a time",
			config.ShortDuration(limit), limitKey(method), own, others, s.opt.Limits.InFlight), context.DeadlineExceeded)
	}
}

// TryAcquire is Acquire without waiting. It returns nil if no slot is available.
func (s *Server) TryAcquire(who any) (release func()) { return s.limiter.TryAcquire(who) }

// Conn returns the server's current connection without waiting, or an *[Error] with the
// reason.
func (s *Server) Conn() (Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.liveConnLocked(); l != nil {
		s.uses++
		return l, nil
	}
	return nil, s.downErrorLocked()
}

// Ready is Conn for callers that don't use [Server.AwaitTools]. It returns an error while
// that would wait, or while the catalog has tools of another connection.
func (s *Server) Ready() (Conn, error) {
	c, err := s.Conn()
	if l, is := c.(*link); is && s.verifiesLists() && !l.tools.IsCurrent() {
		return nil, s.newError(ConnectionError, "has not listed its tools yet", nil)
	}
	return c, err
}

// liveConnLocked returns nil if the connection is closed or about to be.
func (s *Server) liveConnLocked() *link {
	if s.conn == nil || s.stopping || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn
}

// isReconnectingLocked implements [Server.IsReconnecting]. The attempt may be about to
// start.
func (s *Server) isReconnectingLocked() bool {
	return s.reconnecting || s.conn != nil && !s.stopping && s.conn.ctx.Err() != nil && s.enabled
}

func (s *Server) downErrorLocked() *Error {
	var last *Error
	why := s.lastErr
	if s.conn != nil {
		why = s.conn.err
	}
	switch {
	case !s.enabled:
		return s.newError(ConnectionError, "is disabled", nil)
	case s.cfg.Problem != "":
		return s.newError(ConnectionError, s.cfg.Problem, nil)
	case s.runCtx != nil && s.runCtx.Err() != nil:
		return s.newError(ConnectionError, "has been stopped", nil)
	case s.asleep:
		return s.newError(ConnectionError, "is idle", nil)
	case s.isReconnectingLocked() && errors.As(why, &last):
		return s.newError(errorCode(last), "is being restarted: "+last.Text(), unsentCause(why))
	case s.isReconnectingLocked():
		return s.newError(ConnectionError, "is being restarted", nil)
	case errors.As(s.lastErr, &last):
		return s.newError(errorCode(last), "is not connected: "+last.Text(), unsentCause(s.lastErr))
	case s.lastErr != nil:
		return s.newError(ConnectionError, "is not connected: "+s.lastErr.Error(), s.lastErr)
	}
	return s.newError(ConnectionError, "is still starting", nil)
}

// reconnectWait is the maximum wait of a call for the next connection. A server under
// development restarts often, and may compile itself first.
func (s *Server) reconnectWait() time.Duration {
	if s.cfg.Rebuilt() {
		return min(s.cfg.StartupTimeout, s.cfg.Timeout)
	}
	return s.tune.reconnectWait
}

// Await is Conn, but wakes the server and waits for the first connection attempt or until
// ctx is done. After a restart or loss it waits for 2 s at most, if the server is not
// under development.
func (s *Server) Await(ctx context.Context) (Conn, error) {
	var over <-chan time.Time
	for {
		s.mu.Lock()
		if s.asleep && ctx.Err() == nil { // idle again before this caller got the connection
			s.interruptLocked(nil)
		}
		alive, first, returning, changed := s.liveConnLocked() != nil, s.firstAttempt, s.isReconnectingLocked(), s.changed
		s.mu.Unlock()
		if alive || !first && !returning {
			return s.Conn()
		}
		if returning && over == nil {
			over = time.After(s.reconnectWait())
		}
		select {
		case <-changed:
		case <-over:
			return s.Conn()
		case <-ctx.Done():
			return s.Conn()
		}
	}
}

// IsReconnecting reports whether the first attempt to replace a lost connection is
// running.
func (s *Server) IsReconnecting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isReconnectingLocked()
}

// Causes for interrupting the supervisor.
var (
	errRestart = errors.New("restarted on request")
	errToggled = errors.New("enabled or disabled")
	errRecycle = errors.New("the connection's unit was closed")
)

// Restart closes the connections and reconnects at once. It doesn't block. It returns an
// error if the server is disabled or has a config problem.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.enabled:
		return fmt.Errorf("server %q is disabled", s.cfg.Name)
	case s.cfg.Problem != "":
		return fmt.Errorf("server %q: %s", s.cfg.Name, s.cfg.Problem)
	}
	s.interruptLocked(errRestart)
	return nil
}

// SetEnabled enables or disables the server for the life of the Server. Disabling hides
// the entries at once. It doesn't block.
func (s *Server) SetEnabled(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enabled == on {
		return
	}
	s.enabled = on
	if !on {
		s.stopHidingLocked()
		s.opt.Registry.SetVisible(s.cfg.Name, false)
	}
	s.interruptLocked(errToggled)
}

func (s *Server) interruptLocked(why error) {
	ended := s.runCtx != nil && s.runCtx.Err() != nil
	s.firstAttempt = s.enabled && s.cfg.Problem == "" && !ended
	s.reconnecting = s.firstAttempt && (s.conn != nil && !s.stopping || s.reconnecting)
	s.asleep = false
	s.lastErr = nil
	if !errors.Is(why, errRecycle) {
		// Units stay; they get the next connection.
		s.closeUnitsLocked(func(*unit) bool { return true })
	}
	if s.interrupt != nil {
		s.interrupt(why)
	}
	s.broadcastLocked()
}

// closeUnitsLocked keeps the units.
func (s *Server) closeUnitsLocked(which func(*unit) bool) {
	for name, u := range s.units {
		if !which(u) {
			continue
		}
		u.cancel()
		fresh := s.newUnitLocked(name)
		fresh.extensions = u.extensions
		if u == s.connUnit || u == s.nextUnit {
			s.nextUnit = fresh
		}
	}
	for name, u := range s.modernUnits {
		if which(u) {
			u.cancel()
			s.newModernUnitLocked(name)
		}
	}
}

func (s *Server) broadcastLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// endFirstAttempt records the end of the first attempt. If ctx, the attempt's context, is
// done, another attempt follows and callers keep waiting.
func (s *Server) endFirstAttempt(ctx context.Context, err error) {
	s.mu.Lock()
	if ctx.Err() == nil {
		s.firstAttempt = false
		s.lastErr = err
		s.broadcastLocked()
	}
	s.mu.Unlock()
	s.setAttempted()
	s.firstOnce.Do(func() { close(s.firstList) })
}

func (s *Server) newError(code, reason string, err error) *Error {
	return &Error{Code: code, Server: s.cfg.Name, Reason: s.opt.Redact(reason), Err: err}
}

// quote truncates text of a server for use in Goblin's messages. It redacts first, so
// that no part of a secret remains.
func (s *Server) quote(text string, limit int) string {
	return wire.Truncate(s.opt.Redact(text), limit)
}

func (s *Server) rpcError(object []byte) errRPC {
	e := jsonrpc.ParseErrorObject(object)
	e.Message = s.opt.Redact(e.Message)
	return errRPC{e}
}

func (s *Server) setState(change func(*registry.ServerState)) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	before := s.state.State
	change(&s.state)
	if s.state.State != before {
		s.state.Since = time.Now()
	}
	s.opt.Registry.SetState(s.cfg.Name, s.state)
}

func (s *Server) journal(level slog.Level, source, text string) {
	s.opt.Registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: s.cfg.Name, Level: level, Source: source, Text: s.opt.Redact(text),
	})
}

// WithoutJournal returns a context for log lines that are already in the journal.
func WithoutJournal() context.Context { return journaled }

type journaledKey struct{}

// journaled marks log lines that are already in the journal.
var journaled = context.WithValue(context.Background(), journaledKey{}, true)

// IsJournaled reports whether a line logged with ctx is already in the registry's log
// journal, with better wording.
func IsJournaled(ctx context.Context) bool { return ctx.Value(journaledKey{}) != nil }

func (s *Server) note(level slog.Level, text string) { s.journal(level, registry.SourceGoblin, text) }

func (s *Server) reportSkipped(frame []byte, err error) {
	if s.opt.Hooks.FrameSkipped != nil {
		s.opt.Hooks.FrameSkipped(s.cfg.Name, s.quote(string(frame[:min(len(frame), maxStderrLine)]), 300))
	}
	n := s.skipped.Add()
	if n == 0 {
		return
	}
	text := fmt.Sprintf("skipped text that is not a message (%v): %q", err, s.quote(string(frame[:min(len(frame), maxStderrLine)]), 300))
	if n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	s.note(slog.LevelWarn, text)
}
