// Targets tells Prometheus which pods to scrape. Debian builds Prometheus without
// its Kubernetes discovery, so this watches pods and writes a file_sd file:
//
//	targets OUTPUT
//
// A pod asks to be scraped with the usual annotations prometheus.io/scrape,
// prometheus.io/port and prometheus.io/path.
package main

import (
	"encoding/json"
	"log"
	"net"
	"os"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: targets OUTPUT")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	pods := factory.Core().V1().Pods()
	// Holds one: many changes between two writes need one write.
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { note() },
		UpdateFunc: func(any, any) { note() },
		DeleteFunc: func(any) { note() },
	}); err != nil {
		log.Fatal(err)
	}
	factory.Start(nil)
	factory.WaitForCacheSync(nil)
	var last []byte
	for range changed {
		all, err := pods.Lister().List(labels.Everything())
		if err != nil {
			log.Fatal(err)
		}
		if last, err = write(os.Args[1], targetsOf(all), last); err != nil {
			log.Fatal(err)
		}
		time.Sleep(time.Second)
	}
}

func targetsOf(pods []*corev1.Pod) []target {
	found := []target{}
	for _, pod := range pods {
		notes := pod.Annotations
		if notes["prometheus.io/scrape"] != "true" || pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		labels := map[string]string{"namespace": pod.Namespace, "pod": pod.Name}
		if path := notes["prometheus.io/path"]; path != "" {
			labels["__metrics_path__"] = path
		}
		address := net.JoinHostPort(pod.Status.PodIP, notes["prometheus.io/port"])
		found = append(found, target{Targets: []string{address}, Labels: labels})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Targets[0] < found[j].Targets[0] })
	return found
}

// write replaces the file in one step, and only when its content differs.
func write(path string, found []target, last []byte) ([]byte, error) {
	text, err := json.Marshal(found)
	if err != nil || string(text) == string(last) {
		return last, err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return last, err
	}
	return text, os.Rename(path+".new", path)
}
