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

// Catalog is where a server's lists, state and log lines go: a
// [registry.Registry].
type Catalog interface {
	SetList(server string, kind registry.Kind, items [][]byte) []registry.Problem
	ServesSkills(server string, serves bool)
	SetVisible(server string, visible bool)
	SetState(server string, state registry.ServerState)
	RecordLatency(server string, took time.Duration)
	Logs() *registry.LogJournal
}

// Hooks are hooks; each may be nil. They must not block.
type Hooks struct {
	ConnectionChanged func(server string, up bool)
	Restarted         func(server string) // when a connection is made anew after the first
	// ListChanged is called when the server has said that a list changed, after
	// the list was fetched again. It may be the same as before.
	ListChanged func(server string, kind registry.Kind)
	// FrameSkipped gets the start of a frame that is no message, without secrets.
	FrameSkipped func(server, text string)
	ListFailed   func(server, method string, err error) // a list could not be fetched
}

// Options configure a Server.
type Options struct {
	Handler  Handler
	Registry Catalog
	Logger   *slog.Logger // nil for none
	// Limits: zero values take the defaults of the configuration. Sessions and
	// Unsent are not used.
	Limits      config.Limits
	ListChanged config.ListChanged // notices of kinds that are off are ignored
	Version     string             // Goblin's, told to backends
	// Capabilities are declared to backends: a raw object, nil for none.
	Capabilities []byte
	Hooks        Hooks
	// Replaces says that the catalog has entries of another Server of this
	// name, which this one takes the place of: they are hidden after the grace
	// time unless it has listed by then.
	Replaces    bool
	CachedLists *registry.ServerState // of an earlier process, whose lists the catalog gets; nil for none
	KeepEntries bool                  // entries stay while the server is down
	StartAsleep bool                  // it starts at its first use
	// Digests returns the digests of the definitions in a list, by name. With it, calls of
	// tools wait for the list of their connection, see [Server.AwaitTools]; nil waits for none.
	Digests func(kind registry.Kind, items [][]byte) map[string]string
	// Children records child processes, for the case that this one is killed;
	// nil records none.
	Children *childproc.Registry
	// Projects bounds how many projects have a process, of all servers together; nil
	// bounds nothing.
	Projects *Projects
	// Folders are the projects that have clients; nil for none.
	Folders func() []string
	// EnvNames are the variables of the config's env_file, to explain errors by.
	EnvNames []string
	// Memory bounds what the server makes the process hold, together with whoever
	// else shares it; nil bounds nothing.
	Memory *memlimit.Pool
	// Redact takes secrets out of a text that a backend may have written,
	// before it goes into an [Error], the server's state or the journal. It is
	// given whole texts, before they are cut. It may be called from any
	// goroutine and must not block; nil changes nothing.
	Redact func(string) string
	// Resolve puts the values of references into a definition before it is used; nil
	// for none.
	Resolve func(ctx context.Context, s *config.Server) (*config.Server, error)
	// Authorizer gives requests to a remote server the login of its user; nil for a
	// server that has none.
	Authorizer *oauth.Authorizer
}

