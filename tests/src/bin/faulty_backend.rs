//! A backend that pauses at one moment of its first exchange: `faulty-backend 127.0.0.1:7001 response-body`.
//!
//! For the tests only. It prints `ready`, then `reached` at that moment, and continues when it reads a line. It exits
//! when its input is closed. Each request is answered with its target; the moment `never` pauses none.

use std::{
    env,
    io::{self, BufRead, Read, Write, stdin, stdout},
    net::{TcpListener, TcpStream},
    process,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

/// The moment of the pause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Never,
    RequestHead,
    Form,
    NoResponse,
    BackendHead,
    ResponseBody,
}

/// Pauses the first exchange that reaches the moment.
struct Pause {
    moment: Moment,
    resume: Mutex<Option<mpsc::Receiver<()>>>,
}

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_default();
    let moment = match arguments.next().as_deref() {
        Some("never") => Moment::Never,
        Some("request-head") => Moment::RequestHead,
        Some("form") => Moment::Form,
        Some("no-answer") => Moment::NoResponse,
        Some("answer-head") => Moment::BackendHead,
        Some("answer-body") => Moment::ResponseBody,
        _ => return Err(io::Error::other("usage: faulty-backend ADDRESS MOMENT")),
    };
    let listener = TcpListener::bind(address)?;
    let (line, lines) = mpsc::channel();
    thread::spawn(move || {
        for _ in stdin().lock().lines().map_while(Result::ok) {
            // Fails if no exchange is paused, which is fine.
            let _ = line.send(());
        }
        process::exit(0);
    });
    let resume = Mutex::new(Some(lines));
    let pause = Pause { moment, resume };
    print_line("ready")?;
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream?;
            let pause = &pause;
            // The tests see the result at the gateway.
            scope.spawn(move || serve(stream, pause));
        }
        Ok(())
    })
}

fn print_line(word: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{word}")?;
    out.flush()
}

/// Answers one request after another. Each is read in small pieces, so that the pause can be between any two of them.
fn serve(mut stream: TcpStream, pause: &Pause) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        read_until(&mut stream, &mut received, 10)?;
        pause.at(Moment::RequestHead)?;
        let end = b"\r\n\r\n";
        let head_length = loop {
            match received.windows(end.len()).position(|window| window == end) {
                Some(position) => break position + end.len(),
                None => {
                    let more = received.len() + 1;
                    read_until(&mut stream, &mut received, more)?;
                }
            }
        };
        let head = String::from_utf8_lossy(&received[..head_length]).to_ascii_lowercase();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse().ok());
        let length: usize = length.unwrap_or(0);
        if length > 0 {
            read_until(&mut stream, &mut received, head_length + 1)?;
            pause.at(Moment::Form)?;
        }
        read_until(&mut stream, &mut received, head_length + length)?;
        received.drain(..head_length + length);
        pause.at(Moment::NoResponse)?;
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            target.len()
        );
        let (begin, rest) = response.split_at(response.len() / 2);
        stream.write_all(begin.as_bytes())?;
        pause.at(Moment::BackendHead)?;
        stream.write_all(rest.as_bytes())?;
        let (begin, rest) = target.split_at(target.len() / 2);
        stream.write_all(begin.as_bytes())?;
        pause.at(Moment::ResponseBody)?;
        stream.write_all(rest.as_bytes())?;
    }
}

/// Reads until `length` bytes are received. Small reads: as with a slow backend, unread bytes stay in the kernel.
fn read_until(stream: &mut TcpStream, received: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let mut buffer = [0; 16];
    while received.len() < length {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => received.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}

impl Pause {
    /// Pauses here, if this is the moment and no exchange has reached it before.
    fn at(&self, moment: Moment) -> io::Result<()> {
        if moment != self.moment {
            return Ok(());
        }
        let lines = self
            .resume
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(lines) = lines {
            print_line("reached")?;
            // Fails when the input is closed; then the process exits anyway.
            let _ = lines.recv();
        }
        Ok(())
    }
}
