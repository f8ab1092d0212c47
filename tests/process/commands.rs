//! The commands for boards and rankings, against a running service.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::access::{hash, run};
use crate::running::{Running, program};
use crate::waiting::Wait;

/// A service with a board `likes`, and what commands say to it.
pub struct Service {
    pub running: Running,
    folder: tempfile::TempDir,
}

impl Service {
    fn start(boards: &str) -> Service {
        Service::start_with(boards, &[])
    }

    pub fn start_with(boards: &str, options: &[&str]) -> Service {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("r.toml"), boards).unwrap();
        let running = Running::start(folder.path(), &[&["--config", "r.toml"], options].concat());
        Service { running, folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(self.folder.path());
        command.env("ROLLTOP_URL", &self.running.base).args(args).stdout(Stdio::piped()).stdin(Stdio::null());
        command
    }

    /// Runs a command. Returns its exit code, and what it printed to standard output and error.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        said(self.command(args).output().unwrap())
    }

    pub fn ok(&self, args: &[&str]) -> String {
        let (code, printed, said) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {said}");
        printed
    }

    fn json(&self, args: &[&str]) -> Value {
        let printed = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{args:?}: {error}: {printed}"))
    }

    fn fails(&self, args: &[&str]) -> String {
        let (code, printed, said) = self.run(args);
        assert_eq!((code, printed.as_str()), (1, ""), "{args:?}: {said}");
        said
    }

    /// Runs a command that prints an answer and fails.
    fn fails_with(&self, args: &[&str]) -> String {
        let (code, _, said) = self.run(args);
        assert_eq!(code, 1, "{args:?}: {said}");
        said
    }

    /// Runs a command with this standard input.
    pub fn feed(&self, args: &[&str], input: &[u8]) -> (i32, String, String) {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A command that has failed does not read to the end.
                let _ = stdin.write_all(input);
            });
            said(child.wait_with_output().unwrap())
        })
    }
}

