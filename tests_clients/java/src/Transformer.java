import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Consumes, transforms and produces exactly once; every so many transactions are aborted and done again. */
final class Transformer {
    private static final int RECORDS_OF_TRANSACTION = 5;
    private static final int ABORT_EVERY = 4;

    private final String address;
    private final Lines.Command command;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;
    private volatile boolean isStopped;

    Transformer(String address, Lines.Command command) {
        this.address = address;
        this.command = command;
        consumer = Member.consumer(
                address, command, Map.of(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, RECORDS_OF_TRANSACTION));
        consumer.subscribe(List.of(command.source()));
        thread = new Thread(this::run, command.name());
        thread.start();
    }

    private void run() {
        KafkaProducer<String, String> producer = Driver.producer(address, command);
        int count = 0;
        try (consumer) {
            for (int number = 1; !isStopped; number++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                try {
                    if (transact(producer, records, number % ABORT_EVERY != 0)) {
                        count += records.count();
                        Lines.transformed(command.name(), count);
                        continue;
                    }
                } catch (KafkaException e) {
                    // Whatever became of the transaction: a producer that begins anew with the same id ends it.
                    e.printStackTrace();
                    producer.close(Duration.ZERO);
                    producer = Driver.producer(address, command);
                }
                rewind();
            }
        } catch (RuntimeException e) {
            Lines.failed(command.name(), e);
        } finally {
            producer.close(Duration.ZERO);
        }
    }

    private boolean transact(
            KafkaProducer<String, String> producer, ConsumerRecords<String, String> records, boolean isToCommit) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(command.target(), record.partition(), null, "seen " + record.value()));
            offsets.put(
                    new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
        }
        producer.flush();
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        Lines.sent(command.name());
        if (isToCommit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
        return isToCommit;
    }

    /** Back to what was committed. */
    private void rewind() {
        var committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset.offset());
            }
        }
    }

    void stop() throws InterruptedException {
        isStopped = true;
        thread.join();
    }
}
