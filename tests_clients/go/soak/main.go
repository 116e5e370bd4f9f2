// soak keeps a broker busy for as long as it is let: groups whose members come and go, groups that are forgotten,
// transactions. Every few seconds it says on stdout, as one JSON object a line, what it did and how long that took; the
// end of stdin is its end.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

type place struct {
	address    string
	topic      string
	partitions int
}

func main() {
	var where place
	flag.StringVar(&where.address, "address", "", "the broker")
	flag.StringVar(&where.topic, "topic", "", "whose offsets are committed")
	flag.IntVar(&where.partitions, "partitions", 1, "of the topic")
	groups := flag.Int("groups", 1, "groups with members; every fifth has two")
	transactors := flag.Int("transactors", 1, "who commits in transactions")
	pause := flag.Duration("pause", 2*time.Second, "between two commits of a member")
	stay := flag.Duration("stay", time.Minute, "how long a member stays, on average")
	passing := flag.Duration("passing", 200*time.Millisecond, "a group that commits once begins so often")
	every := flag.Duration("every", 5*time.Second, "how often it tells what it did")
	flag.Parse()

	over, end := context.WithCancel(context.Background())
	var everybody sync.WaitGroup
	for group := range *groups {
		name := fmt.Sprintf("soak-%d", group)
		for range 1 + (group%5)/4 {
			everybody.Go(func() { where.comeAndGo(over, name, *pause, *stay) })
		}
	}
	everybody.Go(func() { where.pass(over, *passing) })
	everybody.Go(func() { where.ask(over, *pause/50) })
	for number := range *transactors {
		everybody.Go(func() { where.transact(over, number, *pause/10) })
	}
	everybody.Go(func() {
		for wait(over, *every) {
			tell()
		}
	})
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	end()
	everybody.Wait()
}

// comeAndGo is one member after the other. Nobody begins or commits at the same time as all others.
func (w place) comeAndGo(over context.Context, group string, pause, stay time.Duration) {
	for wait(over, around(2*pause)) {
		client, err := kgo.NewClient(
			kgo.SeedBrokers(w.address),
			kgo.ConsumerGroup(group),
			kgo.ConsumeTopics(w.topic),
			kgo.Balancers(kgo.RangeBalancer()),
			kgo.DisableAutoCommit(),
			kgo.FetchMaxWait(10*time.Second),
		)
		if err != nil {
			panic(err)
		}
		count("members")
		leaves := time.Now().Add(around(stay))
		for offset := int64(1); time.Now().Before(leaves) && wait(over, around(pause)); offset++ {
			w.commit(client, offset)
		}
		client.Close()
	}
}

// around is a time between nothing and twice as long.
func around(long time.Duration) time.Duration { return time.Duration(rand.Int64N(2 * int64(long))) }

// wait is false when everything is over.
func wait(over context.Context, long time.Duration) bool {
	select {
	case <-over.Done():
		return false
	case <-time.After(long):
		return true
	}
}
