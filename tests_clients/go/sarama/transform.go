package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"kohort/tests_clients/lines"
)

const (
	recordsOfTransaction = 5
	abortEvery           = 4
	patience             = 20 * time.Millisecond
)

// transformer consumes, transforms and produces exactly once: the handler that sarama calls.
type transformer struct {
	driver  *driver
	command lines.Command
	group   sarama.ConsumerGroup
	stopped context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu       sync.Mutex
	producer sarama.SyncProducer
	number   int
	count    int
}

func (d *driver) transform(command lines.Command) error {
	config := d.consumerConfig(command)
	config.Consumer.Offsets.AutoCommit.Enable = false
	group, err := sarama.NewConsumerGroup(d.address, command.Group, config)
	if err != nil {
		return err
	}
	t := &transformer{driver: d, command: command, group: group}
	t.stopped, t.cancel = context.WithCancel(context.Background())
	t.ended.Go(func() {
		for t.stopped.Err() == nil {
			err := group.Consume(t.stopped, []string{command.Source}, t)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transformers[command.Name] = t
	return nil
}

// Setup has a producer before anything is consumed: one that begins anew ends what an earlier one has left open.
func (t *transformer) Setup(sarama.ConsumerGroupSession) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.producer == nil {
		t.producer, err = t.driver.newProducer(t.command)
	}
	return err
}

func (t *transformer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim ends after a transaction that was not committed: the next session begins at what was.
func (t *transformer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		batch := gather(claim.Messages())
		if len(batch) == 0 || !t.transact(session, batch) {
			return nil
		}
	}
}

// gather takes a few messages, or as many as come soon.
func gather(messages <-chan *sarama.ConsumerMessage) (batch []*sarama.ConsumerMessage) {
	message, ok := <-messages
	for late := time.After(patience); ok; {
		batch = append(batch, message)
		if len(batch) == recordsOfTransaction {
			return batch
		}
		select {
		case message, ok = <-messages:
		case <-late:
			return batch
		}
	}
	return batch
}

func (t *transformer) transact(session sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if session.Context().Err() != nil || t.producer == nil {
		return false
	}
	t.number++
	isToCommit := t.number%abortEvery != 0
	if err := t.try(session, batch, isToCommit); err != nil {
		_ = t.producer.Close()
		t.producer = nil
		return false
	}
	if isToCommit {
		t.count += len(batch)
		lines.Transformed(t.command.Name, t.count)
	}
	return isToCommit
}

func (t *transformer) try(session sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage, isToCommit bool) error {
	if err := t.producer.BeginTxn(); err != nil {
		return err
	}
	var values []string
	for _, message := range batch {
		values = append(values, "seen "+string(message.Value))
	}
	if err := t.producer.SendMessages(messages(t.command.Target, batch[0].Partition, values)); err != nil {
		return err
	}
	member := sarama.NewConsumerGroupMetadataFromSession(session, t.command.Group, nil)
	if err := t.producer.AddMessageToTxnWithGroupMetadata(batch[len(batch)-1], member, nil); err != nil {
		return err
	}
	lines.Sent(t.command.Name)
	if isToCommit {
		return t.producer.CommitTxn()
	}
	return t.producer.AbortTxn()
}

func (d *driver) stop(name string) error {
	d.mu.Lock()
	t := d.transformers[name]
	d.mu.Unlock()
	t.cancel()
	t.ended.Wait()
	if t.producer != nil {
		if err := t.producer.Close(); err != nil {
			return err
		}
	}
	return t.group.Close()
}
