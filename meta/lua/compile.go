package lua

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	chunkName  = "script"
	maxNesting = 500 // expressions and blocks within each other
	// maxConstants is how many names, numbers and strings a function may have:
	// the compiler compares each with all before.
	maxConstants = 4000
)

// Operations that can allocate without bound in one instruction, or that mean
// more here than in Lua, are calls of these functions. They are locals around
// the script under names that no script can write.
const (
	guardConcat = "(concat)" // a .. b .. c
	guardSet    = "(set)"    // t[k] = v, unless k is a constant string
	guardKey    = "(key)"    // {[k] = v}
	guardAwait  = "(await)"  // x:await()
	guardAll    = "(all)"    // all{…}: the variable all, the table, which entries are deferred
)

var guardNames = []string{guardConcat, guardSet, guardKey, guardAwait, guardAll}

// program is a script that was compiled.
type program struct {
	proto    *glua.FunctionProto
	shadowed int // the line that takes the name "result" for something else; 0: none
}

func (p *program) shadowHint() string {
	if p.shadowed == 0 {
		return ""
	}
	return fmt.Sprintf(" Line %d gives the name `result` to something else, so result(…) is not Goblin's function after it: choose another name, or `return` the value.", p.shadowed)
}

// compile parses a script, puts the guards in, and compiles it.
func compile(script string) (p *program, err error) {
	if len(script) > MaxScript {
		return nil, &Error{Kind: Syntax, Message: fmt.Sprintf("the script has %d bytes; the longest has %s", len(script), bytesText(MaxScript))}
	}
	defer func() {
		if v := recover(); v != nil { // the library's parser, or refuse below
			p = nil
			var own *Error
			if e, ok := v.(error); !ok || !errors.As(e, &own) {
				own = &Error{Kind: Syntax, Message: fmt.Sprintf("the script cannot be parsed: %v", v)}
			}
			err = own
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(script), chunkName)
	if err != nil {
		return nil, syntaxError(err, script)
	}
	p = &program{}
	rw := rewriter{prog: p, known: map[string]struct{}{}}
	body := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: rw.block(chunk)}
	last := strings.Count(script, "\n") + 1
	at(body, 1)
	body.SetLastLine(last)
	locals := at(&ast.LocalAssignStmt{Names: guardNames, Exprs: []ast.Expr{at(&ast.Comma3Expr{}, 1)}}, 1)
	run := at(&ast.ReturnStmt{Exprs: []ast.Expr{at(&ast.FuncCallExpr{Func: body}, 1)}}, 1)
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

// at sets the line of a node that the parser did not make.
func at[N ast.PositionHolder](n N, line int) N {
	n.SetLine(line)
	n.SetLastLine(line)
	return n
}

// rewriter puts the guards into a syntax tree.
type rewriter struct {
	prog    *program
	depth   int
	calls   int                 // calls seen in the function at hand
	varargs int                 // uses of ... seen in it
	known   map[string]struct{} // its names, numbers and strings
}

func (rw *rewriter) constant(line int, text string) {
	if rw.known[text] = struct{}{}; len(rw.known) > maxConstants {
		panic(&Error{Kind: Syntax, Line: line, Message: fmt.Sprintf("more than %d different names, numbers and strings in one function", maxConstants)})
	}
}

func (rw *rewriter) enter(n ast.PositionHolder) {
	if rw.depth++; rw.depth > maxNesting {
		panic(&Error{Kind: Syntax, Line: n.Line(), Message: fmt.Sprintf("more than %d expressions and blocks within each other", maxNesting)})
	}
}

func (rw *rewriter) leave() { rw.depth-- }

// named notes that the script gives a name to something.
func (rw *rewriter) named(line int, names ...string) {
	for _, name := range names {
		if name == "result" && rw.prog.shadowed == 0 {
			rw.prog.shadowed = max(line, 1)
		}
	}
}

func (rw *rewriter) block(in []ast.Stmt) []ast.Stmt {
	out := make([]ast.Stmt, len(in))
	for i, s := range in {
		rw.enter(s)
		out[i] = rw.stmt(s)
		rw.leave()
	}
	return out
}

func (rw *rewriter) stmt(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return rw.assign(s)
	case *ast.LocalAssignStmt:
		rw.named(s.Line(), s.Names...)
		rw.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = rw.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = rw.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = rw.expr(s.Condition)
		s.Stmts = rw.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = rw.expr(s.Condition)
		s.Stmts = rw.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = rw.expr(s.Condition)
		s.Then = rw.block(s.Then)
		s.Else = rw.block(s.Else)
	case *ast.NumberForStmt:
		rw.named(s.Line(), s.Name)
		s.Init, s.Limit, s.Step = rw.expr(s.Init), rw.expr(s.Limit), rw.expr(s.Step)
		s.Stmts = rw.block(s.Stmts)
	case *ast.GenericForStmt:
		rw.named(s.Line(), s.Names...)
		rw.exprs(s.Exprs)
		s.Stmts = rw.block(s.Stmts)
	case *ast.FuncDefStmt:
		if name, ok := s.Name.Func.(*ast.IdentExpr); ok {
			rw.named(s.Line(), name.Value)
		}
		rw.expr(s.Func)
	case *ast.ReturnStmt:
		rw.exprs(s.Exprs)
	}
	return s
}

