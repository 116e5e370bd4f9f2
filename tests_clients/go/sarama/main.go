// sarama does with IBM's sarama what tests tell it on stdin.
package main

import (
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"kohort/tests_clients/lines"
)

type driver struct {
	address []string
	version sarama.KafkaVersion
	mu      sync.Mutex
	// By name: producers, members, transformers.
	producers    map[string]sarama.SyncProducer
	members      map[string]*member
	transformers map[string]*transformer
}

func main() {
	d := &driver{
		address:      os.Args[len(os.Args)-1:],
		version:      sarama.DefaultVersion,
		producers:    map[string]sarama.SyncProducer{},
		members:      map[string]*member{},
		transformers: map[string]*transformer{},
	}
	if os.Args[1] == "--newest" {
		d.version = sarama.MaxVersion
	}
	if err := lines.Serve(d.do); err != nil {
		panic(err)
	}
	for _, member := range d.members {
		if err := member.close(); err != nil {
			panic(err)
		}
	}
	for _, producer := range d.producers {
		_ = producer.Close() // a transaction that was left open on purpose is an error here
	}
}

// config has short pauses and many attempts, so that a broker may be away for some seconds.
func (d *driver) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = d.version
	config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 100, 100*time.Millisecond
	config.Admin.Retry.Max, config.Admin.Retry.Backoff = 100, 100*time.Millisecond
	config.Producer.Retry.Max, config.Producer.Retry.Backoff = 100, 100*time.Millisecond
	config.Producer.Transaction.Retry.Max, config.Producer.Transaction.Retry.Backoff = 100, 100*time.Millisecond
	config.Consumer.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.Group.Rebalance.Retry.Max = 100
	config.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	return config
}

func (d *driver) do(command lines.Command) (any, error) {
	switch command.Do {
	case "open":
		return nil, d.open(command)
	case "close":
		return nil, d.take(command.Name).close()
	case "commit":
		d.member(command.Name).commit(command.Metadata)
		return nil, nil
	case "seek":
		d.member(command.Name).seek(lines.Partition{Topic: command.Topic, Number: command.Partition}, command.Offset)
		return nil, nil
	case "send":
		return nil, d.send(command)
	case "open_producer":
		return nil, d.openProducer(command)
	case "begin":
		return nil, d.producer(command.Name).BeginTxn()
	case "end":
		if command.Commit {
			return nil, d.producer(command.Name).CommitTxn()
		}
		return nil, d.producer(command.Name).AbortTxn()
	case "transform":
		return nil, d.transform(command)
	case "stop":
		return nil, d.stop(command.Name)
	}
	return d.administer(command)
}

func (d *driver) member(name string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[name]
}

func (d *driver) take(name string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	member := d.members[name]
	delete(d.members, name)
	return member
}

func (d *driver) producer(name string) sarama.SyncProducer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.producers[name]
}

// newProducer is idempotent, and transactional if it has an id for that.
func (d *driver) newProducer(command lines.Command) (sarama.SyncProducer, error) {
	config := d.config()
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = command.TransactionalID
	if command.Compression != "" {
		if err := config.Producer.Compression.UnmarshalText([]byte(command.Compression)); err != nil {
			return nil, err
		}
	}
	if command.TransactionMs > 0 {
		config.Producer.Transaction.Timeout = command.Transaction()
	}
	return sarama.NewSyncProducer(d.address, config)
}

func (d *driver) openProducer(command lines.Command) error {
	producer, err := d.newProducer(command)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.producers[command.Name] = producer
	return nil
}

func (d *driver) send(command lines.Command) error {
	if d.producer(command.Name) == nil {
		if err := d.openProducer(command); err != nil {
			return err
		}
	}
	return d.producer(command.Name).SendMessages(messages(command.Topic, command.Partition, command.Values))
}

func messages(topic string, partition int32, values []string) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, len(values))
	for i, value := range values {
		messages[i] = &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.StringEncoder(value)}
	}
	return messages
}
