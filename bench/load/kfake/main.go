// kfake runs franz-go's kfake, a broker in memory, on the port that is given.
package main

import (
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	fake "github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := fake.NewCluster(fake.NumBrokers(1), fake.Ports(port))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
}
