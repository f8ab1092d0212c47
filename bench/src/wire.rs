//! A minimal client for HTTP/1.1 and RESP that costs little, because the generator shares the machine with the server
//! that it measures.
//!
//! Requests are built once, as bytes. Of a response, only the end is found, and whether it is a failure.

use anyhow::{Context, bail};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest response that is read, in bytes.
const LONGEST_ANSWER: usize = 16 << 20;

/// Returns a request with a body.
pub fn request(method: &str, path: &str, media_type: &str, body: &[u8]) -> Bytes {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

/// Returns a request without a body.
pub fn bare(method: &str, path: &str) -> Bytes {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into()
}

/// Returns a `GET` request.
pub fn get(path: &str) -> Bytes {
    bare("GET", path)
}

/// Returns the request of an increment of 1.
pub fn increment(board: &str, subject: &str) -> Bytes {
    let body = format!("{{\"subject\":\"{subject}\",\"amount\":1}}");
    request("POST", &format!("/v1/boards/{board}/increments"), "application/json", body.as_bytes())
}

/// Returns the request for the baseline servers: an increment of 1 to their only path.
pub fn baseline(subject: &str) -> Bytes {
    let body = format!("{{\"subject\":\"{subject}\",\"amount\":1}}");
    request("POST", "/", "application/json", body.as_bytes())
}

/// Returns a Redis command.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// A complete HTTP response that is not a success. The connection can be used again.
#[derive(Debug, thiserror::Error)]
#[error("the server answered {0}")]
pub struct Refused(String);

/// The rule that finds the end of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One HTTP response with a Content-Length.
    Http,
    /// This many lines from Redis, without an error. Not for replies that contain line ends or minus signs.
    Redis { lines: usize },
}

/// A connection for one exchange after another.
pub struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects to an address such as `127.0.0.1:8080`.
    pub async fn open(address: &str, protocol: Protocol) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, protocol, answer: Vec::with_capacity(1 << 14) })
    }

    /// Sends a request and reads the whole response. Returns its body for HTTP. Returns an error if the response
    /// reports one.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.answer.clear();
        self.stream.write_all(request).await?;
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the server closed the connection after {} bytes of its answer", self.answer.len());
            }
            let body = match self.protocol {
                Protocol::Http => http_body(&self.answer)?,
                Protocol::Redis { lines } => redis_lines(&self.answer, lines)?.then_some(0),
            };
            if let Some(body) = body {
                return Ok(&self.answer[body..]);
            }
            if self.answer.len() > LONGEST_ANSWER {
                bail!("the answer is longer than {LONGEST_ANSWER} bytes");
            }
        }
    }
}

/// Returns the offset of the body of a complete response, or `None` if the response is not complete.
fn http_body(answer: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let body = head + 4;
    let length = answer[..head]
        .split(|byte| *byte == b'\n')
        .find_map(|line| {
            let (name, value) = line.split_at_checked(b"content-length:".len())?;
            let is_length = name.eq_ignore_ascii_case(b"content-length:");
            is_length.then(|| std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok())?
        })
        .with_context(|| format!("no Content-Length in {}", shown(answer)))?;
    if answer.len() - body < length {
        return Ok(None);
    }
    if !answer.starts_with(b"HTTP/1.1 2") {
        return Err(Refused(shown(answer)).into());
    }
    Ok(Some(body))
}

fn redis_lines(answer: &[u8], lines: usize) -> anyhow::Result<bool> {
    if answer.contains(&b'-') {
        bail!("Redis answered {}", shown(answer));
    }
    Ok(answer.iter().filter(|byte| **byte == b'\n').count() >= lines)
}

fn shown(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(500)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_response_ends_at_its_content_length() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        for end in 0..whole.len() {
            assert_eq!(http_body(&whole[..end]).unwrap(), None, "cut at {end}");
        }
        let body = http_body(whole).unwrap().unwrap();
        assert_eq!(&whole[body..], b"hello");
        assert!(http_body(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }

    #[test]
    fn a_complete_refusal_is_distinguished_from_an_error() {
        let whole = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nwait";
        assert_eq!(http_body(&whole[..whole.len() - 1]).unwrap(), None);
        let refused = http_body(whole).unwrap_err();
        assert!(refused.is::<Refused>() && refused.to_string().ends_with("wait"), "{refused}");
        let failed = http_body(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err();
        assert!(!failed.is::<Refused>(), "{failed}");
    }

    #[test]
    fn redis_replies_are_counted_in_lines() {
        assert_eq!(command(&["GET", "é"]), "*2\r\n$3\r\nGET\r\n$2\r\né\r\n".as_bytes());
        assert!(!redis_lines(b":1\r\n$1\r\n", 3).unwrap());
        assert!(redis_lines(b":1\r\n$1\r\n1\r\n", 3).unwrap());
        assert!(redis_lines(b"-OOM\r\n", 1).is_err());
    }
}
