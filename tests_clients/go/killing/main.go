// killing commits offsets without end, as members of groups and in transactions, to a broker that is killed again and
// again. What was asked and what was heard stands on stdout, one JSON object a line; the end of stdin is its end.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// pause between two commits: a history has to be read by somebody.
	pause = 5 * time.Millisecond
	// patience is longer than a broker takes to come back.
	patience  = 10 * time.Second
	readEvery = 10
)

// place is where everybody commits, and how they reach it.
type place struct {
	address    string
	topic      string
	copies     string
	partitions int
}

func main() {
	var where place
	flag.StringVar(&where.address, "address", "", "the broker")
	flag.StringVar(&where.topic, "topic", "", "whose offsets are committed")
	flag.StringVar(&where.copies, "copies", "", "where transactions produce to")
	flag.IntVar(&where.partitions, "partitions", 1, "of the topic")
	groups := flag.Int("groups", 1, "groups of two members")
	transactors := flag.Int("transactors", 1, "clients that commit in transactions")
	flag.Parse()

	over, end := context.WithCancel(context.Background())
	var everybody sync.WaitGroup
	for group := range *groups {
		name := fmt.Sprintf("go-c-%d", group)
		everybody.Go(func() { where.stay(over, name, name+"-stays") })
		everybody.Go(func() { where.comeAndGo(over, name, name+"-comes") })
	}
	for number := range *transactors {
		everybody.Go(func() { where.transact(over, fmt.Sprintf("go-t-%d", number)) })
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	end()
	everybody.Wait()
}

// read tells the offsets of a group, if there is an answer. Those of a transaction that is not quite over are left out:
// its commit is answered when it is decided, and becomes visible a little later.
func (w place) read(client *kgo.Client, group string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Group, fetch.RequireStable = group, true
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic = w.topic
	for number := range int32(w.partitions) {
		topic.Partitions = append(topic.Partitions, number)
	}
	fetch.Topics = append(fetch.Topics, topic)
	began := now()
	answer, err := fetch.RequestWith(ctx, client)
	if err != nil || answer.ErrorCode != 0 {
		return
	}
	offsets := map[int32]int64{}
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if partition.ErrorCode == 0 {
				offsets[partition.Partition] = partition.Offset
			}
		}
	}
	if len(offsets) > 0 {
		tell(line{Event: "read", Group: group, Offsets: offsets, Began: began, Ended: now()})
	}
}

// options of every client: back soon when the broker is back.
func (w place) options(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(w.address),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.MetadataMaxAge(5 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}, more...)
}

// must: options that are wrong are a mistake of this program.
func must(client *kgo.Client, err error) *kgo.Client {
	if err != nil {
		panic(err)
	}
	return client
}

// wait is false when everything is over.
func wait(over context.Context, long time.Duration) bool {
	select {
	case <-over.Done():
		return false
	case <-time.After(long):
		return true
	}
}
