// The etcd that Kubernetes itself is tested with. Debian's 3.4 lacks the progress
// requests that streamed lists need, so every informer would fall back and say so.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
