import org.apache.spark.sql.api.java.UDF1;

/** A function in a JAR of a job. */
public final class PlusOne implements UDF1<Long, Long> {
  @Override
  public Long call(Long value) {
    return value + 1;
  }
}
