import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BufferedFSInputStream;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local disk as remote storage: slow:///some/path is /some/path, with a latency for every call,
 * a bandwidth that all streams of a process share, and faults. No checksum files lie beside the data.
 *
 * <p>Hadoop confs: fs.slow.latency.ms (the mean: half of it is fixed, half exponential),
 * fs.slow.mb.per.s, fs.slow.seed, and fs.slow.fault, which acts while the file fs.slow.fault.file is
 * there: outage:SECONDS from the moment it was written, slow:FACTOR, or errors:PERCENT of the calls.
 */
public class SlowFileSystem extends RawLocalFileSystem {
    private static final URI ROOT = URI.create("slow:///");
    private static final int BUFFER = 65536;

    private final ThreadLocal<Boolean> isInside = ThreadLocal.withInitial(() -> false);
    private Random draws = new Random();
    private double latencyMs;
    private double nsPerByte;
    private String faultKind = "";
    private double faultSize;
    private File faultFile = new File("");
    private long busyUntil;

    /** The same for Hadoop's FileContext; a rename replaces its target in one step. */
    public static class Context extends DelegateToFileSystem {
        public Context(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(uri, new SlowFileSystem(), conf, ROOT.getScheme(), false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public void renameInternal(Path from, Path to, boolean overwrite) throws IOException {
            if (overwrite) {
                fsImpl.rename(from, to);
            } else {
                super.renameInternal(from, to, false);
            }
        }
    }

    private interface Call<T> {
        T run() throws IOException;
    }

    @Override
    public void initialize(URI uri, Configuration conf) throws IOException {
        super.initialize(uri, conf);
        latencyMs = conf.getDouble("fs.slow.latency.ms", 0);
        double mbPerS = conf.getDouble("fs.slow.mb.per.s", 0);
        nsPerByte = mbPerS > 0 ? 1e9 / (mbPerS * (1 << 20)) : 0;
        draws = new Random(conf.getLong("fs.slow.seed", 1));
        String[] fault = conf.get("fs.slow.fault", "").split(":");
        if (fault.length == 2) {
            faultKind = fault[0];
            faultSize = Double.parseDouble(fault[1]);
            faultFile = new File(conf.get("fs.slow.fault.file"));
        }
    }

    @Override
    public URI getUri() {
        return ROOT;
    }

    @Override
    public String getScheme() {
        return ROOT.getScheme();
    }

    @Override
    public FSDataInputStream open(Path path, int buffer) throws IOException {
        FSDataInputStream in = paid("open", path, () -> super.open(path, buffer));
        return new FSDataInputStream(new BufferedFSInputStream(new Download(in), BUFFER));
    }

    @Override
    public FSDataOutputStream create(
            Path path, FsPermission permission, boolean overwrite, int buffer, short replication,
            long block, Progressable progress) throws IOException {
        return upload(path, paid("create", path, () -> super.create(
                path, permission, overwrite, buffer, replication, block, progress)));
    }

    @Override
    public FSDataOutputStream create(
            Path path, boolean overwrite, int buffer, short replication, long block,
            Progressable progress) throws IOException {
        return upload(path, paid("create", path, () -> super.create(
                path, overwrite, buffer, replication, block, progress)));
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        return paid("rename", from, () -> super.rename(from, to));
    }

    @Override
    public boolean delete(Path path, boolean recursive) throws IOException {
        return paid("delete", path, () -> super.delete(path, recursive));
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
        return paid("list", path, () -> super.listStatus(path));
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
        return paid("status", path, () -> super.getFileStatus(path));
    }

    @Override
    public boolean mkdirs(Path path) throws IOException {
        return paid("mkdirs", path, () -> super.mkdirs(path));
    }

    @Override
    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        return paid("mkdirs", path, () -> super.mkdirs(path, permission));
    }

    /** A call from outside costs its latency; what it calls in turn is part of it. */
    private <T> T paid(String what, Path path, Call<T> call) throws IOException {
        if (isInside.get()) {
            return call.run();
        }
        isInside.set(true);
        try {
            pay(what, path);
            return call.run();
        } finally {
            isInside.set(false);
        }
    }

    private void pay(String what, Path path) throws IOException {
        double waits;
        boolean isHit;
        synchronized (this) {
            waits = latencyMs * (0.5 - 0.5 * Math.log(1 - draws.nextDouble()));
            isHit = draws.nextDouble() * 100 < faultSize;
        }
        sleep((long) (waits * 1e6 * factor()));
        boolean fails = faultKind.equals("errors") && isHit && faultFile.exists();
        if (fails || isOut()) {
            throw new IOException("remote storage: " + what + " of " + path + " failed");
        }
    }

    private double factor() {
        return faultKind.equals("slow") && faultFile.exists() ? faultSize : 1;
    }

    private boolean isOut() {
        long since = faultKind.equals("outage") ? faultFile.lastModified() : 0;
        return since > 0 && System.currentTimeMillis() - since < faultSize * 1000;
    }

    /** Streams of a process share the bandwidth: each waits until its bytes are through. */
    private void transfer(int bytes) throws IOException {
        if (bytes <= 0 || isInside.get()) {
            return;
        }
        if (isOut()) {
            throw new IOException("remote storage: the connection was lost");
        }
        long ns = (long) (bytes * nsPerByte * factor());
        long until;
        synchronized (this) {
            busyUntil = Math.max(busyUntil, System.nanoTime()) + ns;
            until = busyUntil;
        }
        sleep(until - System.nanoTime());
    }

    private static void sleep(long ns) throws IOException {
        try {
            TimeUnit.NANOSECONDS.sleep(ns);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new java.io.InterruptedIOException("interrupted");
        }
    }

    private FSDataOutputStream upload(Path path, FSDataOutputStream out) throws IOException {
        if (isInside.get()) {
            return out;
        }
        OutputStream metered = new FilterOutputStream(out) {
            private boolean isClosed;

            @Override
            public void write(byte[] bytes, int from, int length) throws IOException {
                transfer(length);
                out.write(bytes, from, length);
            }

            @Override
            public void close() throws IOException {
                if (!isClosed) {
                    isClosed = true;
                    super.close();
                    pay("close", path);
                }
            }
        };
        return new FSDataOutputStream(new BufferedOutputStream(metered, BUFFER), null);
    }

    private final class Download extends FSInputStream {
        private final FSDataInputStream in;

        private Download(FSDataInputStream in) {
            this.in = in;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int from, int length) throws IOException {
            int found = in.read(bytes, from, length);
            transfer(found);
            return found;
        }

        @Override
        public void seek(long position) throws IOException {
            in.seek(position);
        }

        @Override
        public long getPos() throws IOException {
            return in.getPos();
        }

        @Override
        public boolean seekToNewSource(long position) throws IOException {
            return in.seekToNewSource(position);
        }

        @Override
        public void close() throws IOException {
            in.close();
        }
    }
}
