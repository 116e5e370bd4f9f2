// franzgo does with franz-go what tests tell it on stdin.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"kohort/tests_clients/lines"
)

var codecs = map[string]kgo.CompressionCodec{
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

type driver struct {
	address string
	admin   *kadm.Client
	mu      sync.Mutex
	// By name: producers, members, transformers.
	producers    map[string]*kgo.Client
	members      map[string]*member
	transformers map[string]*transformer
}

func main() {
	address := os.Args[1]
	// kadm answers from what it has heard within that time.
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		panic(err)
	}
	d := &driver{
		address:      address,
		admin:        kadm.NewClient(client),
		producers:    map[string]*kgo.Client{},
		members:      map[string]*member{},
		transformers: map[string]*transformer{},
	}
	if err := lines.Serve(d.do); err != nil {
		panic(err)
	}
	for _, member := range d.members {
		member.close()
	}
	for _, producer := range d.producers {
		producer.Close()
	}
	client.Close()
}

func (d *driver) do(command lines.Command) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	switch command.Do {
	case "open":
		return nil, d.open(command)
	case "close":
		d.take(command.Name).close()
		return nil, nil
	case "commit":
		return nil, d.member(command.Name).commit(ctx, command.Metadata)
	case "seek":
		d.member(command.Name).seek(command.Topic, command.Partition, command.Offset)
		return nil, nil
	case "send":
		return nil, d.send(ctx, command)
	case "open_producer":
		return nil, d.openProducer(ctx, command)
	case "begin":
		return nil, d.producer(command.Name).BeginTransaction()
	case "end":
		return nil, d.endTransaction(ctx, command)
	case "transform":
		return nil, d.transform(command)
	case "stop":
		return nil, d.stop(command.Name)
	}
	return d.administer(ctx, command)
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

func (d *driver) producer(name string) *kgo.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.producers[name]
}

// openProducer is idempotent, as all of franz-go's are, and transactional if it has an id for that.
func (d *driver) openProducer(ctx context.Context, command lines.Command) error {
	options := []kgo.Opt{kgo.SeedBrokers(d.address), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if command.TransactionalID != "" {
		options = append(options, kgo.TransactionalID(command.TransactionalID))
	}
	if command.Compression != "" {
		options = append(options, kgo.ProducerBatchCompression(codecs[command.Compression]))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	if command.TransactionalID != "" {
		if _, _, err := client.ProducerID(ctx); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.producers[command.Name] = client
	return nil
}

func (d *driver) send(ctx context.Context, command lines.Command) error {
	if d.producer(command.Name) == nil {
		if err := d.openProducer(ctx, command); err != nil {
			return err
		}
	}
	records := make([]*kgo.Record, len(command.Values))
	for i, value := range command.Values {
		records[i] = &kgo.Record{Topic: command.Topic, Partition: command.Partition, Value: []byte(value)}
	}
	return d.producer(command.Name).ProduceSync(ctx, records...).FirstErr()
}

func (d *driver) endTransaction(ctx context.Context, command lines.Command) error {
	producer := d.producer(command.Name)
	if !command.Commit {
		return producer.EndTransaction(ctx, kgo.TryAbort)
	}
	if err := producer.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return producer.EndTransaction(ctx, kgo.TryCommit)
}
