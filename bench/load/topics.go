package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	noError                  = 0
	unknownTopicOrPartition  = 3
	leaderNotAvailable       = 5
	notLeader                = 6
	coordinatorLoading       = 14
	coordinatorNotAvailable  = 15
	notCoordinator           = 16
	unknownMember            = 25
	rebalanceInProgress      = 27
	topicAuthorizationFailed = 29
	groupAuthorizationFailed = 30
	topicExists              = 36
	memberIDRequired         = 79

	startPatience = 60 * time.Second

	latest = -1 // the time that asks for the end of a partition
)

// untilReady asks again and again until the broker is done with what it does in the background.
func untilReady(what string, try func() (code int16, err error)) error {
	deadline := time.Now().Add(startPatience)
	for {
		code, err := try()
		if err != nil || code == noError {
			return err
		}
		switch code {
		case unknownTopicOrPartition, leaderNotAvailable, notLeader, coordinatorLoading, coordinatorNotAvailable,
			notCoordinator:
		default:
			return fmt.Errorf("%s: error %d", what, code)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: still error %d after %s", what, code, startPatience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// makeTopic creates a topic if it is not there, and waits until the broker leads each of its partitions.
func makeTopic(c *conn, name string, partitions int) error {
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 5
	create.TimeoutMillis = 30_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), 1
	create.Topics = append(create.Topics, topic)
	answer, err := c.ask(create)
	if err != nil {
		return err
	}
	if code := answer.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != noError && code != topicExists {
		return fmt.Errorf("CreateTopics of %s: error %d", name, code)
	}
	look := kmsg.NewPtrListOffsetsRequest()
	look.Version = 5
	look.ReplicaID = -1
	wanted := kmsg.NewListOffsetsRequestTopic()
	wanted.Topic = name
	for number := range partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.CurrentLeaderEpoch, partition.Timestamp = int32(number), -1, latest
		wanted.Partitions = append(wanted.Partitions, partition)
	}
	look.Topics = append(look.Topics, wanted)
	return untilReady("ListOffsets of "+name, func() (int16, error) {
		answer, err := c.ask(look)
		if err != nil {
			return noError, err
		}
		for _, partition := range answer.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			if partition.ErrorCode != noError {
				return partition.ErrorCode, nil
			}
		}
		return noError, nil
	})
}

// awaitCoordinator waits until the broker coordinates the group; it may have to create the offsets topic first.
func awaitCoordinator(c *conn, group string) error {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version = 3
	find.CoordinatorKey = group
	err := untilReady("FindCoordinator", func() (int16, error) {
		answer, err := c.ask(find)
		if err != nil {
			return noError, err
		}
		return answer.(*kmsg.FindCoordinatorResponse).ErrorCode, nil
	})
	if err != nil {
		return err
	}
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Version = 5
	describe.Groups = []string{group}
	return untilReady("DescribeGroups", func() (int16, error) {
		answer, err := c.ask(describe)
		if err != nil {
			return noError, err
		}
		return answer.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode, nil
	})
}