// assign turns each t[k] = v into a call, unless k is a constant string.
func (rw *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	line, guarded := s.Line(), false
	for i, e := range s.Lhs {
		if name, ok := e.(*ast.IdentExpr); ok {
			rw.named(line, name.Value)
		}
		s.Lhs[i] = rw.expr(e)
		guarded = guarded || dynamic(e) != nil
	}
	rw.exprs(s.Rhs)
	if !guarded {
		return s
	}
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		a := dynamic(s.Lhs[0])
		return at(&ast.FuncCallStmt{Expr: call(line, guardSet, a.Object, a.Key, s.Rhs[0])}, line)
	}
	// All of both sides is evaluated before anything is assigned.
	places, values := at(&ast.LocalAssignStmt{}, line), at(&ast.LocalAssignStmt{Exprs: s.Rhs}, line)
	var stores []ast.Stmt
	for i, e := range s.Lhs {
		value := fmt.Sprintf("(v%d)", i)
		values.Names = append(values.Names, value)
		a := dynamic(e)
		if a == nil {
			stores = append(stores, at(&ast.AssignStmt{Lhs: []ast.Expr{e}, Rhs: []ast.Expr{ident(line, value)}}, line))
			continue
		}
		object, key := fmt.Sprintf("(o%d)", i), fmt.Sprintf("(k%d)", i)
		places.Names = append(places.Names, object, key)
		places.Exprs = append(places.Exprs, single(a.Object), single(a.Key))
		stores = append(stores, at(&ast.FuncCallStmt{
			Expr: call(line, guardSet, ident(line, object), ident(line, key), ident(line, value)),
		}, line))
	}
	return at(&ast.DoBlockStmt{Stmts: append([]ast.Stmt{places, values}, stores...)}, line)
}

func dynamic(e ast.Expr) *ast.AttrGetExpr {
	if a, ok := e.(*ast.AttrGetExpr); ok {
		if _, constant := a.Key.(*ast.StringExpr); !constant {
			return a
		}
	}
	return nil
}

// single makes an expression give one value.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func ident(line int, name string) *ast.IdentExpr { return at(&ast.IdentExpr{Value: name}, line) }

func call(line int, fn string, args ...ast.Expr) *ast.FuncCallExpr {
	return at(&ast.FuncCallExpr{Func: ident(line, fn), Args: args}, line)
}

func (rw *rewriter) exprs(es []ast.Expr) {
	for i, e := range es {
		es[i] = rw.expr(e)
	}
}

