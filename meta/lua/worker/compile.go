package worker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Guards implement constructs with more meaning than in Lua. They are locals around the
// script, with names that no script can write.
const (
	guardAwait = "(await)" // x:await()
	guardAll   = "(all)"   // all{…}: the variable all, the table, deferred indices
)

var guardNames = []string{guardAwait, guardAll}

type program struct {
	proto    *glua.FunctionProto
	shadowed int // line that redefines "result", or 0
}

func (p *program) shadowHint() string {
	if p.shadowed == 0 {
		return ""
	}
	return fmt.Sprintf(" Line %d redefines `result`, so result(…) no longer calls Goblin's function: use another name, or `return` the value.", p.shadowed)
}

func compile(script string) (p *program, err error) {
	defer func() {
		if v := recover(); v != nil { // from the library's parser
			p, err = nil, &Error{Kind: Syntax, Message: fmt.Sprintf("the script cannot be parsed: %v", v)}
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(script), chunkName)
	if err != nil {
		return nil, syntaxError(err, script)
	}
	p = &program{}
	(&rewriter{prog: p}).walk(reflect.ValueOf(chunk))
	body := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: chunk}
	last := strings.Count(script, "\n") + 1
	setLine(body, 1)
	body.SetLastLine(last)
	locals := setLine(&ast.LocalAssignStmt{Names: guardNames, Exprs: []ast.Expr{setLine(&ast.Comma3Expr{}, 1)}}, 1)
	run := setLine(&ast.ReturnStmt{Exprs: []ast.Expr{setLine(&ast.FuncCallExpr{Func: body}, 1)}}, 1)
	p.proto, err = glua.Compile([]ast.Stmt{locals, run}, chunkName)
	if err != nil {
		return nil, syntaxError(err, script)
	}
	return p, nil
}

func syntaxError(err error, script string) *Error {
	var inParser *parse.Error
	var inCompiler *glua.CompileError
	switch {
	case errors.As(err, &inParser) && inParser.Pos.Line == parse.EOF:
		return &Error{Kind: Syntax, Line: strings.Count(strings.TrimRight(script, "\n"), "\n") + 1, Message: inParser.Message + " at the end of the script"}
	case errors.As(err, &inParser):
		return &Error{Kind: Syntax, Line: inParser.Pos.Line, Message: fmt.Sprintf("%s near %q", inParser.Message, inParser.Token)}
	case errors.As(err, &inCompiler):
		return &Error{Kind: Syntax, Line: inCompiler.Line, Message: inCompiler.Message}
	}
	return &Error{Kind: Syntax, Message: err.Error()}
}

func setLine[N ast.PositionHolder](n N, line int) N {
	n.SetLine(line)
	n.SetLastLine(line)
	return n
}

type rewriter struct {
	prog    *program
	calls   int // calls in the current function
	varargs int // in it
}

func (rw *rewriter) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if n, ok := v.Interface().(ast.PositionHolder); ok {
			v.Set(reflect.ValueOf(rw.node(n)))
			return
		}
		rw.walk(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			rw.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			rw.walk(v.Field(i))
		}
	}
}

func (rw *rewriter) node(n ast.PositionHolder) ast.PositionHolder {
	rw.names(n)
	switch n := n.(type) {
	case *ast.StringConcatOpExpr:
		rw.calls++ // possibly of a metamethod
	case *ast.FuncCallExpr:
		return rw.call(n)
	case *ast.FunctionExpr:
		calls, varargs := rw.calls, rw.varargs
		defer func() { rw.calls, rw.varargs = calls, varargs }()
	case *ast.Comma3Expr:
		rw.varargs++
	}
	rw.walk(reflect.ValueOf(n).Elem())
	return n
}

func (rw *rewriter) names(n ast.PositionHolder) {
	var names []string
	var assigned []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		assigned = n.Lhs
	case *ast.FuncDefStmt:
		assigned = []ast.Expr{n.Name.Func}
	case *ast.LocalAssignStmt:
		names = n.Names
	case *ast.NumberForStmt:
		names = []string{n.Name}
	case *ast.GenericForStmt:
		names = n.Names
	case *ast.FunctionExpr:
		names = n.ParList.Names
	}
	for _, e := range assigned {
		if name, ok := e.(*ast.IdentExpr); ok {
			names = append(names, name.Value)
		}
	}
	if slices.Contains(names, "result") && rw.prog.shadowed == 0 {
		rw.prog.shadowed = max(n.Line(), 1)
	}
}

func guardCall(e *ast.FuncCallExpr, guard string, args ...ast.Expr) *ast.FuncCallExpr {
	fn := setLine(&ast.IdentExpr{Value: guard}, e.Line())
	return setLine(&ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: e.AdjustRet}, e.Line())
}

func (rw *rewriter) call(e *ast.FuncCallExpr) ast.Expr {
	rw.calls++
	if fn, ok := e.Func.(*ast.IdentExpr); ok && fn.Value == "all" && len(e.Args) == 1 {
		if t, ok := e.Args[0].(*ast.TableExpr); ok {
			which := setLine(&ast.StringExpr{Value: rw.deferEntries(t)}, e.Line())
			return guardCall(e, guardAll, fn, t, which)
		}
	}
	rw.walk(reflect.ValueOf(e).Elem())
	if e.Receiver == nil || e.Method != "await" || len(e.Args) > 0 {
		return e
	}
	switch r := e.Receiver.(type) { // only the first value counts
	case *ast.FuncCallExpr:
		r.AdjustRet = true
	case *ast.Comma3Expr:
		r.AdjustRet = true
	}
	return guardCall(e, guardAwait, e.Receiver)
}

// deferEntries wraps positional entries of a table that make calls in functions, and
// returns their indices. Entries with ... cannot be wrapped and stay unchanged.
func (rw *rewriter) deferEntries(t *ast.TableExpr) string {
	var which []byte
	index := 0
	for _, f := range t.Fields {
		calls, varargs := rw.calls, rw.varargs
		rw.walk(reflect.ValueOf(f))
		if f.Key != nil {
			continue
		}
		index++
		if rw.calls == calls || rw.varargs != varargs {
			continue
		}
		line := f.Value.Line()
		ret := setLine(&ast.ReturnStmt{Exprs: []ast.Expr{f.Value}}, line)
		f.Value = setLine(&ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{ret}}, line)
		which = append(strconv.AppendInt(which, int64(index), 10), ' ')
	}
	return string(which)
}
