import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Does with kafka-clients what tests tell it on stdin. */
public final class Driver {
    private final String address;
    private final Administration administration;
    private final Map<String, KafkaProducer<String, String>> producers = new ConcurrentHashMap<>();
    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Map<String, Transformer> transformers = new ConcurrentHashMap<>();

    private Driver(String address) {
        this.address = address;
        administration = new Administration(address);
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0]);
        List<Thread> running = new ArrayList<>();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Lines.Command command = Lines.read(line);
            Thread thread = new Thread(() -> driver.answer(command), command.doing());
            running.add(thread);
            thread.start();
        }
        for (Thread thread : running) {
            thread.join();
        }
        driver.close();
    }

    private void answer(Lines.Command command) {
        try {
            Lines.answer(command.id(), act(command));
        } catch (ExecutionException e) {
            Lines.refuse(command.id(), e.getCause());
        } catch (Exception e) {
            Lines.refuse(command.id(), e);
        }
    }

    private Object act(Lines.Command command) throws Exception {
        switch (command.doing()) {
            case "open" -> members.put(command.name(), new Member(address, command));
            case "close" -> members.remove(command.name()).close();
            case "commit" -> members.get(command.name()).commit(command.metadata());
            case "seek" ->
                members.get(command.name()).seek(command.topic(), command.partition(), command.offset());
            case "send" -> send(command);
            case "open_producer" -> producers.put(command.name(), producer(address, command));
            case "begin" -> producers.get(command.name()).beginTransaction();
            case "end" -> end(producers.get(command.name()), command.commit());
            case "transform" -> transformers.put(command.name(), new Transformer(address, command));
            case "stop" -> transformers.remove(command.name()).stop();
            default -> {
                return administration.act(command);
            }
        }
        return null;
    }

    /** Idempotent, as all producers are by default, and transactional if there is an id for that. */
    static KafkaProducer<String, String> producer(String address, Lines.Command command) {
        String transactionalId = command.transactionalId();
        Map<String, Object> settings = new HashMap<>();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        if (transactionalId != null) {
            settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId);
        }
        if (command.compression() != null) {
            settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, command.compression());
        }
        if (command.transactionMs() > 0) {
            settings.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, command.transactionMs());
        }
        KafkaProducer<String, String> producer = new KafkaProducer<>(Login.with(settings));
        if (transactionalId != null) {
            producer.initTransactions();
        }
        return producer;
    }

    private void send(Lines.Command command) throws Exception {
        String name = command.name() == null ? "" : command.name();
        var producer = producers.computeIfAbsent(name, any -> producer(address, command));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : command.values()) {
            sent.add(producer.send(new ProducerRecord<>(command.topic(), command.partition(), null, value)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    private static void end(KafkaProducer<String, String> producer, boolean commit) {
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private void close() throws Exception {
        for (Member member : members.values()) {
            member.close();
        }
        producers.values().forEach(producer -> producer.close(java.time.Duration.ofSeconds(5)));
        administration.close();
    }
}
