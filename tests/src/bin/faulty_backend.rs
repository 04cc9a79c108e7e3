//! A backend that stops at one moment of its first exchange, and says so: `faulty-backend 127.0.0.1:7001 answer-body`.
//!
//! For the tests only. It prints `ready`, then `reached` at that moment, and goes on when it is sent a line. It ends when
//! its input does. Requests after the first, and all of them with the moment `never`, are answered with their target.

use std::{
    env,
    io::{self, BufRead, Read, Write, stdin, stdout},
    net::{TcpListener, TcpStream},
    process,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

/// Where it stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Never,
    RequestHead,
    Form,
    NoAnswer,
    AnswerHead,
    AnswerBody,
}

/// Stops the first exchange that gets to its moment.
struct Stop {
    moment: Moment,
    go_on: Mutex<Option<mpsc::Receiver<()>>>,
}

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_default();
    let moment = match arguments.next().as_deref() {
        Some("never") => Moment::Never,
        Some("request-head") => Moment::RequestHead,
        Some("form") => Moment::Form,
        Some("no-answer") => Moment::NoAnswer,
        Some("answer-head") => Moment::AnswerHead,
        Some("answer-body") => Moment::AnswerBody,
        _ => return Err(io::Error::other("usage: faulty-backend ADDRESS MOMENT")),
    };
    let listener = TcpListener::bind(address)?;
    let (line, lines) = mpsc::channel();
    thread::spawn(move || {
        for _ in stdin().lock().lines().map_while(Result::ok) {
            // Nobody may be waiting.
            let _ = line.send(());
        }
        process::exit(0);
    });
    let go_on = Mutex::new(Some(lines));
    let stop = Stop { moment, go_on };
    say("ready")?;
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream?;
            let stop = &stop;
            // How it ended is seen at the other end.
            scope.spawn(move || serve(stream, stop));
        }
        Ok(())
    })
}

fn say(word: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{word}")?;
    out.flush()
}

/// Answers one request after another. Each is read in small pieces, so that there is a moment between any two.
fn serve(mut stream: TcpStream, stop: &Stop) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        read_until(&mut stream, &mut received, 10)?;
        stop.at(Moment::RequestHead)?;
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
            stop.at(Moment::Form)?;
        }
        read_until(&mut stream, &mut received, head_length + length)?;
        received.drain(..head_length + length);
        stop.at(Moment::NoAnswer)?;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            target.len()
        );
        let (begin, rest) = answer.split_at(answer.len() / 2);
        stream.write_all(begin.as_bytes())?;
        stop.at(Moment::AnswerHead)?;
        stream.write_all(rest.as_bytes())?;
        let (begin, rest) = target.split_at(target.len() / 2);
        stream.write_all(begin.as_bytes())?;
        stop.at(Moment::AnswerBody)?;
        stream.write_all(rest.as_bytes())?;
    }
}

/// Reads until there are so many bytes, few at once: what is not read stays in the kernel, as with a slow backend.
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

impl Stop {
    /// Stops here, if this is the moment and no exchange has got to it yet.
    fn at(&self, moment: Moment) -> io::Result<()> {
        if moment != self.moment {
            return Ok(());
        }
        let lines = self
            .go_on
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(lines) = lines {
            say("reached")?;
            // Without a line there is nothing to go on for.
            let _ = lines.recv();
        }
        Ok(())
    }
}
