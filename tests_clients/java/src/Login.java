import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** How to get in: the settings in the file that CLIENT_CONFIG names, if it names one. */
final class Login {
    private Login() {}

    /** These settings and those of the login. */
    static Map<String, Object> with(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        String file = System.getenv("CLIENT_CONFIG");
        if (file != null) {
            Properties login = new Properties();
            try (var reader = Files.newBufferedReader(Path.of(file))) {
                login.load(reader);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            login.forEach((name, value) -> all.put((String) name, value));
        }
        return all;
    }
}
