import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** An application of a company in a JAR, which runs until somebody stops it: Orders INPUT. */
public final class Orders {
  public static void main(String[] args) throws Exception {
    SparkSession spark = SparkSession.builder().appName("orders").getOrCreate();
    Dataset<Row> orders =
        spark
            .readStream()
            .schema("id long, country string, amount double, at timestamp")
            .option("maxFilesPerTrigger", 1)
            .json(args[0]);
    orders
        .groupBy("country")
        .count()
        .writeStream()
        .outputMode("complete")
        .format("noop")
        .start()
        .awaitTermination();
  }
}
