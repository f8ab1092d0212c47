//! The questions to Sentinels and to the servers that they watch.

use redis::{Cmd, ErrorKind, Pipeline, RedisError, Value, cmd};

use super::address::Host;
use super::evidence::{Report, Role};
use super::failure::{Refusal, ServerFailure};

/// Returns the questions to a Sentinel about the master of this name.
pub(super) fn questions(master: &str) -> Pipeline {
    let mut questions = Pipeline::with_capacity(3);
    for word in ["GET-MASTER-ADDR-BY-NAME", "MASTER", "REPLICAS"] {
        let mut question = cmd("SENTINEL");
        question.arg(word).arg(master);
        questions.add_command(question);
    }
    questions
}

/// Reads the answers to [`questions`] from the Sentinel at `at`.
pub(super) fn read_report(answers: Vec<Value>, at: &str, master: &str) -> Result<Report, ServerFailure> {
    let other = |what: &'static str, detail: String| {
        ServerFailure::Other(RedisError::from((ErrorKind::InvalidClientConfig, what, detail)))
    };
    let mut answers = answers.into_iter().map(|answer| answer.extract_error().map_err(read_failure));
    let mut next = || answers.next().unwrap_or(Ok(Value::Nil));
    // A Sentinel that is about to end a failover names the new master here, and the former one in its other answers.
    let named = match next()? {
        Value::Nil => return Err(other("unknown master", format!("{at} knows no master '{master}'"))),
        named => redis::from_redis_value::<(String, u16)>(named).ok().map(|(name, port)| Host { name, port }),
    };
    let facts = next()?;
    let Value::Array(replicas) = next()? else {
        return Err(other("unreadable", format!("{at} does not list the replicas of '{master}'")));
    };
    let report = || {
        let named = named?;
        let is_failing_over = fact(&facts, "flags")?.split(',').any(|flag| flag == "failover_in_progress");
        let is_replacing = is_failing_over && host(&facts)? == named;
        let replicas = replicas.iter().filter_map(host).collect();
        Some(Report { master: named, epoch: fact(&facts, "config-epoch")?.parse().ok()?, is_replacing, replicas })
    };
    report().ok_or_else(|| other("unreadable", format!("{at} describes the master '{master}' in an unknown form")))
}

/// Returns the question for the role of a server.
pub(super) fn role() -> Cmd {
    cmd("ROLE")
}

/// Reads the answer to [`role`] of the server at `at`.
pub(super) fn read_role(answers: Vec<Value>, at: &Host) -> Result<Role, ServerFailure> {
    let answer = answers.into_iter().next().unwrap_or(Value::Nil).extract_error().map_err(read_failure)?;
    let Value::Array(values) = answer else { return Err(unreadable_role(at)) };
    match values.first().and_then(text) {
        Some("master") => Ok(Role::Master),
        Some("slave" | "replica") => Ok(Role::Replica),
        _ => Err(unreadable_role(at)),
    }
}

fn unreadable_role(at: &Host) -> ServerFailure {
    let detail = format!("{at} answers ROLE in an unknown form");
    ServerFailure::Other(RedisError::from((ErrorKind::UnexpectedReturnType, "unreadable", detail)))
}

fn read_failure(error: RedisError) -> ServerFailure {
    Refusal::read(error).into_failure()
}

/// Returns the value of a name, in a list in which each name is followed by its value.
fn fact<'a>(facts: &'a Value, name: &str) -> Option<&'a str> {
    let Value::Array(facts) = facts else { return None };
    facts.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| text(&pair[1]))
}

fn host(facts: &Value) -> Option<Host> {
    Some(Host { name: fact(facts, "ip")?.to_owned(), port: fact(facts, "port")?.parse().ok()? })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn list(texts: &[&str]) -> Value {
        Value::Array(texts.iter().map(|text| bulk(text)).collect())
    }

    fn master(port: &str, flags: &str) -> Value {
        list(&["name", "main", "ip", "10.0.0.1", "port", port, "flags", flags, "config-epoch", "7"])
    }

    fn read(answers: Vec<Value>) -> Result<Report, String> {
        read_report(answers, "s:1", "main").map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn reports_of_sentinels_are_parsed() {
        let replica = |port| list(&["ip", "10.0.0.2", "port", port, "flags", "s_down,slave"]);
        let named = list(&["10.0.0.1", "1"]);
        let host = |name: &str, port| Host { name: name.to_owned(), port };
        let report = read(vec![
            named.clone(),
            master("1", "master"),
            Value::Array(vec![replica("2"), replica("x"), replica("3")]),
        ]);
        let replicas = vec![host("10.0.0.2", 2), host("10.0.0.2", 3)];
        let expected = Report { master: host("10.0.0.1", 1), epoch: 7, is_replacing: false, replicas };
        assert_eq!(report.unwrap(), expected);
        // While it looks for a new master the Sentinel names the former one, and at the end the new one.
        let failing_over =
            |port| vec![named.clone(), master(port, "master,failover_in_progress"), Value::Array(vec![])];
        assert!(read(failing_over("1")).unwrap().is_replacing);
        assert!(!read(failing_over("9")).unwrap().is_replacing);
        for (answers, says) in [
            (vec![Value::Nil, Value::Nil, Value::Nil], "knows no master 'main'"),
            (vec![named.clone(), Value::Nil, Value::Array(vec![])], "unknown form"),
            (vec![bulk("x"), master("1", "master"), Value::Array(vec![])], "unknown form"),
            (vec![named.clone(), master("1", "master")], "does not list the replicas"),
            (vec![], "knows no master"),
        ] {
            assert!(read(answers.clone()).is_err_and(|error| error.contains(says)), "{answers:?}");
        }
    }

    #[test]
    fn roles_are_parsed() {
        let at = Host { name: "h".to_owned(), port: 1 };
        let read = |answers| read_role(answers, &at);
        for (word, role) in [("master", Role::Master), ("slave", Role::Replica)] {
            assert_eq!(read(vec![Value::Array(vec![bulk(word), Value::Int(3)])]).unwrap(), role);
        }
        for answers in
            [vec![Value::Array(vec![bulk("sentinel")])], vec![Value::Nil], vec![Value::Array(vec![])], vec![]]
        {
            assert!(matches!(read(answers), Err(ServerFailure::Other(error)) if error.to_string().contains("h:1")));
        }
    }
}
