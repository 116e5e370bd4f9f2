package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"kohort/tests_clients/lines"
)

const (
	recordsOfTransaction = 5
	abortEvery           = 4
)

// transformer consumes, transforms and produces exactly once.
type transformer struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func (d *driver) transform(command lines.Command) error {
	command.Topics = []string{command.Source}
	options := append(consumerOptions(d.address, command),
		kgo.TransactionalID(command.TransactionalID), kgo.TransactionTimeout(command.Transaction()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DisableAutoCommit())
	stopped, stop := context.WithCancel(context.Background())
	t := &transformer{stop: stop}
	t.ended.Go(func() {
		count := 0
		for stopped.Err() == nil {
			session, err := kgo.NewGroupTransactSession(options...)
			if err != nil {
				lines.Failed(command.Name, err)
				return
			}
			// No error of a session can be mended: what there is to retry has been retried.
			if err := transformAll(stopped, session, command, &count); err != nil {
				fmt.Fprintln(os.Stderr, command.Name, err)
			}
			session.Close()
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transformers[command.Name] = t
	return nil
}

// transformAll is one transaction after the other; every so many are aborted, and done again by the session.
func transformAll(ctx context.Context, session *kgo.GroupTransactSession, command lines.Command, count *int) error {
	// A producer that begins anew ends the transaction that the last one may have left open.
	if _, _, err := session.Client().ProducerID(ctx); err != nil {
		return err
	}
	for number := 1; ; number++ {
		fetches := session.PollRecords(ctx, recordsOfTransaction)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		records := fetches.Records()
		ending, cancel := context.WithTimeout(context.Background(), time.Minute)
		failed := kgo.AbortingFirstErrPromise(session.Client())
		for _, record := range records {
			changed := &kgo.Record{Topic: command.Target, Partition: record.Partition, Value: []byte("seen " + string(record.Value))}
			session.Produce(ending, changed, failed.Promise())
		}
		_ = session.Client().Flush(ending)
		lines.Sent(command.Name)
		try := kgo.TransactionEndTry(number%abortEvery != 0 && failed.Err() == nil)
		committed, err := session.End(ending, try)
		cancel()
		if err != nil {
			return err
		}
		if committed {
			*count += len(records)
			lines.Transformed(command.Name, *count)
		}
	}
}

func (d *driver) stop(name string) error {
	d.mu.Lock()
	t := d.transformers[name]
	d.mu.Unlock()
	t.stop()
	t.ended.Wait()
	return nil
}
