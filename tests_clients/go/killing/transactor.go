package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const abortEvery = 3

// transact is one transaction after the other, every third of which is aborted. A producer that has had trouble is
// replaced: its successor ends what it has left open.
func (w place) transact(over context.Context, group string) {
	reader := must(kgo.NewClient(w.options()...))
	defer reader.Close()
	for turn := 1; wait(over, pause); {
		client := must(kgo.NewClient(w.options(
			kgo.TransactionalID(group),
			kgo.TransactionTimeout(30*time.Second),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)...))
		for isWell := true; isWell && wait(over, pause); turn++ {
			isWell = w.transaction(client, group, turn%abortEvery != 0)
			if turn%readEvery == 0 {
				w.read(reader, group)
			}
		}
		client.CloseAllowingRebalance()
	}
}

// transaction tells whether its producer is good for another.
func (w place) transaction(client *kgo.Client, group string, isCommit bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, _, err := client.ProducerID(ctx); err != nil || client.BeginTransaction() != nil {
		return false
	}
	begun := begin(group, []int32{0, 1})
	record := &kgo.Record{Topic: w.copies, Partition: 0, Value: []byte(group)}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil || w.addOffsets(ctx, client, begun) != nil {
		// Nobody asks for its commit.
		begun.end(failed, -1)
		return client.EndTransaction(ctx, kgo.TryAbort) == nil && err == nil
	}
	if !isCommit {
		begun.end(failed, -1)
		return client.EndTransaction(ctx, kgo.TryAbort) == nil
	}
	if client.EndTransaction(ctx, kgo.TryCommit) != nil {
		begun.end(unknown, -1)
		return false
	}
	begun.end(ok, -1)
	return true
}

// addOffsets does what franz-go does for offsets of records that it has polled itself.
func (w place) addOffsets(ctx context.Context, client *kgo.Client, begun write) error {
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = begun.group, id, epoch, begun.group
	added, err := add.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch = begun.group, id, epoch
	commit.Group, commit.Generation = begun.group, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = w.topic
	for number, offset := range begun.offsets {
		partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = number, offset
		topic.Partitions = append(topic.Partitions, partition)
	}
	commit.Topics = append(commit.Topics, topic)
	answer, err := commit.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
