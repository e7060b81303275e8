package interpreter

import glua "github.com/yuin/gopher-lua"

const maxThreads = 100 // pcalls and coroutines within each other

// nesting says how deep a thread is within others.
type nesting struct {
	threads  int // pcalls, coroutines and all{…}
	parallel int // all{…}
}

// enter makes th a thread that runs, called by L; who calls it removes it from
// r.threads in the end.
func (r *run) enter(L, th *glua.LState) {
	n := r.threads[L]
	if n.threads++; n.threads > maxThreads {
		L.RaiseError("more than %d pcalls and coroutines within each other", maxThreads)
	}
	r.threads[th] = n
}

// thread returns an idle thread that runs for L; idle takes it back.
func (r *run) thread(L *glua.LState) *glua.LState {
	var th *glua.LState
	if n := len(r.free); n > 0 {
		th = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		th, _ = L.NewThread() // its context is only canceled by that of the run
		th.SetContext(r.stopper)
	}
	r.enter(L, th)
	return th
}

func (r *run) idle(th *glua.LState) {
	delete(r.threads, th)
	th.SetTop(0)
	r.free = append(r.free, th)
}

// invoke calls a function on a thread. The results are on its stack.
func (r *run) invoke(th *glua.LState, fn glua.LValue, args ...glua.LValue) error {
	th.SetTop(0)
	th.Push(fn)
	for _, v := range args {
		th.Push(v)
	}
	err := th.PCall(len(args), glua.MultRet, nil)
	if err != nil && r.over() && r.line == 0 {
		r.line, _ = splitLine(r.errorText(errorValue(err)))
	}
	return err
}

// protected calls the function at 1 with the arguments from first on, on a
// thread of its own: gopher-lua unwinds an error by detaching the variables
// that closures share on the whole stack of the thread, not only above the
// pcall. Limits are not caught.
func (r *run) protected(L *glua.LState, first int) (results []glua.LValue, failed glua.LValue) {
	th := r.thread(L)
	current := L.G.CurrentThread
	defer func() {
		L.G.CurrentThread = current
		r.idle(th)
	}()
	var args []glua.LValue
	for i := first; i <= L.GetTop(); i++ {
		args = append(args, L.Get(i))
	}
	err := r.invoke(th, L.Get(1), args...)
	if r.over() {
		r.raise(L)
	}
	if err != nil {
		return nil, errorValue(err)
	}
	for i := 1; i <= th.GetTop(); i++ {
		results = append(results, th.Get(i))
	}
	return results, nil
}

func (r *run) pcall(L *glua.LState) int {
	L.CheckAny(1)
	results, failed := r.protected(L, 2)
	if failed != nil {
		L.Push(glua.LFalse)
		L.Push(failed)
		return 2
	}
	return pushAll(L, results)
}

func (r *run) xpcall(L *glua.LState) int {
	handler := L.CheckFunction(2)
	L.CheckAny(1)
	results, failed := r.protected(L, 3)
	if failed == nil {
		return pushAll(L, results)
	}
	L.Push(glua.LFalse)
	L.Push(handler)
	L.Push(failed)
	L.Call(1, 1)
	return 2
}

func pushAll(L *glua.LState, results []glua.LValue) int {
	L.Push(glua.LTrue)
	for _, v := range results {
		L.Push(v)
	}
	return len(results) + 1
}

// errorValue is what a script was given as an error.
func errorValue(err error) glua.LValue {
	if api, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns nothing else
		return api.Object
	}
	return glua.LString(err.Error())
}

// openCoroutine puts the stopper under the coroutines of gopher-lua: as they are
// they are not stopped, and nest until Go's stack is full.
func (r *run) openCoroutine(L *glua.LState) {
	glua.OpenCoroutine(L)
	L.Pop(1)
	lib := L.GetGlobal("coroutine").(*glua.LTable)
	create := lib.RawGetString("create").(*glua.LFunction).GFunction
	wrap := lib.RawGetString("wrap").(*glua.LFunction).GFunction
	resume := lib.RawGetString("resume").(*glua.LFunction).GFunction
	within := func(L, th *glua.LState, f glua.LGFunction) int {
		if _, runs := r.threads[th]; runs {
			return f(L) // which refuses
		}
		r.enter(L, th)
		defer delete(r.threads, th)
		return f(L)
	}
	lib.RawSetString("create", L.NewFunction(func(L *glua.LState) int {
		n := create(L)
		L.ToThread(-1).SetContext(r.stopper)
		return n
	}))
	lib.RawSetString("resume", L.NewFunction(func(L *glua.LState) int {
		return within(L, L.CheckThread(1), resume)
	}))
	lib.RawSetString("wrap", L.NewFunction(func(L *glua.LState) int {
		wrap(L)
		inner := L.Get(-1).(*glua.LFunction)
		th := inner.Upvalues[0].Value().(*glua.LState)
		th.SetContext(r.stopper)
		L.Push(L.NewClosure(func(L *glua.LState) int { return within(L, th, inner.GFunction) }, th))
		return 1
	}))
}
