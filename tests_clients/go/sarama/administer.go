package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"kohort/tests_clients/lines"
)

// administer is what sarama's ClusterAdmin does; each time with a new one, as brokers come and go.
func (d *driver) administer(command lines.Command) (any, error) {
	admin, err := sarama.NewClusterAdmin(d.address, d.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	topic, group, partition := command.Topic, command.Group, command.Partition
	switch command.Do {
	case "create_topic":
		settings := map[string]*string{}
		for name, value := range command.Settings {
			settings[name] = &value
		}
		detail := &sarama.TopicDetail{NumPartitions: command.Partitions, ReplicationFactor: 1, ConfigEntries: settings}
		return nil, admin.CreateTopic(topic, detail, false)
	case "create_partitions":
		return nil, admin.CreatePartitions(topic, command.Partitions, nil, false)
	case "delete_topic":
		return nil, admin.DeleteTopic(topic)
	case "topics":
		found, err := admin.ListTopics()
		counts := map[string]int32{}
		for name, detail := range found {
			if name[0] != '_' {
				counts[name] = detail.NumPartitions
			}
		}
		return counts, err
	case "settings":
		return settings(admin, topic)
	case "alter_settings":
		changes := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range command.Settings {
			changes[name] = sarama.IncrementalAlterConfigsEntry{
				Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
			}
		}
		return nil, admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false)
	case "cluster":
		found, controller, err := admin.DescribeCluster()
		if err != nil {
			return nil, err
		}
		brokers := []string{}
		for _, broker := range found {
			brokers = append(brokers, broker.Addr())
		}
		return map[string]any{"brokers": brokers, "controller": found[0].ID() == controller}, nil
	case "delete_records":
		return nil, admin.DeleteRecords(topic, map[int32]int64{partition: command.Offset})
	case "watermarks":
		low, err := offset(admin, topic, partition, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		high, err := offset(admin, topic, partition, sarama.OffsetNewest)
		return []int64{low, high}, err
	case "groups":
		found, err := admin.ListConsumerGroups()
		groups := []string{}
		for group := range found {
			groups = append(groups, group)
		}
		return groups, err
	case "group":
		found, err := admin.DescribeConsumerGroups([]string{group})
		if err != nil {
			return nil, err
		}
		if found[0].Err != sarama.ErrNoError {
			return nil, found[0].Err
		}
		return map[string]any{"state": found[0].State, "members": len(found[0].Members)}, nil
	case "offsets":
		return offsets(admin, group)
	case "set_offset":
		wanted := map[string]map[int32]sarama.OffsetAndMetadata{topic: {partition: {Offset: command.Offset, LeaderEpoch: -1}}}
		answer, err := admin.AlterConsumerGroupOffsets(group, wanted, nil)
		if err != nil {
			return nil, err
		}
		return nil, orNil(answer.Errors[topic][partition])
	case "delete_offset":
		return nil, admin.DeleteConsumerGroupOffset(group, topic, partition)
	case "delete_group":
		return nil, admin.DeleteConsumerGroup(group)
	case "remove_static_member":
		answer, err := admin.RemoveMemberFromConsumerGroup(group, []string{command.Instance})
		if err != nil {
			return nil, err
		}
		return nil, orNil(answer.Members[0].Err)
	}
	return nil, fmt.Errorf("no such command: %s", command.Do)
}

func settings(admin sarama.ClusterAdmin, topic string) (any, error) {
	wanted := []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}
	found, err := admin.DescribeConfigs(wanted, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, entry := range found[0].Configs {
		values[entry.Name] = entry.Value
	}
	return values, orNil(found[0].ErrorCode)
}

func offset(admin sarama.ClusterAdmin, topic string, partition int32, which int64) (int64, error) {
	found, err := admin.ListOffsets(map[string]map[int32]int64{topic: {partition: which}}, nil)
	if err != nil {
		return 0, err
	}
	return found[topic][partition].Offset, orNil(found[topic][partition].Err)
}

func offsets(admin sarama.ClusterAdmin, group string) (any, error) {
	found, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	offsets := []lines.Record{}
	for topic, blocks := range found.Blocks {
		for number, block := range blocks {
			if block.Err != sarama.ErrNoError {
				return nil, block.Err
			}
			offsets = append(offsets, lines.Record{topic, number, block.Offset, block.Metadata})
		}
	}
	return offsets, orNil(found.Err)
}

// orNil: sarama has an error that is none.
func orNil(err error) error {
	if errors.Is(err, sarama.ErrNoError) {
		return nil
	}
	return err
}
