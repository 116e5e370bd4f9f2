import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What Kafka's admin client does. */
final class Administration {
    private final Admin admin;

    Administration(String address) {
        admin = Admin.create(Login.with(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, address)));
    }

    Object act(Lines.Command command) throws Exception {
        String topic = command.topic();
        String group = command.group();
        TopicPartition partition = new TopicPartition(topic == null ? "" : topic, command.partition());
        switch (command.doing()) {
            case "create_topic" -> {
                NewTopic wanted = new NewTopic(topic, command.partitions(), (short) 1).configs(command.settings());
                admin.createTopics(List.of(wanted)).all().get();
            }
            case "create_partitions" ->
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(command.partitions()))).all().get();
            case "delete_topic" -> admin.deleteTopics(List.of(topic)).all().get();
            case "topics" -> {
                return topics();
            }
            case "settings" -> {
                return settings(topic);
            }
            case "alter_settings" -> alterSettings(topic, command.settings());
            case "cluster" -> {
                return cluster();
            }
            case "delete_records" ->
                admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(command.offset()))).all().get();
            case "watermarks" -> {
                return List.of(offset(partition, OffsetSpec.earliest()), offset(partition, OffsetSpec.latest()));
            }
            case "groups" -> {
                return groups();
            }
            case "group" -> {
                return group(group);
            }
            case "offsets" -> {
                return offsets(group);
            }
            case "set_offset" -> {
                var offsets = Map.of(partition, new OffsetAndMetadata(command.offset()));
                admin.alterConsumerGroupOffsets(group, offsets).all().get();
            }
            case "delete_offset" -> admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
            case "delete_group" -> admin.deleteConsumerGroups(List.of(group)).all().get();
            case "add_user" -> {
                var credential = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192);
                String password = command.values().get(0);
                var wanted = new UserScramCredentialUpsertion(command.name(), credential, password);
                admin.alterUserScramCredentials(List.of(wanted)).all().get();
            }
            case "delete_user" -> {
                var wanted = new UserScramCredentialDeletion(command.name(), ScramMechanism.SCRAM_SHA_512);
                admin.alterUserScramCredentials(List.of(wanted)).all().get();
            }
            case "users" -> {
                return users();
            }
            case "remove_static_member" -> {
                var wanted = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove(command.instance())));
                admin.removeMembersFromConsumerGroup(group, wanted).all().get();
            }
            default -> throw new IllegalArgumentException("no such command: " + command.doing());
        }
        return null;
    }

    private Map<String, List<String>> users() throws Exception {
        Map<String, List<String>> found = new HashMap<>();
        admin.describeUserScramCredentials().all().get().forEach((name, user) -> found.put(
                name,
                user.credentialInfos().stream()
                        .map(info -> info.mechanism().mechanismName() + " " + info.iterations())
                        .toList()));
        return found;
    }

    private Map<String, Integer> topics() throws Exception {
        Map<String, Integer> counts = new HashMap<>();
        Set<String> names = admin.listTopics().names().get();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            counts.put(topic.name(), topic.partitions().size());
        }
        return counts;
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private Map<String, String> settings(String topic) throws Exception {
        Map<String, String> values = new HashMap<>();
        var found = admin.describeConfigs(List.of(resource(topic))).all().get().get(resource(topic));
        found.entries().forEach(entry -> values.put(entry.name(), entry.value()));
        return values;
    }

    private void alterSettings(String topic, Map<String, String> settings) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        settings.forEach((name, value) ->
                changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(resource(topic), changes)).all().get();
    }

    private Map<String, Object> cluster() throws Exception {
        var found = admin.describeCluster();
        List<String> brokers = new ArrayList<>();
        for (Node node : found.nodes().get()) {
            brokers.add(node.host() + ":" + node.port());
        }
        boolean isController = found.nodes().get().contains(found.controller().get());
        return Map.of("brokers", brokers, "controller", isController);
    }

    private long offset(TopicPartition partition, OffsetSpec which) throws Exception {
        return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
    }

    private List<String> groups() throws Exception {
        List<String> ids = new ArrayList<>();
        admin.listGroups(ListGroupsOptions.forConsumerGroups()).all().get().forEach(group -> ids.add(group.groupId()));
        return ids;
    }

    private Map<String, Object> group(String group) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        return Map.of("state", found.groupState().toString(), "members", found.members().size());
    }

    private List<List<Object>> offsets(String group) throws Exception {
        List<List<Object>> offsets = new ArrayList<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) ->
                offsets.add(List.of(partition.topic(), partition.partition(), offset.offset(), offset.metadata())));
        return offsets;
    }

    void close() {
        admin.close();
    }
}