// tuning holds the times that tests shorten.
type tuning struct {
	stop            time.Duration // each step of stopping a child
	stall           time.Duration // how long a child may leave its stdin unread
	drain           time.Duration // for what a dead child left in its pipes
	grace           time.Duration // how long entries of a lost server stay listed
	settled         time.Duration // up for so long, a server starts over with short delays
	debounce        time.Duration // between a list_changed and the fetch, at first
	maxDebounce     time.Duration // at most
	pageTimeout     time.Duration // bound of one page of a list, besides the timeout
	emptyPages      time.Duration // of pages that bring nothing new
	listBytes       int64         // bytes of all lists together
	requestBytes    int           // bytes of the params of its requests under way, but one alone may be larger
	discoverTimeout time.Duration // for server/discover, before initialize is tried too
	// remoteDiscoverTimeout is discoverTimeout over HTTP, which includes connecting. Legacy servers there
	// respond at once, with an error.
	remoteDiscoverTimeout time.Duration
	modernWait            time.Duration // how long a request waits for the connection of its era, before it is translated
	listenDebounce        time.Duration // changes of what is listened for are gathered so long
	livenessInterval      time.Duration // without a word of a server over HTTP that may speak, before it is asked for one
	livenessTimeout       time.Duration // for that word at least, however short the timeout is
	maxCallTime           time.Duration // of a call, however often its server shows that it works
	reconnectWait         time.Duration // how long a call waits for a connection that was lost just now
	reopenDelay           time.Duration // before a stream of notifications that was lost is opened again, at first
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

// Server supervises the connections to one backend. Make one with
// [NewServer].
type Server struct {
	cfg     config.Server
	uris    *policy.URIFilter
	opt     Options
	log     *slog.Logger
	tune    tuning
	limiter *limiter.Limiter
	memory  *memlimit.Owner

	// legacy notes that the last connection was opened in that era, so that
	// the next attempt begins with it.
	legacy atomic.Bool
	// modernOnly notes that a server was asked for the legacy era too and did
	// not take it, so that it is not asked again.
	modernOnly atomic.Bool
	versions   atomic.Pointer[[]string] // revisions that the server told of; nil before
	// discoverCut notes that a connection ended before it could tell, so that the next
	// one is asked again; cuts counts them.
	discoverCut  atomic.Bool
	discoverCuts atomic.Int32
	// headerMirrors says which arguments of tools go into headers; of Streamable
	// HTTP in the modern era only.
	headerMirrors    atomic.Pointer[wire.HeaderMirrors]
	elicitationCount atomic.Uint64 // counts the ids that URL elicitations were given

	listed        atomic.Bool
	firstList     chan struct{}
	firstOnce     sync.Once
	attempted     chan struct{} // see Attempted
	attemptedOnce sync.Once
	lists         atomic.Pointer[lists] // of the current connection
	// listBytes are the bytes of each list, or of the one on its way, if that has more.
	listBytes [registry.Kinds]atomic.Int64
	denied    [registry.Kinds]atomic.Pointer[[]string] // see Denied
	skills    timing.ListAge

	mu            sync.Mutex
	runCtx        context.Context // of Run; nil outside
	tasks         sync.WaitGroup  // started while running
	interrupt     context.CancelCauseFunc
	enabled       bool
	asleep        bool          // it is not to run before it is used
	stopping      bool          // conn ends because of that
	uses          uint64        // how often conn was wanted
	firstAttempt  bool          // nobody has been told yet that the server is down
	reconnecting  bool          // a connection was lost, and the first attempt to replace it goes on
	conn          *link         // the current connection
	connUnit      *unit         // the unit that has taken conn
	nextUnit      *unit         // the unit whose connection was lost: it gets the next
	changed       chan struct{} // closed and replaced when conn or first change
	lastErr       error
	units         map[string]*unit
	modernUnits   map[string]*unit // of the modern era, beside those of the legacy one
	hideTimer     *time.Timer
	unsentNotices map[string][][]byte // by unit: see keepNotices

	hadConn      bool   // there was a connection that the next one replaces; belongs to Run
	loggedReason string // there is no connection, as was logged last; belongs to Run

	// Of what is listed; belong to the goroutine that lists.
	known    [registry.Kinds]bool                      // has entries in the registry
	reported [registry.Kinds]map[registry.Problem]bool // problems that were logged

	stateMu sync.Mutex
	state   registry.ServerState
	skipped wire.SkipCounter
	// repaired are the repairs of results that were logged, guarded by mu.
	repaired map[string]bool
}

// NewServer returns a Server that does nothing until Run.
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

// CacheLoaded tells that the catalog has the remembered lists by now, or, if not ok, that there
// are none after all.
func (s *Server) CacheLoaded(ok bool) {
	if ok {
		s.firstOnce.Do(func() { close(s.firstList) })
		return
	}
	s.setState(func(st *registry.ServerState) { st.Listed, st.Stale, st.CachedAt = false, false, time.Time{} })
}

// Name is the server's name in the configuration.
func (s *Server) Name() string { return s.cfg.Name }

// Config is the configuration that the server was made with.
func (s *Server) Config() config.Server { return s.cfg }

// FirstList is closed when nobody need wait any more for the server's first
// lists: they were fetched, or the first attempt failed, or the server is
// disabled.
func (s *Server) FirstList() <-chan struct{} { return s.firstList }

// Attempted is closed when the first attempt to connect is over: the server is connected,
// failed, needs a login, is disabled or was stopped.
func (s *Server) Attempted() <-chan struct{} { return s.attempted }

func (s *Server) setAttempted() { s.attemptedOnce.Do(func() { close(s.attempted) }) }

// Listed reports whether the lists were fetched at least once.
func (s *Server) Listed() bool { return s.listed.Load() }

// toolCall is the method whose requests may take longer than others.
const toolCall = "tools/call"

// limit is how long a request of a method may take; 0 for any time.
func (s *Server) limit(method string) time.Duration {
	if method == toolCall {
		return s.cfg.CallTimeout
	}
	return s.cfg.Timeout
}

// limitKey returns the key of the config that sets limit.
func limitKey(method string) string {
	if method == toolCall {
		return "call_timeout"
	}
	return "timeout"
}

// Acquire takes one of the places for requests in flight (limits.in_flight) for
// who, a client: no client gets all of them (see [limiter.Limiter]). It blocks until one
// is free, ctx ends (the error is its cause) or the time that a request of the method
// has is over. release must be called exactly once.
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
			"waited %v (%s) in the queue for a free slot: %d calls of this client and %d of others are in flight (limits.in_flight: %d); send fewer at a time",
			limit, limitKey(method), own, others, s.opt.Limits.InFlight), context.DeadlineExceeded)
	}
}

// TryAcquire is Acquire where that does not have to wait; nil otherwise.
func (s *Server) TryAcquire(who any) (release func()) { return s.limiter.TryAcquire(who) }

