package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"kohort/tests_clients/lines"
)

var balancers = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

// member is a client with a group.
type member struct {
	name    string
	client  *kgo.Client
	stopped context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu    sync.Mutex
	owned map[lines.Partition]bool
	// next is what a commit commits: the offset behind the last record that was told.
	next           map[string]map[int32]kgo.EpochOffset
	told           []lines.Partition
	toldGeneration int32
}

func (d *driver) open(command lines.Command) error {
	m := &member{
		name: command.Name, owned: map[lines.Partition]bool{}, next: map[string]map[int32]kgo.EpochOffset{}, toldGeneration: -1,
	}
	m.stopped, m.stop = context.WithCancel(context.Background())
	options := append(consumerOptions(d.address, command),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { m.assigned(got) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.revoked(gone) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.revoked(gone) }),
	)
	if command.AutoCommit {
		options = append(options, kgo.AutoCommitInterval(100*time.Millisecond))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	var err error
	if m.client, err = kgo.NewClient(options...); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members[command.Name] = m
	m.ended.Go(m.poll)
	m.ended.Go(m.tell)
	return nil
}

// consumerOptions are those of all consumers with a group. Heartbeats are frequent so that rebalances are soon noticed.
func consumerOptions(address string, command lines.Command) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(address),
		kgo.ClientID(command.Name),
		kgo.ConsumerGroup(command.Group),
		kgo.Balancers(balancers[command.Assignor]()),
		kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.SessionTimeout(command.Session()),
		kgo.RebalanceTimeout(30 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.ConsiderMissingTopicDeletedAfter(time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if command.Instance != "" {
		options = append(options, kgo.InstanceID(command.Instance))
	}
	if command.ReadCommitted() {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if command.Pattern != "" {
		return append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(command.Pattern))
	}
	return append(options, kgo.ConsumeTopics(command.Topics...))
}

func (m *member) poll() {
	for m.stopped.Err() == nil {
		fetches := m.client.PollFetches(m.stopped)
		for _, problem := range fetches.Errors() {
			m.report(problem.Err)
		}
		var records []lines.Record
		m.mu.Lock()
		for record := range fetches.RecordsAll() {
			records = append(records, lines.Record{record.Topic, record.Partition, record.Offset, string(record.Value)})
			if m.next[record.Topic] == nil {
				m.next[record.Topic] = map[int32]kgo.EpochOffset{}
			}
			m.next[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset + 1}
		}
		m.mu.Unlock()
		if len(records) > 0 {
			lines.Records(m.name, records...)
		}
	}
}

// report: a member that could not join joins again; anything else is its end.
func (m *member) report(problem error) {
	var isJoining *kgo.ErrGroupSession
	if errors.As(problem, &isJoining) {
		fmt.Fprintln(os.Stderr, m.name, problem)
	} else if m.stopped.Err() == nil {
		lines.Failed(m.name, problem)
	}
}

func (m *member) assigned(got map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, numbers := range got {
		for _, number := range numbers {
			m.owned[lines.Partition{Topic: topic, Number: number}] = true
		}
	}
}

func (m *member) revoked(gone map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, numbers := range gone {
		for _, number := range numbers {
			delete(m.owned, lines.Partition{Topic: topic, Number: number})
			delete(m.next[topic], number)
		}
	}
}

// tell looks at the generation again and again: a client is not called when only that has changed.
func (m *member) tell() {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-m.stopped.Done():
			return
		case <-ticks.C:
		}
		_, generation := m.client.GroupMetadata()
		m.mu.Lock()
		var owned []lines.Partition
		for partition := range m.owned {
			owned = append(owned, partition)
		}
		slices.SortFunc(owned, func(a, b lines.Partition) int {
			return 1000*strings.Compare(a.Topic, b.Topic) + int(a.Number-b.Number)
		})
		if generation >= 0 && (generation != m.toldGeneration || !slices.Equal(owned, m.told)) {
			m.told, m.toldGeneration = owned, generation
			lines.Owns(m.name, generation, owned)
		}
		m.mu.Unlock()
	}
}

// commit adds metadata to the request as it goes out: franz-go's own commits have none.
func (m *member) commit(ctx context.Context, metadata string) error {
	m.mu.Lock()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for topic, next := range m.next {
		offsets[topic] = map[int32]kgo.EpochOffset{}
		for number, offset := range next {
			offsets[topic][number] = offset
		}
	}
	m.mu.Unlock()
	ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
		for t := range request.Topics {
			for p := range request.Topics[t].Partitions {
				request.Topics[t].Partitions[p].Metadata = &metadata
			}
		}
		return nil
	})
	var result error
	m.client.CommitOffsetsSync(ctx, offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			result = firstError(answer, err)
		})
	return result
}

func (m *member) seek(topic string, partition int32, offset int64) {
	m.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: offset}}})
}

func (m *member) close() {
	m.stop()
	m.ended.Wait()
	m.client.Close()
}
