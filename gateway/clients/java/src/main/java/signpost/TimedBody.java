// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The body of a response. Each read ends in time, and when the thread is interrupted: what blocks is in a thread of its own. */
final class TimedBody extends InputStream {
    /** They end when they are idle. */
    static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        var thread = new Thread(task, "signpost");
        thread.setDaemon(true);
        return thread;
    });

    private final InputStream body;
    private final Transport.Request request;
    private final Runnable cut;
    /** Bytes that are missing, below 0 if the head does not say it. */
    private long left;
    private boolean isWhole;

    /** With what cuts the connection, if the body is closed early. */
    TimedBody(InputStream body, long length, Transport.Request request, Runnable cut) {
        this.body = body;
        this.request = request;
        this.cut = cut;
        left = length;
    }

    /** Runs a task in another thread, and cuts its connection if it takes longer. */
    static <T> T await(Callable<T> task, long nanos, Runnable cut) throws IOException, InterruptedException {
        var future = THREADS.submit(task);
        try {
            return future.get(nanos, TimeUnit.NANOSECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof IOException ? (IOException) error.getCause() : new IOException(error.getCause());
        } catch (InterruptedException | TimeoutException error) {
            future.cancel(true);
            THREADS.execute(cut);
            if (error instanceof InterruptedException) {
                throw (InterruptedException) error;
            }
            throw new SocketTimeoutException("no response in time");
        }
    }

    @Override
    public int read() throws IOException {
        var one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
        try {
            var count = await(() -> body.read(bytes, offset, length), request.nanosToRead(), cut);
            isWhole = count < 0;
            if (isWhole && left > 0) {
                throw new EOFException("the response was cut off");
            }
            left -= left < 0 ? 0 : count;
            return count;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted");
        } catch (IOException error) {
            // Of java.net.http, what happened is the cause.
            throw error.getCause() instanceof IOException ? (IOException) error.getCause() : error;
        }
    }

    @Override
    public void close() {
        if (!isWhole) {
            THREADS.execute(cut);
        }
    }
}
