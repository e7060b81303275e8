package remoteui_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"goblin/gateway/remoteui"
)

// asRelay makes the test binary a relay on its standard input and output. Its value is
// the daemon's socket.
const asRelay = "GOBLIN_TEST_RELAY"

func TestMain(m *testing.M) {
	if socket := os.Getenv(asRelay); socket != "" {
		beRelay(socket)
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most parallel tests wait
	goleak.VerifyTestMain(m)
}

// beRelay sends the daemon a line with its PID, shows the UI and prints the result.
func beRelay(socket string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := net.Dial("unix", socket)
	if err == nil {
		fmt.Fprintf(c, "%08d", os.Getpid())
		var reason string
		reason, err = remoteui.Relay(ctx, c, remoteui.Terminal{In: os.Stdin, Out: os.Stdout})
		fmt.Printf("reason=%q ", reason)
	}
	fmt.Printf("error=%v\n", err)
}