func (rw *rewriter) expr(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	rw.enter(e)
	defer rw.leave()
	switch e := e.(type) {
	case *ast.Comma3Expr:
		rw.varargs++
	case *ast.IdentExpr:
		rw.constant(e.Line(), e.Value)
	case *ast.NumberExpr:
		rw.constant(e.Line(), e.Value)
	case *ast.StringExpr:
		rw.constant(e.Line(), e.Value)
	case *ast.AttrGetExpr:
		e.Object, e.Key = rw.expr(e.Object), rw.expr(e.Key)
	case *ast.TableExpr:
		rw.table(e)
	case *ast.FuncCallExpr:
		return rw.call(e)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = rw.expr(e.Lhs), rw.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = rw.expr(e.Lhs), rw.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = rw.expr(e.Lhs), rw.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return rw.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = rw.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = rw.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = rw.expr(e.Expr)
	case *ast.FunctionExpr:
		calls, varargs, known := rw.calls, rw.varargs, rw.known
		rw.known = map[string]struct{}{}
		if e.ParList != nil {
			rw.named(e.Line(), e.ParList.Names...)
		}
		e.Stmts = rw.block(e.Stmts)
		rw.calls, rw.varargs, rw.known = calls, varargs, known
	}
	return e
}

func (rw *rewriter) table(e *ast.TableExpr) {
	for _, f := range e.Fields {
		rw.field(f)
	}
	small(e)
}

func (rw *rewriter) field(f *ast.Field) {
	f.Value = rw.expr(f.Value)
	if f.Key == nil {
		return
	}
	f.Key = rw.expr(f.Key)
	if _, constant := f.Key.(*ast.StringExpr); !constant {
		f.Key = call(f.Key.Line(), guardKey, f.Key)
	}
}

// small makes a table without named fields begin small when it gets some: the
// library gives room for 32 at once, 3 KiB, unless the constructor names one.
// Setting nil only makes room.
func small(e *ast.TableExpr) {
	for _, f := range e.Fields {
		if f.Key != nil {
			return
		}
	}
	room := &ast.Field{Key: at(&ast.StringExpr{}, e.Line()), Value: at(&ast.NilExpr{}, e.Line())}
	e.Fields = append([]*ast.Field{room}, e.Fields...)
}

// maxJoined is how many operands of .. one call gets: registers are scarce.
const maxJoined = 32

// concat turns a .. (b .. c), as the parser has it, into one call, or into one
// of groups if there are many.
func (rw *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	rw.calls++ // of a metamethod, perhaps
	var parts []ast.Expr
	var last ast.Expr = e
	for {
		c, ok := last.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		parts = append(parts, single(rw.expr(c.Lhs)))
		last = c.Rhs
	}
	parts = append(parts, single(rw.expr(last)))
	for len(parts) > maxJoined {
		var groups []ast.Expr
		for group := range slices.Chunk(parts, maxJoined) {
			groups = append(groups, single(call(e.Line(), guardConcat, group...)))
		}
		parts = groups
	}
	return single(call(e.Line(), guardConcat, parts...))
}

func (rw *rewriter) call(e *ast.FuncCallExpr) ast.Expr {
	rw.calls++
	if fn, ok := e.Func.(*ast.IdentExpr); ok && fn.Value == "all" && len(e.Args) == 1 {
		if t, ok := e.Args[0].(*ast.TableExpr); ok {
			which := at(&ast.StringExpr{Value: rw.deferred(t)}, e.Line())
			c := call(e.Line(), guardAll, fn, t, which)
			c.AdjustRet = e.AdjustRet
			return c
		}
	}
	e.Func = rw.expr(e.Func)
	e.Receiver = rw.expr(e.Receiver)
	rw.exprs(e.Args)
	if e.Receiver != nil && e.Method == "await" && len(e.Args) == 0 {
		c := call(e.Line(), guardAwait, single(e.Receiver))
		c.AdjustRet = e.AdjustRet
		return c
	}
	return e
}

// deferred makes functions of a table's positional entries that make calls,
// and returns their indices. What uses ... cannot move into a function; it stays
// as it is.
func (rw *rewriter) deferred(t *ast.TableExpr) string {
	var which []byte
	index := 0
	for _, f := range t.Fields {
		calls, varargs := rw.calls, rw.varargs
		rw.field(f)
		if f.Key != nil {
			continue
		}
		index++
		if rw.calls == calls || rw.varargs != varargs {
			continue
		}
		line := f.Value.Line()
		ret := at(&ast.ReturnStmt{Exprs: []ast.Expr{f.Value}}, line)
		f.Value = at(&ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{ret}}, line)
		which = append(strconv.AppendInt(which, int64(index), 10), ' ')
	}
	return string(which)
}
