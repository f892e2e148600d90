// Pause holds a pod's namespaces open. With a number it sleeps that many
// seconds and exits, which is all the work a test job needs to do.
package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	var done <-chan time.Time
	if len(os.Args) > 1 {
		seconds, err := strconv.Atoi(os.Args[1])
		if err != nil {
			os.Stderr.WriteString("usage: pause [SECONDS]\n")
			os.Exit(2)
		}
		done = time.After(time.Duration(seconds) * time.Second)
	}
	select {
	case <-stop:
	case <-done:
	}
}