// Conn is the server's current connection, or at once an *[Error] that says
// why there is none.
func (s *Server) Conn() (Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.liveConnLocked(); l != nil {
		s.uses++
		return l, nil
	}
	return nil, s.downErrorLocked()
}

// Ready is Conn for callers that do not use [Server.AwaitTools]: it fails while that would
// wait, or while the tools of the catalog are those of another connection.
func (s *Server) Ready() (Conn, error) {
	c, err := s.Conn()
	if l, is := c.(*link); is && s.verifiesLists() && !l.tools.IsCurrent() {
		return nil, s.newError(ConnectionError, "has not listed its tools yet", nil)
	}
	return c, err
}

// liveConnLocked returns the current connection, or nil if that has ended and the supervisor has not noticed
// yet.
func (s *Server) liveConnLocked() *link {
	if s.conn == nil || s.stopping || s.conn.ctx.Err() != nil {
		return nil
	}
	return s.conn
}

// isReconnectingLocked is [Server.IsReconnecting]; the attempt may be about to start.
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
		return s.newError(ConnectionError, "sleeps", nil)
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

// Await is Conn, but it wakes the server, and waits until ctx ends while the first attempt to
// connect goes on, 2 s at most for the first after a Restart or the loss of a connection.
func (s *Server) Await(ctx context.Context) (Conn, error) {
	var over <-chan time.Time
	for {
		s.mu.Lock()
		if s.asleep && ctx.Err() == nil { // again, before this caller had the connection
			s.interruptLocked(nil)
		}
		alive, first, returning, changed := s.liveConnLocked() != nil, s.firstAttempt, s.isReconnectingLocked(), s.changed
		s.mu.Unlock()
		if alive || !first && !returning {
			return s.Conn()
		}
		if returning && over == nil {
			over = time.After(s.tune.reconnectWait)
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

// IsReconnecting reports whether the first attempt to replace a lost connection goes on.
func (s *Server) IsReconnecting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isReconnectingLocked()
}

// Causes for the end of what the supervisor is doing.
var (
	errRestart = errors.New("restarted on request")
	errToggled = errors.New("enabled or disabled")
	errRecycle = errors.New("the isolation unit of the connection has ended")
)

// Restart ends the connections and connects anew at once. It does not wait.
// The error says why there is nothing to restart: the server is disabled, or
// its configuration has a problem.
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

// SetEnabled turns the server off or on; for as long as the Server lives. The
// entries of one that is off are hidden at once. It does not wait.
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
		// The units live on: the next connection brings theirs back.
		s.closeUnitsLocked(func(*unit) bool { return true })
	}
	if s.interrupt != nil {
		s.interrupt(why)
	}
	s.broadcastLocked()
}

// closeUnitsLocked closes the connections of the selected units, but keeps the units.
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

// endFirstAttempt ends the wait for the first attempt, unless ctx, that of the attempt, has
// ended: then another one begins.
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

// newError returns an Error of this server.
func (s *Server) newError(code, reason string, err error) *Error {
	return &Error{Code: code, Server: s.cfg.Name, Reason: s.opt.Redact(reason), Err: err}
}

// quote is a text of the backend as part of one of ours: what is cut has been
// redacted before, or half a secret would be left.
func (s *Server) quote(text string, limit int) string {
	return wire.Truncate(s.opt.Redact(text), limit)
}

// rpcError returns an error object of the server as an error.
func (s *Server) rpcError(object []byte) errRPC {
	e := jsonrpc.ParseErrorObject(object)
	e.Message = s.opt.Redact(e.Message)
	return errRPC{e}
}

// setState changes the state and hands it to the registry.
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

// journal writes a line to the registry's journal of logs.
func (s *Server) journal(level slog.Level, source, text string) {
	s.opt.Registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: s.cfg.Name, Level: level, Source: source, Text: s.opt.Redact(text),
	})
}

type journaledKey struct{}

// journaled marks what is logged and stands in the journal already.
var journaled = context.WithValue(context.Background(), journaledKey{}, true)

// IsJournaled reports whether what is logged with ctx stands in the registry's
// journal of logs already, in better words.
func IsJournaled(ctx context.Context) bool { return ctx.Value(journaledKey{}) != nil }

// note is journal for what Goblin itself has to say of the server.
func (s *Server) note(level slog.Level, text string) { s.journal(level, registry.SourceGoblin, text) }

// reportSkipped reports a frame that is no message, at most once a second.
func (s *Server) reportSkipped(frame []byte, err error) {
	if s.opt.Hooks.FrameSkipped != nil {
		s.opt.Hooks.FrameSkipped(s.cfg.Name, s.quote(string(frame[:min(len(frame), maxStderrLine)]), 300))
	}
	n := s.skipped.Add()
	if n == 0 {
		return
	}
	text := fmt.Sprintf("skipped what is no message (%v): %q", err, s.quote(string(frame[:min(len(frame), maxStderrLine)]), 300))
	if n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	s.note(slog.LevelWarn, text)
}
