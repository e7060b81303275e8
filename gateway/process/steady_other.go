//go:build !unix

package process

func stayRunning() {}
