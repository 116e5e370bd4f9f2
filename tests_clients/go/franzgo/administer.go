package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"kohort/tests_clients/lines"
)

// administer is what kadm, franz-go's own client for it, does.
func (d *driver) administer(ctx context.Context, command lines.Command) (any, error) {
	topic, group := command.Topic, command.Group
	switch command.Do {
	case "create_topic":
		settings := map[string]*string{}
		for name, value := range command.Settings {
			settings[name] = &value
		}
		_, err := d.admin.CreateTopic(ctx, command.Partitions, 1, settings, topic)
		return nil, err
	case "create_partitions":
		answers, err := d.admin.UpdatePartitions(ctx, int(command.Partitions), topic)
		return nil, either(err, answers.Error())
	case "delete_topic":
		_, err := d.admin.DeleteTopic(ctx, topic)
		return nil, err
	case "topics":
		return d.topics(ctx)
	case "settings":
		return d.settings(ctx, topic)
	case "alter_settings":
		var changes []kadm.AlterConfig
		for name, value := range command.Settings {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		}
		answers, err := d.admin.AlterTopicConfigs(ctx, changes, topic)
		if err != nil {
			return nil, err
		}
		answer, err := answers.On(topic, nil)
		return nil, either(err, answer.Err)
	case "cluster":
		found, err := d.admin.BrokerMetadata(ctx)
		if err != nil {
			return nil, err
		}
		brokers := []string{}
		for _, broker := range found.Brokers {
			brokers = append(brokers, fmt.Sprintf("%s:%d", broker.Host, broker.Port))
		}
		return map[string]any{"brokers": brokers, "controller": found.Controller == found.Brokers[0].NodeID}, nil
	case "delete_records":
		var offsets kadm.Offsets
		offsets.AddOffset(topic, command.Partition, command.Offset, -1)
		answers, err := d.admin.DeleteRecords(ctx, offsets)
		return nil, either(err, answers.Error())
	case "watermarks":
		return d.watermarks(ctx, topic, command.Partition)
	case "groups":
		found, err := d.admin.ListGroups(ctx)
		return found.Groups(), err
	case "group":
		found, err := d.admin.DescribeGroups(ctx, group)
		if err = either(err, found.Error()); err != nil {
			return nil, err
		}
		return map[string]any{"state": found[group].State, "members": len(found[group].Members)}, nil
	case "offsets":
		return d.offsets(ctx, group)
	case "set_offset":
		var offsets kadm.Offsets
		offsets.AddOffset(topic, command.Partition, command.Offset, -1)
		return nil, d.admin.CommitAllOffsets(ctx, group, offsets)
	case "delete_offset":
		var wanted kadm.TopicsSet
		wanted.Add(topic, command.Partition)
		answers, err := d.admin.DeleteOffsets(ctx, group, wanted)
		return nil, either(err, answers.Error())
	case "delete_group":
		_, err := d.admin.DeleteGroup(ctx, group)
		return nil, err
	case "remove_static_member":
		answers, err := d.admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs(command.Instance))
		return nil, either(err, answers.Error())
	}
	return nil, fmt.Errorf("no such command: %s", command.Do)
}

func (d *driver) topics(ctx context.Context) (any, error) {
	found, err := d.admin.ListTopics(ctx)
	counts := map[string]int{}
	for name, topic := range found {
		counts[name] = len(topic.Partitions)
	}
	return counts, err
}

func (d *driver) settings(ctx context.Context, topic string) (any, error) {
	found, err := d.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	config, err := found.On(topic, nil)
	values := map[string]string{}
	for _, entry := range config.Configs {
		values[entry.Key] = entry.MaybeValue()
	}
	return values, either(err, config.Err)
}

func (d *driver) watermarks(ctx context.Context, topic string, partition int32) (any, error) {
	low, err := d.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	high, err := d.admin.ListEndOffsets(ctx, topic)
	return []int64{low[topic][partition].Offset, high[topic][partition].Offset}, err
}

func (d *driver) offsets(ctx context.Context, group string) (any, error) {
	found, err := d.admin.FetchOffsets(ctx, group)
	offsets := []lines.Record{}
	for _, offset := range found.Sorted() {
		offsets = append(offsets, lines.Record{offset.Topic, offset.Partition, offset.At, offset.Metadata})
	}
	return offsets, either(err, found.Error())
}

func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// firstError of a commit: its own, or that of any partition.
func firstError(answer *kmsg.OffsetCommitResponse, err error) error {
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
