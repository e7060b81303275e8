//go:build !race

package lua_test

const racing = false
