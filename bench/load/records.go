package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	recordBytes      = 1024
	recordsPerBatch  = 100
	producesInFlight = 5 // as Kafka's own producer has it
	fetchBytes       = 1 << 20

	// Where fields stand in a record batch.
	batchLength     = 8
	batchMagic      = 16
	batchCRC        = 17
	batchAttributes = 21
	batchLastDelta  = 23
	batchHeader     = 61
)

// produce measures how fast records of 1 KiB are taken, in batches of 100, with one connection for each partition.
func produce(args []string) error {
	flags, addr := options("produce")
	topic := flags.String("topic", "records", "the topic; it is made if it is not there")
	partitions := flags.Int("partitions", 4, "partitions")
	acks := flags.Int("acks", 1, "1, or -1 for all")
	mib := flags.Int("mib", 400, "how much in all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conns, err := dialAll(*addr, *partitions)
	if err != nil {
		return err
	}
	if err := makeTopic(conns[0], *topic, *partitions); err != nil {
		return err
	}
	batches := *mib << 20 / (recordBytes * recordsPerBatch) / *partitions
	batch := recordBatch()
	return measureRecords(*partitions, func(number int) (int, error) {
		return batches * recordsPerBatch, produceTo(conns[number], *topic, int32(number), int16(*acks), batch, batches)
	})
}

// fetch measures how fast all records of a topic are read, from the first to the last, with one connection for each
// partition and Kafka's limit of 1 MiB for a partition in an answer.
func fetch(args []string) error {
	flags, addr := options("fetch")
	topic := flags.String("topic", "records", "the topic")
	partitions := flags.Int("partitions", 4, "partitions")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conns, err := dialAll(*addr, *partitions)
	if err != nil {
		return err
	}
	return measureRecords(*partitions, func(number int) (int, error) {
		return fetchFrom(conns[number], *topic, int32(number))
	})
}

// measureRecords does the work for all partitions at the same time and prints how many records and bytes it was.
func measureRecords(partitions int, work func(partition int) (records int, err error)) error {
	counts := make([]int, partitions)
	used, began := processorSeconds(), time.Now()
	err := together(partitions, func(number int) (err error) {
		counts[number], err = work(number)
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	records := 0
	for _, count := range counts {
		records += count
	}
	return print(map[string]any{
		"megabytes_per_second": float64(records) * recordBytes / 1e6 / took,
		"records":              records,
		"seconds":              took,
		"client_cores":         (processorSeconds() - used) / took,
	})
}

// recordBatch is a batch of incompressible records, ready to be sent any number of times.
func recordBatch() []byte {
	now := time.Now().UnixMilli()
	random := rand.NewChaCha8([32]byte{})
	var records []byte
	for number := range recordsPerBatch {
		value := make([]byte, recordBytes)
		if _, err := random.Read(value); err != nil {
			panic(err) // it never fails
		}
		record := kmsg.NewRecord()
		record.OffsetDelta, record.Value = int32(number), value
		record.Length = int32(len(record.AppendTo(nil)) - 1) // the length 0 takes one byte
		records = record.AppendTo(records)
	}
	batch := kmsg.NewRecordBatch()
	batch.PartitionLeaderEpoch = -1
	batch.Magic = 2
	batch.LastOffsetDelta = recordsPerBatch - 1
	batch.FirstTimestamp, batch.MaxTimestamp = now, now
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = -1, -1, -1
	batch.NumRecords, batch.Records = recordsPerBatch, records
	data := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(data[batchLength:], uint32(len(data)-batchLength-4))
	binary.BigEndian.PutUint32(data[batchCRC:], crc32.Checksum(data[batchAttributes:], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

func produceTo(c *conn, topic string, number int32, acks int16, batch []byte, batches int) error {
	request := kmsg.NewPtrProduceRequest()
	request.Version = 7
	request.Acks, request.TimeoutMillis = acks, 30_000
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition, partition.Records = number, batch
	wanted := kmsg.NewProduceRequestTopic()
	wanted.Topic = topic
	wanted.Partitions = append(wanted.Partitions, partition)
	request.Topics = append(request.Topics, wanted)
	for int(c.received) < int(c.sent) || batches > 0 {
		for batches > 0 && c.sent-c.received < producesInFlight {
			if err := c.put(request); err != nil {
				return err
			}
			batches--
		}
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		body, err := c.take()
		if err != nil {
			return err
		}
		answer := request.ResponseKind().(*kmsg.ProduceResponse)
		if err := understand(body, answer); err != nil {
			return err
		}
		if code := answer.Topics[0].Partitions[0].ErrorCode; code != noError {
			return fmt.Errorf("Produce to %s-%d: error %d", topic, number, code)
		}
	}
	return nil
}

// fetchFrom reads a partition to its end and returns how many records it has.
func fetchFrom(c *conn, topic string, number int32) (int, error) {
	request := kmsg.NewPtrFetchRequest()
	request.Version = 11
	request.ReplicaID, request.SessionEpoch = -1, -1
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = 500, 1, 50<<20
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition, partition.CurrentLeaderEpoch, partition.PartitionMaxBytes = number, -1, fetchBytes
	wanted := kmsg.NewFetchRequestTopic()
	wanted.Topic = topic
	wanted.Partitions = append(wanted.Partitions, partition)
	request.Topics = append(request.Topics, wanted)
	offset := &request.Topics[0].Partitions[0].FetchOffset
	for {
		answer, err := c.ask(request)
		if err != nil {
			return 0, err
		}
		fetched := answer.(*kmsg.FetchResponse)
		if fetched.ErrorCode != noError {
			return 0, fmt.Errorf("Fetch: error %d", fetched.ErrorCode)
		}
		found := fetched.Topics[0].Partitions[0]
		if found.ErrorCode != noError {
			return 0, fmt.Errorf("Fetch of %s-%d: error %d", topic, number, found.ErrorCode)
		}
		if *offset, err = walk(found.RecordBatches, *offset); err != nil {
			return 0, fmt.Errorf("Fetch of %s-%d: %w", topic, number, err)
		}
		if *offset == found.HighWatermark {
			return int(*offset), nil
		}
	}
}

// walk goes over whole batches, which must follow each other without a gap, and returns the offset behind them. The
// last may be cut off.
func walk(data []byte, offset int64) (int64, error) {
	for len(data) >= batchHeader {
		size := batchLength + 4 + int(binary.BigEndian.Uint32(data[batchLength:]))
		if size > len(data) {
			break
		}
		if base := int64(binary.BigEndian.Uint64(data)); base != offset || data[batchMagic] != 2 {
			return 0, fmt.Errorf("a batch at %d when %d was due", base, offset)
		}
		offset += int64(binary.BigEndian.Uint32(data[batchLastDelta:])) + 1
		data = data[size:]
	}
	return offset, nil
}
