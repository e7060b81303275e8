package worker

import (
	"errors"
	"fmt"
	"sync"

	glua "github.com/yuin/gopher-lua"
)

const (
	maxFrames   = 256     // call depth
	maxRegistry = 1 << 20 // values on the stack of a thread
)

// run is the run of a script. During all{…}, lock guards its fields, except those of
// stopper. Requests do not hold the lock.
type run struct {
	start Start
	conn  *connection
	*stopper
	memoryGrowth

	lock        sync.Mutex
	main        *glua.LState
	prog        *program
	slots       chan struct{}  // one per request in flight in all{…}
	line        int            // where a limit stopped a thread; 0: not yet
	idleThreads []*glua.LState // threads of finished pcalls

	catalog     *catalog
	arrayMeta   *glua.LTable
	exactMeta   *glua.LTable
	errorMeta   *glua.LTable
	null        *glua.LUserData
	lastUnknown string // the last unknown name in the script
}

func newRun(start Start, l *connection) *run {
	return &run{
		start: start, conn: l, stopper: newStopper(), memoryGrowth: memoryGrowth{baseline: memory()},
		prog: &program{}, slots: make(chan struct{}, maxParallel),
	}
}

func (r *run) script(source string) *Error {
	prog, err := compile(source)
	if err != nil {
		return asError(err)
	}
	r.prog = prog
	r.main = glua.NewState(glua.Options{
		SkipOpenLibs: true, CallStackSize: maxFrames,
		RegistrySize: 256, RegistryGrowStep: 1024, RegistryMaxSize: maxRegistry,
	})
	r.lock.Lock()
	defer r.lock.Unlock()
	if err := r.execute(); err != nil {
		return asError(err)
	}
	return nil
}

func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Kind: Runtime, Message: err.Error()}
	}
	return e
}

func (r *run) execute() (err error) {
	L := r.main
	defer func() {
		if p := recover(); p != nil { // while opening libraries
			err = r.runError(fmt.Errorf("%v", p))
		}
	}()
	r.open(L)
	L.SetContext(r.stopper)
	L.Push(L.NewFunctionFromProto(r.prog.proto))
	for _, fn := range r.guards(L) {
		L.Push(fn)
	}
	if err := L.PCall(len(guardNames), glua.MultRet, nil); err != nil {
		return r.runError(err)
	}
	if e := r.failure(); e != nil { // stopped before its next instruction
		return e
	}
	var out glua.LValue
	switch n := L.GetTop(); n {
	case 0:
		return nil
	case 1:
		out = L.Get(1)
		if out == glua.LNil {
			return nil
		}
	default:
		t := L.CreateTable(n, 0)
		for i := 1; i <= n; i++ {
			t.RawSetInt(i, r.orNull(L.Get(i)))
		}
		t.Metatable = r.arrayMeta
		out = t
	}
	if err := r.setResult(out); err != nil {
		if e := r.failure(); e != nil {
			return e
		}
		return &Error{Kind: Runtime, Message: "the returned value " + err.Error()}
	}
	return nil
}

func (r *run) notify(what string, text []byte) {
	_ = r.conn.write(ScriptMessage{Ask: what}, text) // without Goblin the process exits
}

func (r *run) setResult(v glua.LValue) error {
	text, err := r.encode(v)
	if err == nil {
		r.notify(NotifyResult, text)
	}
	return err
}

func (r *run) runError(err error) *Error {
	var api *glua.ApiError
	text := err.Error()
	if errors.As(err, &api) {
		text = r.errorText(api.Object)
	}
	line, message := splitLine(text)
	if e := r.failure(); e != nil {
		if r.line > 0 {
			line = r.line
		}
		return &Error{Kind: e.Kind, Line: line, Message: e.Message}
	}
	return &Error{Kind: Runtime, Line: line, Message: message + r.hint(message)}
}