fn said(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const LIKES: &str = "[boards.likes]\nmetric = \"COUNT(24h, like, post_id)\"\nslot = \"1h\"\nwindows = [\"all\"]\n";
const BY_COUNTRY: &str = "[boards.by-country]\nmetric = \"SUM(24h, sale, amount, product BY country)\"\nslot = \"1h\"\n\
                          decimals = 2\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_posted_is_on_top_in_tables_json_and_csv() {
    let service = Service::start(LIKES);
    service.ok(&["post", "likes", "a", "5"]);
    service.ok(&["post", "likes", "b", "--id", "x"]);
    let again = service.json(&["post", "likes", "b", "--id", "x"]);
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(1)));
    service.ok(&["event", "like", "post_id=b", "user=7"]);

    let table = service.ok(&["top", "likes"]);
    let lines: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[..3], ["rank subject score", "1 a 5", "2 b 2"], "{table}");
    assert!(lines[3].starts_with("2 ranked, from "), "{table}");
    assert!(!table.contains('\u{1b}'), "colors are for terminals: {table:?}");
    let page = service.json(&["top", "likes", "--limit", "1", "--offset", "1", "--window", "all"]);
    assert_eq!(page["items"], json!([{"rank": 2, "subject": "b", "score": 2}]));
    assert_eq!(service.ok(&["top", "likes", "--csv"]), "rank,subject,score\n1,a,5\n2,b,2\n");

    let found = service.json(&["rank", "likes", "nobody", "b"]);
    assert_eq!((&found["items"][0]["rank"], &found["items"][1]["rank"]), (&json!(2), &Value::Null));
    let around = service.ok(&["rank", "likes", "b", "--around", "1", "--csv"]);
    assert_eq!(around.lines().count(), 3, "{around}");
    assert_eq!(service.json(&["rank", "likes", "b", "--last", "1h"])["value"], 2);

    assert_eq!(service.ok(&["export", "likes"]).lines().last(), Some(r#"{"rank":2,"subject":"b","score":2}"#));
    service.ok(&["export", "likes", "--csv", "--output", "likes.csv"]);
    let written = std::fs::read_to_string(service.folder.path().join("likes.csv")).unwrap();
    assert_eq!(written, service.ok(&["top", "likes", "--csv"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_distribution_is_printed_by_percentile_and_by_range() {
    let service = Service::start(&format!("{LIKES}{BY_COUNTRY}"));
    for (subject, amount) in [("a", "1"), ("b", "20"), ("c", "20"), ("d", "300")] {
        service.ok(&["post", "likes", subject, amount]);
    }
    assert_eq!(
        service.ok(&["distribution", "likes", "--csv"]),
        "percentile,score\n0,1\n25,1\n50,20\n75,20\n90,300\n95,300\n99,300\n100,300\n"
    );
    let ranges = service.ok(&["distribution", "likes", "--scores", "-5,20,300", "--window", "all", "--csv"]);
    assert_eq!(ranges, "from,below,subjects\n-,-5,0\n-5,20,1\n20,300,2\n300,-,1\n");
    let both = ["distribution", "likes", "--percentiles", "50,99.9", "--scores", "20"];
    let printed = service.ok(&both);
    let lines: Vec<_> = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = ["percentile score", "50 20", "99.9 300", "", "from below subjects", "- 20 1", "20 - 3"];
    assert_eq!(lines[..7], expected, "{printed}");
    assert!(lines[7].starts_with("4 ranked, from "), "{printed}");
    let answer = service.json(&both);
    assert_eq!((&answer["total"], &answer["ranges"][1]["subjects"]), (&json!(4), &json!(3)));
    assert!(service.fails(&[&both[..], &["--csv"]].concat()).contains("give --percentiles or --scores"));

    service.ok(&["post", "by-country", "ann", "2.5", "--by", "se"]);
    let of_key = ["distribution", "by-country", "--by", "se", "--percentiles", "50", "--csv"];
    assert_eq!(service.ok(&of_key), "percentile,score\n50,2.5\n");
    let of_empty = ["distribution", "by-country", "--by", "no", "--percentiles", "50", "--csv"];
    assert_eq!(service.ok(&of_empty), "percentile,score\n50,-\n");
    assert!(service.fails(&["distribution", "by-country"]).contains("`rolltop boards by-country --keys`"));
    assert!(service.fails(&["distribution", "likes", "--percentiles", "101"]).contains("percentiles"));
    assert_eq!(service.run(&["distribution", "likes", "--scores", "x"]).0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn periods_are_listed_and_read() {
    let service = Service::start_with(LIKES, &["--clock", "simulated=2026-01-30T10:00:00Z"]);
    let metric = "COUNT(all, sale, seller)";
    let defined = service.run(&["define", "sellers", metric, "--season", "every=1mo,archive=2", "--yes"]);
    assert!(defined.2.contains("season           archive=2,every=1mo,grace=1h\n"), "{defined:?}");
    let header = "period,start,end,final,ranked,rank,subject,score\n";
    let (january, february) =
        ("2026-01-01T00:00:00Z,2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z,2026-03-01T00:00:00Z");
    let none = format!("{header}2026-01,{january},no,0,-,-,-\n");
    assert_eq!(service.ok(&["periods", "sellers", "--csv"]), none);
    service.ok(&["post", "sellers", "a", "3", "--period", "2026-01"]);
    service.ok(&["post", "sellers", "b"]);
    assert!(service.fails(&["post", "sellers", "b", "--period", "2026-02"]).contains("no period '2026-02'"));

    service.running.ok("PUT", "/v1/clock", Some(json!({"now": "2026-02-01T02:00:00Z"}))).await;
    service.ok(&["post", "sellers", "c", "9"]);
    let first = format!("{header}2026-01,{january},yes,2,1,a,3\n");
    assert_eq!(service.ok(&["periods", "sellers", "--csv"]), format!("{first}2026-02,{february},no,1,1,c,9\n"));
    assert_eq!(service.ok(&["periods", "sellers", "--csv", "--final"]), first);
    assert_eq!(service.ok(&["periods", "sellers", "--csv", "--limit", "1"]), first);
    assert_eq!(service.ok(&["periods", "sellers", "--csv", "--final", "--after", "2026-01"]), header);
    let both = service.ok(&["periods", "sellers", "--csv", "--winners", "2", "--final"]);
    assert_eq!(both, format!("{first}2026-01,{january},yes,2,2,b,1\n"));
    assert_eq!(service.json(&["periods", "sellers", "--winners", "1"])["items"][1]["winners"][0]["subject"], "c");

    let past = ["--period", "2026-01", "--csv"];
    let top = "rank,subject,score\n1,a,3\n2,b,1\n";
    assert_eq!(service.ok(&[&["top", "sellers"][..], &past].concat()), top);
    assert_eq!(service.ok(&[&["export", "sellers"][..], &past].concat()), top);
    assert_eq!(service.ok(&[&["rank", "sellers", "a", "--around", "1"][..], &past].concat()), top);
    let ranks = service.ok(&[&["rank", "sellers", "b"][..], &past].concat());
    assert_eq!(ranks, "rank,subject,score,percentile\n2,b,1,50.0\n");
    let spread = service.ok(&[&["distribution", "sellers", "--percentiles", "100"][..], &past].concat());
    assert_eq!(spread, "percentile,score\n100,3\n");
    assert!(service.ok(&["top", "sellers", "--period", "2026-01"]).contains("period 2026-01 (final), from 2026-01-01"));
    assert!(service.ok(&["boards", "sellers"]).contains("period 2026-02, from 2026-02-01"));
    assert!(service.fails(&["top", "sellers", "--period", "2025-12"]).contains("no period '2025-12'"));
    assert!(service.fails(&["periods", "likes"]).contains("season"));
    assert_eq!(service.run(&["top", "sellers", "--period", "2026-01", "--watch"]).0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_that_nobody_has_closed_has_no_end() {
    let service = Service::start_with("", &["--clock", "simulated=2026-01-30T10:00:00Z"]);
    service.ok(&["define", "cup", "COUNT(all, goal, player)", "--season", "every=manual", "--yes"]);
    service.ok(&["post", "cup", "ann", "2"]);
    let header = "period,start,end,final,ranked,rank,subject,score\n";
    let open = format!("{header}1,1970-01-01T00:00:00Z,-,no,1,1,ann,2\n");
    assert_eq!(service.ok(&["periods", "cup", "--csv"]), open);
    assert!(service.ok(&["top", "cup"]).contains("period 1, from 1970-01-01T00:00:00Z on"));
    assert!(service.ok(&["boards", "cup"]).contains("period 1, from 1970-01-01T00:00:00Z on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_is_closed_by_its_name() {
    let service = Service::start_with(LIKES, &["--clock", "simulated=2026-01-30T10:00:00Z"]);
    service.ok(&["define", "cup", "COUNT(all, goal, player)", "--season", "every=manual,grace=1h", "--yes"]);
    service.ok(&["post", "cup", "ann", "2"]);
    let close = ["close", "cup", "--yes", "--csv"];
    assert!(service.fails(&close[..2]).contains("Close period '1' of 'cup'?"));
    let (start, end) = ("1970-01-01T00:00:00Z", "2026-01-30T10:00:00Z");
    let first = format!("state,period,start,end\nclosed,1,{start},{end}\ncurrent,2,{end},-\n");
    assert_eq!(service.ok(&close), first);
    // Again, such as by a script that was interrupted: nothing more is closed.
    assert_eq!(service.ok(&[&close[..], &["--period", "1"]].concat()), first);
    assert!(service.fails(&close).contains("late items, until 2026-01-30T11:00:00Z"));
    let boards = service.ok(&["boards", "--csv"]);
    assert!(boards.starts_with("board,metric,slot,further_windows,period\n"), "{boards}");
    assert!(boards.contains(",2\n") && boards.contains(",-\n"), "{boards}");
    assert_eq!(service.json(&["top", "cup", "--period", "1"])["items"][0]["subject"], "ann");

    service.running.ok("PUT", "/v1/clock", Some(json!({"now": "2026-01-30T11:00:00Z"}))).await;
    assert_eq!(service.json(&["close", "cup", "--yes"])["current"]["name"], "3");
    assert!(service.fails(&["close", "cup", "--yes", "--period", "7"]).contains("no period '7'"));
    assert!(service.fails(&["close", "likes", "--yes"]).contains("has no season"));
}

#[tokio::test(flavor = "multi_thread")]
async fn second_keys_are_posted_printed_and_exported() {
    let service = Service::start(LIKES);
    let metric = "SUM(all, answer, points, player)";
    service.ok(&["define", "quiz", metric, "--tie-break", "most=1000,order=asc", "--yes"]);
    for (player, points, seconds) in [("ann", "10", "42"), ("bob", "10", "-7"), ("cat", "3", "0")] {
        service.ok(&["post", "quiz", player, points, "--tie-break", seconds]);
    }
    let lines = "rank,subject,score,tie\n1,bob,10,-7\n2,ann,10,42\n3,cat,3,0\n";
    assert_eq!(service.ok(&["top", "quiz", "--csv"]), lines);
    assert_eq!(service.ok(&["export", "quiz", "--csv"]), lines);
    let ranks = service.ok(&["rank", "quiz", "ann", "--csv"]);
    assert_eq!(ranks, "rank,subject,score,percentile,tie\n2,ann,10,66.7,42\n");
    assert!(service.fails(&["post", "quiz", "ann", "1"]).contains("the field 'tie_break' is missing"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tiers_are_set_printed_and_shown_with_lines() {
    let service = Service::start(&format!("{LIKES}{BY_COUNTRY}"));
    for (subject, amount) in [("a", "300"), ("b", "20"), ("c", "3"), ("d", "1")] {
        service.ok(&["post", "likes", subject, amount]);
    }
    assert_eq!(service.ok(&["tiers", "likes", "--csv"]), "tier,bound,value\n");
    let set = ["tiers", "likes", "--set", "gold=top:12.5", "--set", "a=b=rank:2", "--set", "bronze=score:3"];
    let printed = service.ok(&set);
    let lines: Vec<_> = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines, ["tier bound value", "gold top 12.5", "a=b rank 2", "bronze score 3"], "{printed}");
    assert_eq!(
        service.ok(&["tiers", "likes", "--csv"]),
        "tier,bound,value\ngold,top,12.5\na=b,rank,2\nbronze,score,3\n"
    );
    assert_eq!(service.json(&["tiers", "likes"])["tiers"][1], json!({"name": "a=b", "rank": 2}));

    let top = "rank,subject,score,tier\n1,a,300,gold\n2,b,20,a=b\n3,c,3,bronze\n4,d,1,-\n";
    assert_eq!(service.ok(&["top", "likes", "--csv"]), top);
    assert_eq!(service.ok(&["top", "likes", "--csv", "--offset", "3"]), "rank,subject,score\n4,d,1\n");
    let ranks = service.ok(&["rank", "likes", "d", "b", "--csv"]);
    assert_eq!(ranks, "rank,subject,score,percentile,tier\n2,b,20,75.0,a=b\n4,d,1,25.0,-\n");
    let around = service.ok(&["rank", "likes", "a", "--around", "1", "--csv"]);
    assert_eq!(around, "rank,subject,score,tier\n1,a,300,gold\n2,b,20,a=b\n");
    assert_eq!(service.ok(&["export", "likes", "--csv"]), top.replace(",-\n", ",\n"));
    let lines = service.ok(&["export", "likes"]);
    assert_eq!(lines.lines().next(), Some(r#"{"rank":1,"subject":"a","score":300,"tier":"gold"}"#));

    for wrong in ["gold", "gold=5", "gold=top:x", "gold=rank:-1", "gold=first:1", "gold=score:"] {
        assert_eq!(service.run(&["tiers", "likes", "--set", wrong]).0, 2, "{wrong}");
    }
    assert_eq!(service.run(&["tiers", "likes", "--set", "gold=top:5", "--none"]).0, 2);
    assert!(service.fails(&["tiers", "likes", "--set", "gold=top:0"]).contains("percentage above 0"));
    assert!(service.fails(&["tiers", "nope"]).contains("unknown board"));
    assert_eq!(service.ok(&["tiers", "likes", "--none", "--csv"]), "tier,bound,value\n");
    assert_eq!(service.ok(&["export", "likes", "--csv"]).lines().next(), Some("rank,subject,score"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_standard_input_count_once_and_errors_name_them() {
    let service = Service::start(&format!("{LIKES}{BY_COUNTRY}"));
    let lines: String = (0..2_345).map(|at| format!("{{\"subject\":\"s{}\",\"id\":\"i{at}\"}}\n", at % 7)).collect();
    for _ in 0..2 {
        let (code, printed, said) = service.feed(&["post", "likes", "--json"], lines.as_bytes());
        assert_eq!(code, 0, "{printed} {said}");
    }
    assert_eq!(service.json(&["top", "likes", "--limit", "1"])["items"][0]["score"], 335);

    let wrong = "{\"subject\":\"a\"}\n\nno json\n{\"subject\":\"b\",\"amount\":1.5}\n";
    let (code, printed, said) = service.feed(&["post", "likes", "--json"], wrong.as_bytes());
    let counts: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(counts, json!({"accepted": 1, "duplicates": 0, "rejected": 2, "failed": 0, "unknown": 0}), "{said}");
    assert!(code == 1 && said.contains("line 3: ") && said.contains("line 4: "), "{said}");

    let events = "{\"type\":\"sale\",\"fields\":{\"amount\":19.99,\"product\":\"p\",\"country\":\"se\"}}\n".repeat(3);
    let (code, _, said) = service.feed(&["event"], events.as_bytes());
    assert_eq!(code, 0, "{said}");
    assert_eq!(service.json(&["top", "by-country", "--by", "se"])["items"][0]["score"], 59.97);

    assert!(service.fails_with(&["event", "slae", "product=p"]).contains("no board counts events of type 'slae'"));
    // Each board that refuses an event has a reason of its own.
    service.ok(&["define", "products", "COUNT(24h, sale, product)", "--slot", "1h", "--yes"]);
    let said = service.fails_with(&["event", "sale", "country=se"]);
    assert!(said.contains("not counted on 'by-country': ") && said.contains("not counted on 'products': "), "{said}");
    let (code, printed, said) = service.feed(&["event", "--json"], b"{\"type\":\"slae\",\"fields\":{}}\n");
    assert!(code == 0 && printed.contains("\"unknown\":1") && said.contains("slae"), "{printed} {said}");

    let mut long = format!("{{\"subject\":\"{}\"}}\n", "x".repeat(2 << 20)).into_bytes();
    long.extend_from_slice(b"\xff\n\r\n{\"subject\":\"last\"}");
    let (code, printed, said) = service.feed(&["post", "likes", "--csv"], &long);
    assert!(printed.ends_with("\n1,0,2,0\n") && said.contains("line 2: the line is not UTF-8"), "{printed} {said}");
    assert!(code == 1 && said.contains("line 1: the line is longer"), "{said}");
    let (code, _, said) = service.feed(&["post", "nothing"], b"{\"subject\":\"a\"}\n");
    assert!(code == 1 && said.contains("unknown board 'nothing'"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_reading_and_what_was_read_is_sent() {
    let service = Service::start(LIKES);
    let mut child = service.command(&["post", "likes", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Standard input stays open.
    stdin.write_all(b"{\"subject\":\"a\"}\n{\"subject\":\"b\"}\n").unwrap();
    let counting = Wait::begin("the first lines are counted");
    while service.json(&["top", "likes"])["total"] != 2 {
        counting.pause("they are not");
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let (code, printed, said) = said(child.wait_with_output().unwrap());
    let counts: Value = serde_json::from_str(&printed).unwrap();
    assert!(code == 1 && counts["accepted"] == 2 && said.contains("interrupted"), "{printed} {said}");
    drop(stdin);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_is_defined_changed_audited_rolled_over_and_erased() {
    let service = Service::start(BY_COUNTRY);
    let definition = ["define", "likes", "COUNT(24h, like, post_id)", "--slot", "1h", "--set", "timezone=Asia/Tokyo"];
    let said = service.fails(&definition);
    assert!(said.contains("COUNT(24h, like, post_id)") && said.contains("bytes") && said.contains("--yes"), "{said}");
    assert_eq!(service.json(&[&definition[..], &["--dry-run"]].concat())["exists"], false);
    assert_eq!(service.json(&[&definition[..], &["--yes"]].concat())["timezone"], "Asia/Tokyo");
    assert!(service.ok(&definition).contains("defined like this already"));
    let other = ["define", "likes", "COUNT(7d, like, post_id)", "--slot", "6h", "--yes"];
    let said = service.fails(&other);
    assert!(
        said.contains("metric, slot, timezone are not the same") && said.contains("rolltop next define likes"),
        "{said}"
    );
    std::fs::write(service.folder.path().join("wrong.json"), "{").unwrap();
    assert!(service.fails(&["define", "x", "--file", "wrong.json"]).contains("wrong.json is not JSON"));
    assert!(service.fails(&["define", "x", "COUNT(1h, a)"]).contains("'metric'"));

    service.ok(&["post", "likes", "ann", "3"]);
    for (country, amount) in [("se", "2.50"), ("no", "-1")] {
        service.ok(&["post", "by-country", "ann", amount, "--by", country]);
    }
    assert!(service.ok(&["boards"]).contains("SUM(24h, sale, amount, product BY country)"));
    assert!(service.ok(&["boards", "likes"]).contains("COUNT(24h, like, post_id)"));
    assert_eq!(service.ok(&["boards", "by-country", "--keys", "--prefix", "s", "--csv"]), "by\nse\n");
    assert!(service.fails(&["top", "by-country"]).contains("--by names it"));

    service.ok(&["next", "define", "likes", "COUNT(7d, like, post_id)", "--slot", "6h"]);
    assert_eq!(service.json(&["next", "show", "likes"])["metric"], "COUNT(7d, like, post_id)");
    let said = service.fails(&["next", "promote", "likes"]);
    assert!(said.contains("--yes") && said.contains("COUNT(24h, like, post_id) → COUNT(7d, like, post_id)"), "{said}");
    assert!(said.contains("window=24h: the only window is 7d") && said.contains("complete from"), "{said}");
    let filling = Wait::begin("the successor is filled");
    while service.json(&["next", "show", "likes"])["fill"]["state"] == "running" {
        filling.pause("it is running");
    }
    assert_eq!(service.json(&["top", "likes", "--of", "next"])["total"], 1);
    service.ok(&["next", "compare", "likes"]);
    let comparing = Wait::begin("the editions are compared");
    let shown = loop {
        let shown = service.ok(&["next", "show", "likes"]);
        if shown.lines().any(|line| line.starts_with("comparison: state") && line.ends_with("done")) {
            break shown;
        }
        comparing.pause(shown);
    };
    assert_eq!(shown.matches("1 are the same, with ranks that differ by up to 0").count(), 1, "{shown}");
    assert!(service.fails(&["next", "promote", "likes", "--yes"]).contains("--early"));
    service.ok(&["next", "promote", "likes", "--yes", "--early"]);
    service.ok(&["next", "back", "likes", "--yes"]);
    assert_eq!(service.json(&["boards", "likes"])["metric"], "COUNT(24h, like, post_id)");
    service.ok(&["next", "forget", "likes", "--yes"]);
    assert!(service.fails(&["next", "show", "likes"]).contains("rolltop next define likes"));

    assert_eq!(service.json(&["rollover", "likes"])["board"], "likes");
    assert_eq!(service.json(&["rollover", "--dry-run"]).as_array().map(Vec::len), Some(2));
    assert_eq!(service.json(&["audit", "likes"])["differences"], 0);

    assert!(service.fails(&["erase", "*", "ann"]).contains("by-country, likes? This cannot be undone"));
    let erased = service.ok(&["erase", "*", "ann", "--yes", "--csv"]);
    assert_eq!(erased, "board,subjects_removed,values_removed,state\nby-country,2,0,done\nlikes,1,0,done\n");
    service.ok(&["post", "by-country", "..", "1", "--by", "se"]);
    assert_eq!(
        service.ok(&["erase", "*", "..", "ann", "--by", "se", "--yes", "--csv"]).lines().last(),
        Some("by-country,1,0,done")
    );
    assert!(service.fails(&["erase", "likes", "ann", "--by", "se", "--yes"]).contains("a ranking for each key"));
    assert_eq!(service.json(&["top", "likes"])["items"], json!([]));
    assert!(service.fails(&["erase", "x-*", "ann", "--yes"]).contains("rolltop boards"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_erased_as_a_subject_and_as_a_value() {
    let service = Service::start(LIKES);
    for (board, metric) in [
        ("by-people", "COUNT_DISTINCT(24h, like, post, user)"),
        ("about", "APPROX_COUNT_DISTINCT(24h, like, post, user)"),
    ] {
        service.ok(&["define", board, metric, "--slot", "1h", "--yes"]);
        for user in ["ann", "bob"] {
            service.ok(&["post", board, "p", "--value", user]);
        }
    }
    service.ok(&["post", "likes", "ann", "1"]);
    let erased = service.ok(&["erase", "*", "ann", "--yes", "--csv"]);
    let lines: Vec<&str> = erased.lines().collect();
    assert_eq!(lines[0], "board,subjects_removed,values_removed,state");
    assert!(lines[1].starts_with("about,0,0,") && lines[1].contains("counts approximately"), "{erased}");
    assert_eq!(lines[2..], ["by-people,0,1,done", "likes,1,0,done"], "{erased}");
    assert_eq!(service.json(&["top", "by-people"])["items"], json!([{"rank": 1, "subject": "p", "score": 1}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn subjects_are_hidden_shown_frozen_and_listed() {
    let service = Service::start(&format!("{LIKES}{BY_COUNTRY}"));
    for (subject, amount) in [("a", "5"), ("b", "3"), ("c", "1")] {
        service.ok(&["post", "likes", subject, amount]);
    }
    assert_eq!(service.ok(&["hide", "likes", "a", "b", "--csv"]), "board,subjects,state\nlikes,2,hidden\n");
    assert_eq!(service.json(&["top", "likes"])["items"], json!([{"rank": 1, "subject": "c", "score": 1}]));
    service.ok(&["hide", "likes", "a", "--shadow"]);
    service.ok(&["freeze", "likes", "b", "z"]);
    assert_eq!(service.ok(&["hidden", "likes", "--csv"]), "subject,state\na,shadowed\nb,\"hidden, frozen\"\n");
    assert_eq!(service.ok(&["hidden", "likes", "--frozen", "--prefix", "z", "--csv"]), "subject,state\nz,frozen\n");
    assert!(service.fails_with(&["post", "likes", "z"]).contains("frozen"));
    assert_eq!(
        service.ok(&["unfreeze", "likes", "b", "z", "--csv"]),
        "board,subjects,state\nlikes,2,no longer frozen\n"
    );
    // One from each line; what is not valid is named, and the others are changed.
    let (code, printed, said) = service.feed(&["show", "likes", "-", "--csv"], b"a\n\n\x07\nb\n");
    assert_eq!((code, printed.as_str()), (1, "board,subjects,state\nlikes,2,shown\n"), "{said}");
    assert!(said.contains("'\\u{7}' is refused") && said.contains("1 subject was refused"), "{said}");
    assert_eq!(service.json(&["hidden", "likes"])["items"], json!([]));
    assert_eq!(service.json(&["top", "likes"])["total"], 3);

    service.ok(&["post", "by-country", "ann", "2", "--by", "se"]);
    assert!(service.fails_with(&["hide", "by-country", "ann"]).contains("missing_key"));
    service.ok(&["hide", "by-country", "ann", "--by", "se"]);
    assert_eq!(service.ok(&["hidden", "by-country", "--csv"]), "by,subject,state\nse,ann,hidden\n");
    assert!(service.fails(&["hide", "none", "a"]).contains("rolltop boards"));
    assert!(service.fails(&["hide", "likes", "-", "a"]).contains("without other subjects"));

    // A list of several pages has one header.
    let names: String = (0..1_001).map(|number| format!("n{number}\n")).collect();
    let (code, printed, said) = service.feed(&["freeze", "likes", "-", "--csv"], names.as_bytes());
    assert_eq!((code, printed.as_str()), (0, "board,subjects,state\nlikes,1001,frozen\n"), "{said}");
    let listed = service.ok(&["hidden", "likes", "--frozen", "--csv"]);
    assert_eq!((listed.lines().count(), listed.matches("subject").count()), (1_002, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_to_type_next() {
    let service = Service::start(LIKES);
    let said = service.fails(&["top", "nothing"]);
    assert!(said.contains("unknown board 'nothing'") && said.contains("`rolltop boards`"), "{said}");
    for wrong in [&["top", "likes", "--url", "x"][..], &["event", "like", "post"]] {
        assert_eq!(service.run(wrong).0, 2, "{wrong:?}");
    }
    assert!(service.fails(&["define", "posts", "COUNT(24h, like, post)"]).contains("--slot 1h"));
    let said = service.fails(&["top", "likes", "--url", "http://127.0.0.1:1"]);
    assert!(
        said.contains("127.0.0.1:1") && said.contains("does not respond") && said.contains("rolltop serve"),
        "{said}"
    );
    assert!(service.fails(&["rank", "likes", "a", "b", "--around", "1"]).contains("one subject"));
    assert!(service.fails(&["rank", "likes", "..", "--around", "1"]).contains("'..'"));
    let (code, _, said) = service.run(&["top", "likes", "--json", "--csv"]);
    assert!(code == 2 && said.contains("--csv"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_name_servers_with_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let admin = hash(folder.path(), &["--name", "ops", "--scopes", "admin"]);
    std::fs::write(folder.path().join("r.toml"), format!("{LIKES}{}", admin.table)).unwrap();
    let running = Running::start(folder.path(), &["--config", "r.toml"]);
    let at = folder.path().join(".config/rolltop");
    std::fs::create_dir_all(&at).unwrap();
    let table = |name: &str, key: &str| format!("[{name}]\nurl = \"{}\"\nkey = \"{key}\"\n", running.base);
    write_secret(&at.join("profiles.toml"), &format!("{}{}", table("default", &admin.key), table("other", "rt_x")));
    let command = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = program(folder.path());
        said(command.args(args).envs(environment.iter().copied()).stdin(Stdio::null()).output().unwrap())
    };
    let (code, _, said) = command(&["top", "likes"], &[]);
    assert_eq!(code, 0, "{said}");
    for (args, environment) in [
        (&["top", "likes", "--profile", "other"][..], &[][..]),
        (&["top", "likes"], &[("ROLLTOP_PROFILE", "other")]),
        // The key of a profile is sent to the server of the profile only.
        (&["top", "likes", "--url", &running.base], &[]),
        (&["top", "likes"], &[("ROLLTOP_URL", running.base.as_str())]),
        (&["top", "likes"], &[("ROLLTOP_KEY", "rt_y")]),
    ] {
        let (code, _, said) = command(args, environment);
        assert!(code == 1 && said.contains("key"), "{args:?} {environment:?}: {said}");
    }
    let (code, _, said) = command(&["top", "likes", "--profile", "none"], &[]);
    assert!(code == 1 && said.contains("default, other"), "{said}");
    let (done, _, said) = run(&running, folder.path(), &admin.key, &["top", "likes"]);
    assert!(done, "{said}");
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_ranking_is_printed_after_each_change() {
    use std::io::BufRead;

    let service = Service::start(LIKES);
    service.ok(&["post", "likes", "a"]);
    let mut child = service.command(&["top", "likes", "--watch", "--json"]).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["items"], json!([{"rank": 1, "subject": "a", "score": 1}]));
    service.ok(&["post", "likes", "b", "2"]);
    assert_eq!(next()["items"][0], json!({"rank": 1, "subject": "b", "score": 2}));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn completions_and_manual_pages_name_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let (code, printed, _) = said(program(folder.path()).args(["completions", shell]).output().unwrap());
        assert!(code == 0 && printed.contains("healthcheck") && printed.contains("watch"), "{shell}");
    }
    let (code, printed, _) = said(program(folder.path()).arg("man").output().unwrap());
    assert!(code == 0 && printed.contains(".TH rolltop"), "{printed}");
    let (code, _, said) = said(program(folder.path()).args(["man", "--dir", "man1"]).output().unwrap());
    assert_eq!(code, 0, "{said}");
    assert!(folder.path().join("man1/rolltop-top.1").exists());
}
