package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commit for everything that a member owns, if it owns something yet.
func (w place) commit(client *kgo.Client, offset int64) {
	if _, generation := client.GroupMetadata(); generation < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := map[int32]kgo.EpochOffset{}
	for number := range int32(w.partitions) {
		asked[number] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	began := time.Now()
	client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{w.topic: asked},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			if err == nil && len(answer.Topics) > 0 {
				err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
			}
			note("commits", time.Since(began), err)
		})
}

// pass: groups that commit once and are never heard of again.
func (w place) pass(over context.Context, pause time.Duration) {
	client := plain(w)
	defer client.Close()
	for number := 0; wait(over, pause); number++ {
		request := kmsg.NewPtrOffsetCommitRequest()
		request.Group, request.Generation = fmt.Sprintf("passing-%d-%d", time.Now().Unix(), number), -1
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic = w.topic
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Offset = 1
		topic.Partitions = append(topic.Partitions, partition)
		request.Topics = append(request.Topics, topic)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		answer, err := request.RequestWith(ctx, client)
		cancel()
		if err == nil {
			err = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		}
		note("passing groups", time.Since(began), err)
	}
}

// ask for nothing that takes any time.
func (w place) ask(over context.Context, pause time.Duration) {
	client := plain(w)
	defer client.Close()
	for wait(over, pause) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		began := time.Now()
		answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
		cancel()
		note(idle, time.Since(began), either(err, func() int16 { return answer.ErrorCode }))
	}
}

const transactionsOfAnID = 20

// transact: every third transaction is aborted, and ids change so that old ones are forgotten.
func (w place) transact(over context.Context, number int, pause time.Duration) {
	client := plain(w)
	defer client.Close()
	for turn := 0; wait(over, around(pause)); turn++ {
		id := fmt.Sprintf("soak-t-%d-%d", number, turn/transactionsOfAnID)
		began := time.Now()
		err := w.transaction(client, id, fmt.Sprintf("soak-in-%d", number), int64(turn), turn%3 != 0)
		note("transactions", time.Since(began), err)
	}
}

func (w place) transaction(client *kgo.Client, id, group string, offset int64, isCommit bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begin := kmsg.NewPtrInitProducerIDRequest()
	begin.TransactionalID, begin.TransactionTimeoutMillis = &id, 60_000
	producer, err := begin.RequestWith(ctx, client)
	if err := either(err, func() int16 { return producer.ErrorCode }); err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = id, producer.ProducerID, producer.ProducerEpoch, group
	added, err := add.RequestWith(ctx, client)
	if err := either(err, func() int16 { return added.ErrorCode }); err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch = id, producer.ProducerID, producer.ProducerEpoch
	commit.Group, commit.Generation = group, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = w.topic
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic.Partitions = append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(ctx, client)
	if err := either(err, func() int16 { return committed.Topics[0].Partitions[0].ErrorCode }); err != nil {
		return err
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producer.ProducerID, producer.ProducerEpoch, isCommit
	ended, err := end.RequestWith(ctx, client)
	return either(err, func() int16 { return ended.ErrorCode })
}

func either(err error, code func() int16) error {
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(code())
}

func plain(w place) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(w.address))
	if err != nil {
		panic(err)
	}
	return client
}
