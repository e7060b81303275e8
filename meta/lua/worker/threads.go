package worker

import glua "github.com/yuin/gopher-lua"

// thread returns a thread, which release makes idle again.
func (r *run) thread(L *glua.LState) *glua.LState {
	if n := len(r.idleThreads); n > 0 {
		th := r.idleThreads[n-1]
		r.idleThreads = r.idleThreads[:n-1]
		return th
	}
	th, _ := L.NewThread() // the run's context cancels it
	th.SetContext(r.stopper)
	return th
}

func (r *run) release(th *glua.LState) {
	th.SetTop(0)
	r.idleThreads = append(r.idleThreads, th)
}

// invoke calls a function on a thread. The results are on its stack.
func (r *run) invoke(th *glua.LState, fn glua.LValue, args ...glua.LValue) error {
	th.SetTop(0)
	th.Push(fn)
	for _, v := range args {
		th.Push(v)
	}
	err := th.PCall(len(args), glua.MultRet, nil)
	if err != nil && r.isOver() && r.line == 0 {
		r.line, _ = splitLine(r.errorText(errorValue(err)))
	}
	return err
}

// protected calls the function at 1, with arguments starting at first, on its own thread.
// gopher-lua unwinds an error by detaching closures' shared variables on the thread's
// whole stack, not only above the pcall. Exceeded limits are not caught.
func (r *run) protected(L *glua.LState, first int) (results []glua.LValue, failed glua.LValue) {
	th := r.thread(L)
	current := L.G.CurrentThread
	defer func() {
		L.G.CurrentThread = current
		r.release(th)
	}()
	var args []glua.LValue
	for i := first; i <= L.GetTop(); i++ {
		args = append(args, L.Get(i))
	}
	err := r.invoke(th, L.Get(1), args...)
	if r.isOver() {
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

func errorValue(err error) glua.LValue {
	if api, ok := err.(*glua.ApiError); ok { //nolint:errorlint // PCall returns nothing else
		return api.Object
	}
	return glua.LString(err.Error())
}

// openCoroutine adds the coroutine library. The stopper also stops its coroutines.
func (r *run) openCoroutine(L *glua.LState) {
	glua.OpenCoroutine(L)
	L.Pop(1)
	lib := L.GetGlobal("coroutine").(*glua.LTable)
	for name, thread := range map[string]func(made glua.LValue) glua.LValue{
		"create": func(made glua.LValue) glua.LValue { return made },
		"wrap":   func(made glua.LValue) glua.LValue { return made.(*glua.LFunction).Upvalues[0].Value() },
	} {
		plain := lib.RawGetString(name).(*glua.LFunction).GFunction
		lib.RawSetString(name, L.NewFunction(func(L *glua.LState) int {
			n := plain(L)
			thread(L.Get(-1)).(*glua.LState).SetContext(r.stopper)
			return n
		}))
	}
}
