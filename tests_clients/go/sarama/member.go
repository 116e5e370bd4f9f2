package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"kohort/tests_clients/lines"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

// member is a consumer with a group, and the handler that sarama calls.
type member struct {
	name    string
	group   sarama.ConsumerGroup
	stopped context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	session sarama.ConsumerGroupSession
	// again ends a session, so that another one begins where it is told to.
	again context.CancelFunc
	seeks map[lines.Partition]int64
	// next is what a commit commits: the offset behind the last record that was told.
	next           map[lines.Partition]int64
	told           []lines.Partition
	toldGeneration int32
}

func (d *driver) open(command lines.Command) error {
	config := d.consumerConfig(command)
	config.Consumer.Offsets.AutoCommit.Enable = command.AutoCommit
	config.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	group, err := sarama.NewConsumerGroup(d.address, command.Group, config)
	if err != nil {
		return err
	}
	m := &member{
		name: command.Name, group: group, seeks: map[lines.Partition]int64{}, next: map[lines.Partition]int64{}, toldGeneration: -1,
	}
	m.stopped, m.stop = context.WithCancel(context.Background())
	m.ended.Go(func() { m.consume(command.Topics) })
	m.ended.Go(m.tell)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members[command.Name] = m
	return nil
}

// consumerConfig is that of all consumers with a group. Heartbeats are frequent so that rebalances are soon noticed.
func (d *driver) consumerConfig(command lines.Command) *sarama.Config {
	config := d.config()
	config.ClientID = command.Name
	config.Metadata.RefreshFrequency = time.Second
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[command.Assignor]()}
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	config.Consumer.Group.Session.Timeout = command.Session()
	config.Consumer.Group.InstanceId = command.Instance
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if command.ReadCommitted() {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	return config
}

// consume joins again whenever a session has ended, as sarama asks its users to.
func (m *member) consume(topics []string) {
	for m.stopped.Err() == nil {
		var until context.Context
		m.mu.Lock()
		until, m.again = context.WithCancel(m.stopped)
		m.mu.Unlock()
		err := m.group.Consume(until, topics, m)
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
	}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = session
	m.next = map[lines.Partition]int64{}
	for at, offset := range m.seeks {
		session.MarkOffset(at.Topic, at.Number, offset, "")
		session.ResetOffset(at.Topic, at.Number, offset, "")
	}
	clear(m.seeks)
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	at := lines.Partition{Topic: claim.Topic(), Number: claim.Partition()}
	for message := range claim.Messages() {
		m.mu.Lock()
		m.next[at] = message.Offset + 1
		m.mu.Unlock()
		lines.Records(m.name, lines.Record{message.Topic, message.Partition, message.Offset, string(message.Value)})
		session.MarkMessage(message, "")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.next, at)
	return nil
}

// tell looks at the session again and again: a handler is not called when only the generation has changed.
func (m *member) tell() {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-m.stopped.Done():
			return
		case <-ticks.C:
		}
		m.mu.Lock()
		if m.session != nil && m.session.Context().Err() == nil {
			generation, owned := m.session.GenerationID(), claims(m.session)
			if generation != m.toldGeneration || !slices.Equal(owned, m.told) {
				m.told, m.toldGeneration = owned, generation
				lines.Owns(m.name, generation, owned)
			}
		}
		m.mu.Unlock()
	}
}

func claims(session sarama.ConsumerGroupSession) []lines.Partition {
	var owned []lines.Partition
	for topic, numbers := range session.Claims() {
		for _, number := range numbers {
			owned = append(owned, lines.Partition{Topic: topic, Number: number})
		}
	}
	slices.SortFunc(owned, func(a, b lines.Partition) int {
		return 1000*strings.Compare(a.Topic, b.Topic) + int(a.Number-b.Number)
	})
	return owned
}

// commit gives the offsets with their metadata to the session, which tells nobody how it went.
func (m *member) commit(metadata string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, offset := range m.next {
		// An offset that is marked already keeps its metadata unless it is set back.
		m.session.ResetOffset(at.Topic, at.Number, offset, metadata)
	}
	m.session.Commit()
}

func (m *member) seek(at lines.Partition, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seeks[at] = offset
	m.again()
}

func (m *member) close() error {
	m.stop()
	m.ended.Wait()
	return m.group.Close()
}
