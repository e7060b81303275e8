package interpreter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"goblin/meta/lua/wire"
)

const maxNesting = 500 // expressions and blocks within each other

// What means more here than in Lua is a call of these functions. They are locals
// around the script under names that no script can write.
const (
	guardAwait = "(await)" // x:await()
	guardAll   = "(all)"   // all{…}: the variable all, the table, which entries are deferred
)

var guardNames = []string{guardAwait, guardAll}

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
	defer func() {
		if v := recover(); v != nil { // the library's parser, or refuse below
			p = nil
			var own *wire.Error
			if e, ok := v.(error); !ok || !errors.As(e, &own) {
				own = &wire.Error{Kind: wire.Syntax, Message: fmt.Sprintf("the script cannot be parsed: %v", v)}
			}
			err = own
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(script), wire.ChunkName)
	if err != nil {
		return nil, syntaxError(err, script)
	}
	p = &program{}
	rw := rewriter{prog: p}
	body := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: rw.block(chunk)}
	last := strings.Count(script, "\n") + 1
	at(body, 1)
	body.SetLastLine(last)
	locals := at(&ast.LocalAssignStmt{Names: guardNames, Exprs: []ast.Expr{at(&ast.Comma3Expr{}, 1)}}, 1)
	run := at(&ast.ReturnStmt{Exprs: []ast.Expr{at(&ast.FuncCallExpr{Func: body}, 1)}}, 1)
	p.proto, err = glua.Compile([]ast.Stmt{locals, run}, wire.ChunkName)
	if err != nil {
		return nil, syntaxError(err, script)
	}
	return p, nil
}

func syntaxError(err error, script string) *wire.Error {
	var inParser *parse.Error
	var inCompiler *glua.CompileError
	switch {
	case errors.As(err, &inParser) && inParser.Pos.Line == parse.EOF:
		return &wire.Error{Kind: wire.Syntax, Line: strings.Count(strings.TrimRight(script, "\n"), "\n") + 1, Message: inParser.Message + " at the end of the script"}
	case errors.As(err, &inParser):
		return &wire.Error{Kind: wire.Syntax, Line: inParser.Pos.Line, Message: fmt.Sprintf("%s near %q", inParser.Message, inParser.Token)}
	case errors.As(err, &inCompiler):
		return &wire.Error{Kind: wire.Syntax, Line: inCompiler.Line, Message: inCompiler.Message}
	}
	return &wire.Error{Kind: wire.Syntax, Message: err.Error()}
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
	calls   int // calls seen in the function at hand
	varargs int // uses of ... seen in it
}

func (rw *rewriter) enter(n ast.PositionHolder) {
	if rw.depth++; rw.depth > maxNesting {
		panic(&wire.Error{Kind: wire.Syntax, Line: n.Line(), Message: fmt.Sprintf("more than %d expressions and blocks within each other", maxNesting)})
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
		for _, e := range s.Lhs {
			if name, ok := e.(*ast.IdentExpr); ok {
				rw.named(s.Line(), name.Value)
			}
		}
		rw.exprs(s.Lhs)
		rw.exprs(s.Rhs)
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
		calls, varargs := rw.calls, rw.varargs
		if e.ParList != nil {
			rw.named(e.Line(), e.ParList.Names...)
		}
		e.Stmts = rw.block(e.Stmts)
		rw.calls, rw.varargs = calls, varargs
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
	f.Key, f.Value = rw.expr(f.Key), rw.expr(f.Value)
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

// maxJoined is how many operands of .. stand beside each other: the compiler
// gives each a register, and those are scarce.
const maxJoined = 32

// concat groups the operands of a .. (b .. c), as the parser has it, if there are
// many.
func (rw *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	rw.calls++ // of a metamethod, perhaps
	var parts []ast.Expr
	var last ast.Expr = e
	for {
		c, ok := last.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		parts = append(parts, rw.expr(c.Lhs))
		last = c.Rhs
	}
	parts = append(parts, rw.expr(last))
	for len(parts) > maxJoined {
		var groups []ast.Expr
		for group := range slices.Chunk(parts, maxJoined) {
			groups = append(groups, join(e.Line(), group))
		}
		parts = groups
	}
	return join(e.Line(), parts)
}

func join(line int, parts []ast.Expr) ast.Expr {
	joined := parts[len(parts)-1]
	for _, part := range slices.Backward(parts[:len(parts)-1]) {
		joined = at(&ast.StringConcatOpExpr{Lhs: part, Rhs: joined}, line)
	}
	return joined
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
