package main

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	commitTopic      = "bench"
	commitPartitions = 10
	commitGroups     = 100
)

// commit measures OffsetCommit of 10 partitions in closed loop: each connection has always `depth` requests on the
// way, and sends the next when an answer comes. The groups have no members, as with a consumer that assigns itself.
func commit(args []string) error {
	flags, addr := options("commit")
	conns := flags.Int("conns", 1, "connections")
	depth := flags.Int("depth", 1, "requests in flight on each")
	lead := flags.Duration("lead", time.Second, "time before the measurement")
	prepare := flags.Bool("prepare", true, "make the topic first and wait for the coordinators")
	length := flags.Duration("for", 4*time.Second, "time of the measurement")
	server := flags.Int("server", 0, "number of the server's process, to see what it uses; 0: not here")
	security := securityFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	debug.SetGCPercent(400)
	if *prepare {
		if err := prepareCommits(*addr, security); err != nil {
			return err
		}
	}
	committers := make([]*committer, *conns)
	for number := range committers {
		connection, err := security.dial(*addr)
		if err != nil {
			return err
		}
		defer connection.Close()
		committers[number] = newCommitter(connection, number**depth, *depth)
	}
	begin := time.Now().Add(*lead)
	end := begin.Add(*length)
	usedBefore := make(chan [2]float64, 1)
	time.AfterFunc(*lead, func() { usedBefore <- [2]float64{processorSeconds(), processorSecondsOf(*server)} })
	if err := together(*conns, func(number int) error { return committers[number].run(begin, end) }); err != nil {
		return err
	}
	before := <-usedBefore
	used, usedByServer := processorSeconds()-before[0], processorSecondsOf(*server)-before[1]
	parts := make([]latencies, *conns)
	for number, committer := range committers {
		parts[number] = committer.measured
	}
	all := merged(parts)
	return print(map[string]any{
		"rate":         float64(len(all)) / length.Seconds(),
		"p50_ms":       all.at(0.50),
		"p99_ms":       all.at(0.99),
		"answers":      len(all),
		"client_cores": used / length.Seconds(),
		"server_cores": usedByServer / length.Seconds(),
	})
}

// prepareCommits makes the topic and has every group's coordinator loaded. Who logs in is not one who may make topics:
// `permit` has done that then.
func prepareCommits(addr string, security *security) error {
	connection, err := security.dial(addr)
	if err != nil {
		return err
	}
	defer connection.Close()
	if security.user == "" {
		if err := makeTopic(connection, commitTopic, commitPartitions); err != nil {
			return err
		}
	}
	for number := range commitGroups {
		if err := awaitCoordinator(connection, commitGroup(number)); err != nil {
			return err
		}
	}
	return nil
}

func commitGroup(number int) string {
	return fmt.Sprintf("%s%d", groupPrefix, number%commitGroups)
}

// committer is one connection with its requests.
type committer struct {
	*conn
	requests []*kmsg.OffsetCommitRequest
	sentAt   []time.Time
	good     []byte
	measured latencies
}

func newCommitter(connection *conn, first, depth int) *committer {
	c := &committer{conn: connection, sentAt: make([]time.Time, depth)}
	for number := range depth {
		c.requests = append(c.requests, commitRequest(commitGroup(first+number)))
	}
	return c
}

func commitRequest(group string) *kmsg.OffsetCommitRequest {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Version = 8
	request.Group = group
	request.Generation = -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = commitTopic
	for number := range commitPartitions {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition = int32(number)
		partition.Metadata = kmsg.StringPtr("m")
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	return request
}

// run keeps the requests on the way until the end; what is answered between begin and end is measured. The time of an
// answer is the time when the system gave it to us, not when we came to look at it behind others of the same read.
func (c *committer) run(begin, end time.Time) error {
	if err := c.SetDeadline(end.Add(patience)); err != nil {
		return err
	}
	depth := int32(len(c.requests))
	next := int32(0) // the request that has not left yet
	for range depth {
		if err := c.enqueue(); err != nil {
			return err
		}
	}
	for c.received < c.sent {
		if err := c.out.Flush(); err != nil {
			return err
		}
		for now := time.Now(); next < c.sent; next++ {
			c.sentAt[next%depth] = now
		}
		if err := c.await(); err != nil {
			return err
		}
		now := time.Now()
		for c.arrived() {
			if now.After(begin) && now.Before(end) {
				c.measured = append(c.measured, now.Sub(c.sentAt[c.received%depth]))
			}
			if err := c.check(); err != nil {
				return err
			}
			if now.Before(end) {
				if err := c.enqueue(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *committer) enqueue() error {
	request := c.requests[int(c.sent)%len(c.requests)]
	partitions := request.Topics[0].Partitions
	for number := range partitions {
		partitions[number].Offset++
	}
	return c.put(request)
}

// check takes an answer and looks at all of its error codes. Good answers are equal to the last byte, so that only the
// first of them needs to be read.
func (c *committer) check() error {
	body, err := c.take()
	if err != nil || bytes.Equal(body, c.good) {
		return err
	}
	answer := c.requests[0].ResponseKind().(*kmsg.OffsetCommitResponse)
	if err := understand(body, answer); err != nil {
		return err
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != commitPartitions {
		return fmt.Errorf("OffsetCommit: not all partitions are answered: %x", body)
	}
	for _, partition := range answer.Topics[0].Partitions {
		if partition.ErrorCode != noError {
			return fmt.Errorf("OffsetCommit: error %d for partition %d", partition.ErrorCode, partition.Partition)
		}
	}
	c.good = bytes.Clone(body)
	return nil
}
