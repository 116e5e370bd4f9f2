import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer with a group and the thread that polls it. Only that thread may touch the consumer. */
final class Member {
    private static final Map<String, Class<?>> ASSIGNORS =
            Map.of("range", RangeAssignor.class, "cooperative-sticky", CooperativeStickyAssignor.class);

    private final String name;
    private final KafkaConsumer<String, String> consumer;
    private final Queue<FutureTask<Void>> tasks = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private volatile boolean isClosed;
    private int toldGeneration = -1;
    private Set<TopicPartition> toldPartitions = Set.of();

    Member(String address, Lines.Command command) {
        name = command.name();
        consumer = consumer(address, command, Map.of());
        if (command.pattern() != null) {
            consumer.subscribe(Pattern.compile(command.pattern()));
        } else {
            consumer.subscribe(command.topics());
        }
        thread = new Thread(this::run, name);
        thread.start();
    }

    /** Heartbeats are frequent so that rebalances are soon noticed. */
    static KafkaConsumer<String, String> consumer(
            String address, Lines.Command command, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(ConsumerConfig.CLIENT_ID_CONFIG, command.name());
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, command.group());
        settings.put(ConsumerConfig.GROUP_PROTOCOL_CONFIG, "classic");
        settings.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, List.of(ASSIGNORS.get(command.assignor())));
        settings.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 100);
        settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, command.sessionMs());
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 100);
        settings.put(ConsumerConfig.METADATA_MAX_AGE_CONFIG, 1000);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, command.autoCommit());
        settings.put(ConsumerConfig.AUTO_COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, command.isolation());
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        if (command.instance() != null) {
            settings.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, command.instance());
        }
        settings.putAll(more);
        return new KafkaConsumer<>(Login.with(settings));
    }

    private void run() {
        try (consumer) {
            while (!isClosed) {
                poll();
                for (var task = tasks.poll(); task != null; task = tasks.poll()) {
                    task.run();
                }
            }
        } catch (RuntimeException e) {
            Lines.failed(name, e);
        }
    }

    private void poll() {
        List<List<Object>> records = new ArrayList<>();
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
            records.add(List.of(record.topic(), record.partition(), record.offset(), record.value()));
        }
        int generation = consumer.groupMetadata().generationId();
        Set<TopicPartition> owned = Set.copyOf(consumer.assignment());
        if (generation >= 0 && (generation != toldGeneration || !owned.equals(toldPartitions))) {
            toldGeneration = generation;
            toldPartitions = owned;
            Lines.owns(name, generation, owned);
        }
        if (!records.isEmpty()) {
            Lines.records(name, records);
        }
    }

    private void inThread(Runnable action) throws Exception {
        FutureTask<Void> task = new FutureTask<>(action, null);
        tasks.add(task);
        task.get();
    }

    void commit(String metadata) throws Exception {
        inThread(() -> {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition partition : consumer.assignment()) {
                offsets.put(partition, new OffsetAndMetadata(consumer.position(partition), metadata));
            }
            consumer.commitSync(offsets);
        });
    }

    void seek(String topic, int partition, long offset) throws Exception {
        inThread(() -> consumer.seek(new TopicPartition(topic, partition), offset));
    }

    void close() throws InterruptedException {
        isClosed = true;
        thread.join();
    }
}
