//! An answer that a client does not read takes a limited amount of memory, the kernel's included.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use end_to_end::{raw_connection::request, stack::Stack, waiting::within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

/// Twice what the gateway, its kernel buffers and those of this test hold; half of what they would hold with the
/// kernel's own buffer sizes.
const LARGE: usize = 2 * 1024 * 1024;

/// Kernel buffer of each of this test's sockets.
const BUFFER: u32 = 64 * 1024;

#[tokio::test]
async fn an_unread_answer_stays_at_the_backend() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(BUFFER).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    let address = listener.local_addr().unwrap();
    let is_sent = Arc::new(AtomicBool::new(false));
    let sent = Arc::clone(&is_sent);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // One read gets the request.
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b'x'; LARGE]).await;
        sent.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    });
    let stack = Stack::builder().in_front_of_address(address).start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(BUFFER).unwrap();
    let mut client = socket.connect(stack.addresses().gateway).await.unwrap();
    client
        .write_all(&request("GET", "/large", &[], b""))
        .await
        .unwrap();
    let mut start = [0; 15];
    client.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    let taken = within(Duration::from_secs(2), || async {
        is_sent.load(Ordering::Relaxed).then_some(())
    });
    assert_eq!(taken.await, None, "{LARGE} bytes were buffered");
    // The whole answer arrives once the client reads.
    let mut rest = vec![0; LARGE];
    client.read_exact(&mut rest).await.unwrap();
    assert!(is_sent.load(Ordering::Relaxed));
}
