import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HDFS with one name node and one data node in this process, on 127.0.0.1.
 *
 * <p>Arguments: the directory of its data, and a file that gets the address of the file system and
 * the one of WebHDFS, a line each, once it is up. It ends with its standard input, and so with the
 * process that has started it.
 */
public class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
    conf.setBoolean("dfs.permissions.enabled", false);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
    try {
      cluster.waitActive();
      Path told = Path.of(arguments[1]);
      Path hidden = Path.of(arguments[1] + ".tmp");
      Files.writeString(hidden, cluster.getURI() + "\n" + cluster.getHttpUri(0) + "\n");
      Files.move(hidden, told);
      while (System.in.read() >= 0) {
      }
    } finally {
      cluster.shutdown();
      System.exit(0);
    }
  }
}
