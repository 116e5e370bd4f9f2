import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** Commands from stdin, answers and events to stdout, one JSON object a line. */
final class Lines {
    private static final ObjectMapper JSON = new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    /** Libraries that print to stdout must not come between the lines. */
    private static final PrintStream OUT = System.out;

    private Lines() {}

    /** Everything that a command can say; each says a few of these things. */
    record Command(
            int id,
            String doing,
            String name,
            String group,
            String topic,
            List<String> topics,
            String pattern,
            String instance,
            String assignor,
            String isolation,
            boolean autoCommit,
            int sessionMs,
            String metadata,
            int partition,
            int partitions,
            long offset,
            List<String> values,
            Map<String, String> settings,
            String compression,
            String transactionalId,
            int transactionMs,
            boolean commit,
            String source,
            String target) {}

    static Command read(String line) {
        try {
            // "do" is a word of Java.
            var tree = (com.fasterxml.jackson.databind.node.ObjectNode) JSON.readTree(line);
            tree.set("doing", tree.remove("do"));
            return JSON.treeToValue(tree, Command.class);
        } catch (java.io.IOException e) {
            throw new UncheckedIOException(line, e);
        }
    }

    static void owns(String name, int generation, Collection<TopicPartition> partitions) {
        List<List<Object>> owned = new ArrayList<>();
        partitions.forEach(partition -> owned.add(List.of(partition.topic(), partition.partition())));
        write(Map.of("event", "owns", "name", name, "generation", generation, "partitions", owned));
    }

    static void records(String name, List<List<Object>> records) {
        write(Map.of("event", "records", "name", name, "records", records));
    }

    static void sent(String name) {
        write(Map.of("event", "sent", "name", name));
    }

    static void transformed(String name, int count) {
        write(Map.of("event", "transformed", "name", name, "count", count));
    }

    static void failed(String name, Throwable error) {
        error.printStackTrace();
        write(Map.of("event", "failed", "name", name, "error", error.toString()));
    }

    static void answer(int id, Object result) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("id", id);
        line.put("result", result);
        write(line);
    }

    static void refuse(int id, Throwable error) {
        write(Map.of("id", id, "error", error.toString()));
    }

    private static synchronized void write(Map<String, Object> line) {
        try {
            OUT.println(JSON.writeValueAsString(line));
            OUT.flush();
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new UncheckedIOException(e);
        }
    }
}
