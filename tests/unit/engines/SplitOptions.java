import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Splits each line of its input with Spark's two parsers; a line of words for each of both. */
class SplitOptions {
  public static void main(String[] arguments) throws Exception {
    Method launcher =
        Class.forName("org.apache.spark.launcher.CommandBuilderUtils")
            .getDeclaredMethod("parseOptionString", String.class);
    launcher.setAccessible(true);
    Method core =
        Class.forName("org.apache.spark.util.Utils").getMethod("splitCommandString", String.class);
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var output = new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      output.println(String.join("\t", (List<String>) launcher.invoke(null, line)));
      Object words = core.invoke(null, line);
      Method joined = words.getClass().getMethod("mkString", String.class);
      output.println((String) joined.invoke(words, "\t"));
    }
  }
}
