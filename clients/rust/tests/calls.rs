//! Every call of a service and of a board, on every store.

mod support;

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use rolltop_client::answers::{Line, Ranking, Tier};
use rolltop_client::{Board, Decimal, Error, Event, Increment, Method, Service};
use serde_json::{Value, json};

const LIKES: &str = "COUNT(24h, like, post_id)";

async fn defined(service: &Service, name: &str, metric: &str) -> Board {
    let board = service.board(name);
    let defined = board.define(&json!({"metric": metric, "slot": "1h"})).await.unwrap();
    assert_eq!((defined.board.as_str(), defined.slot.as_deref()), (name, Some("1h")));
    board
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn lines(ranking: &Ranking) -> Vec<(u64, &str, &str)> {
    ranking
        .items
        .iter()
        .map(|line| (line.rank, line.subject.as_deref().unwrap(), line.score.as_ref().unwrap().as_str()))
        .collect()
}

fn code<T>(result: Result<T, Error>) -> String {
    result.err().unwrap().code().to_owned()
}

#[tokio::test]
async fn subjects_are_hidden_and_frozen() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "moderated", LIKES).await;
        for (subject, amount) in [("a", 3), ("b", 2), ("c", 1)] {
            board.add_now(Increment::new(subject).amount(amount)).await.unwrap();
        }
        let hidden = board.hide("a").await.unwrap();
        assert_eq!((hidden.subject.as_str(), hidden.hidden, hidden.shadow), ("a", true, false));
        let standing = board.subject("a").await.unwrap();
        assert_eq!((standing.rank, standing.score, standing.hidden), (None, Some(decimal("3")), true));
        assert_eq!(lines(&board.top().await.unwrap()), [(1, "b", "2"), (2, "c", "1")]);
        assert!(board.shadow("a").await.unwrap().shadow);
        let standing = board.subject("a").await.unwrap();
        assert_eq!((standing.rank, standing.hidden), (Some(1), false));
        let changed = board.hide_all(&[json!({"subject": "b"}), json!({"subject": ""})]).await.unwrap();
        assert_eq!((changed.accepted, changed.rejected[0].code.as_str()), (1, "invalid_subject"));
        let page = board.hidden("").limit(1).await.unwrap();
        assert_eq!((page.total, page.items[0].subject.as_str(), page.items[0].shadow), (2, "a", true));
        let page = board.hidden("").cursor(&page.next.unwrap()).await.unwrap();
        assert_eq!((page.items[0].subject.as_str(), page.next), ("b", None));
        assert!(!board.show("a").await.unwrap().hidden);
        assert!(board.freeze("a").await.unwrap().frozen);
        let refused = board.add_now(Increment::new("a")).await.unwrap();
        assert_eq!(refused.rejected[0].code, "subject_frozen");
        assert_eq!(board.frozen("").await.unwrap().items[0].subject, "a");
        assert!(!board.unfreeze("a").await.unwrap().frozen);
        assert_eq!(board.freeze_all(&[json!({"subject": "a", "frozen": false})]).await.unwrap().accepted, 1);
        assert_eq!(board.add_now(Increment::new("a")).await.unwrap().accepted, 1);
    }
}

#[tokio::test]
async fn the_distribution_of_scores() {
    for running in support::services().await {
        let service = running.service();
        let board = service.board("spread");
        let definition = json!({"metric": "SUM(24h, sale, amount, seller BY country)", "slot": "1h", "decimals": 1, "windows": ["all"]});
        board.define(&definition).await.unwrap();
        for (subject, amount) in [("a", "1.5"), ("b", "20"), ("c", "20"), ("d", "300")] {
            board.add_now(Increment::new(subject).by("se").amount(decimal(amount))).await.unwrap();
        }
        let scores = ["2.5", "20", "300"].map(decimal);
        let found = board.distribution(&[0.0, 50.0, 99.9], &scores).by("se").window("all").await.unwrap();
        let at: Vec<_> = found.percentiles.iter().map(|at| (at.percentile, at.score.clone())).collect();
        assert_eq!(at, [(0.0, Some(decimal("1.5"))), (50.0, Some(decimal("20"))), (99.9, Some(decimal("300")))]);
        let ranges: Vec<_> =
            found.ranges.iter().map(|range| (range.from.clone(), range.to.clone(), range.subjects)).collect();
        let [low, middle, high] = scores.map(Some);
        let expected = [(None, low.clone(), 1), (low, middle.clone(), 0), (middle, high.clone(), 2), (high, None, 1)];
        assert_eq!(ranges, expected);
        assert_eq!((found.by.as_deref(), found.total, found.window.from), (Some("se"), Some(4), None));

        let none = board.distribution(&[], &[]).by("no").await.unwrap();
        assert_eq!((none.total, none.percentiles.len(), none.ranges.len()), (Some(0), 8, 0));
        assert!(none.percentiles.iter().all(|at| at.score.is_none()));
        assert_eq!(code(board.distribution(&[101.0], &[]).by("se").await), "invalid_field");
        assert_eq!(code(board.distribution(&[], &[]).await), "missing_key");
    }
}

#[tokio::test]
async fn periods_are_listed_and_read() {
    for running in support::services().await {
        let service = running.service();
        let board = service.board("season");
        board.define(&json!({"metric": "COUNT(all, like, post_id)", "season": {"every": "1y"}})).await.unwrap();
        let first = board.periods().await.unwrap().items.remove(0);
        assert_eq!((first.is_final, first.total, &first.winners[..]), (false, Some(0), &[][..]));
        for (subject, amount) in [("a", 3), ("b", 2), ("c", 1)] {
            let item = Increment::new(subject).amount(amount);
            assert_eq!(board.add_now(item).period(&first.name).await.unwrap().accepted, 1);
        }
        assert_eq!(code(board.add_now(Increment::new("a")).period("1999").await), "unknown_period");
        let listed = board.periods().after("1999").winners(2).limit(1).await.unwrap().items;
        assert_eq!((listed.len(), listed[0].total, listed[0].winners.len()), (1, Some(3), 2));
        assert_eq!(board.periods().only_final().await.unwrap().items, []);

        let top = board.top().period(&first.name).await.unwrap();
        assert_eq!(lines(&top), [(1, "a", "3"), (2, "b", "2"), (3, "c", "1")]);
        let read = top.period.clone();
        let current = board.status().await.unwrap().period.unwrap();
        assert_eq!((&current.name, current.start, current.end), (&first.name, first.start, first.end));
        assert_eq!(read.as_ref(), Some(&current));
        let all: Vec<Line> = board.top().period(&first.name).lines().try_collect().await.unwrap();
        assert_eq!(all, top.items);
        assert_eq!(board.subject("b").period(&first.name).await.unwrap().period, read);
        assert_eq!(board.neighbors("b", 1).period(&first.name).await.unwrap().items, top.items);
        assert_eq!(board.lookup(&["b"]).period(&first.name).await.unwrap().period, read);
        assert_eq!(board.distribution(&[], &[]).period(&first.name).await.unwrap().period, read);
        assert_eq!(code(board.top().period("1999").await), "unknown_period");
        assert_eq!(code(defined(&service, "none", LIKES).await.periods().await), "unknown_period");
    }
}

#[tokio::test]
async fn a_period_that_nobody_has_closed_has_no_end() {
    for running in support::services().await {
        let board = running.service().board("cup");
        let season = json!({"every": "manual", "grace": "1s"});
        board.define(&json!({"metric": "COUNT(all, goal, player)", "season": season})).await.unwrap();
        let first = board.periods().await.unwrap().items.remove(0);
        assert_eq!((&*first.name, first.end), ("1", None));
        assert_eq!(board.top().await.unwrap().period, board.status().await.unwrap().period);
    }
}

#[tokio::test]
async fn periods_are_closed() {
    for running in support::services().await {
        let service = running.service();
        let board = service.board("cup");
        let season = json!({"every": "manual", "grace": "1s"});
        board.define(&json!({"metric": "COUNT(all, goal, player)", "season": season})).await.unwrap();
        board.add_now(Increment::new("a")).await.unwrap();
        let done = board.close_period(Some("1")).await.unwrap();
        assert_eq!((&*done.board, &*done.closed.name, &*done.current.name), ("cup", "1", "2"));
        assert_eq!((done.closed.end, done.current.end), (Some(done.current.start), None));
        // A name that is closed already closes nothing more.
        assert_eq!(board.close_period(Some("1")).await.unwrap().current, done.current);
        assert_eq!(lines(&board.top().period("1").await.unwrap()), [(1, "a", "1")]);
        assert_eq!(board.top().await.unwrap().items, []);
        assert_eq!(code(board.close_period(Some("7")).await), "unknown_period");

        let last = loop {
            match board.close_period(None).await {
                Ok(done) => break done,
                // The grace of the first period is not over.
                Err(error) => assert_eq!(error.code(), "period_conflict"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!((&*last.closed.name, &*last.current.name), ("2", "3"));
        assert!(defined(&service, "none", LIKES).await.close_period(None).await.is_err());
    }
}

#[tokio::test]
async fn tiers_are_set_and_shown() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "tiered", LIKES).await;
        assert_eq!(board.tiers().await.unwrap().tiers, []);
        for (subject, amount) in [("a", 9), ("b", 5), ("c", 2), ("d", 1)] {
            board.add_now(Increment::new(subject).amount(amount)).await.unwrap();
        }
        let tiers = [Tier::top("gold", 12.5), Tier::rank("silver", 2), Tier::score("bronze", 2)];
        let set = board.set_tiers(&tiers).await.unwrap();
        assert_eq!((set.board.as_str(), &set.tiers[..]), ("tiered", &tiers[..]));
        assert_eq!(board.tiers().await.unwrap(), set);

        let expected = ["gold", "silver", "bronze", "-"];
        let shown = |lines: &[Line]| -> Vec<String> {
            lines.iter().map(|line| line.tier.clone().unwrap_or_else(|| "-".to_owned())).collect()
        };
        assert_eq!(shown(&board.top().await.unwrap().items), expected);
        assert_eq!(shown(&board.neighbors("b", 1).await.unwrap().items), expected[..3]);
        let all: Vec<Line> = board.top().limit(3).lines().try_collect().await.unwrap();
        assert_eq!(shown(&all), expected);
        assert_eq!(board.subject("b").await.unwrap().tier.as_deref(), Some("silver"));
        assert_eq!(board.subject("d").await.unwrap().tier, None);
        let looked = board.lookup(&["d", "a"]).await.unwrap();
        assert_eq!(looked.items.iter().map(|line| line.tier.as_deref()).collect::<Vec<_>>(), [Some("gold"), None]);

        let mut live = Box::pin(board.top().live());
        assert_eq!(shown(&live.next().await.unwrap().unwrap().items), expected);
        board.set_tiers(&[Tier::score("all", decimal("1"))]).await.unwrap();
        let changed = shown(&live.next().await.unwrap().unwrap().items);
        assert_eq!(changed, ["all"; 4]);
        assert_eq!(code(board.set_tiers(&[Tier::rank("none", 0)]).await), "invalid_field");
        assert_eq!(board.set_tiers(&[]).await.unwrap().tiers, []);
        assert_eq!(shown(&live.next().await.unwrap().unwrap().items), ["-"; 4]);
    }
}

#[tokio::test]
async fn reads_about_subjects() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "reads", LIKES).await;
        for (subject, amount) in [("a", 3), ("b", 2), ("c", 1)] {
            let added = board.add_now(Increment::new(subject).amount(amount)).await.unwrap();
            assert_eq!((added.accepted, added.duplicates, added.rejected.len()), (1, 0, 0));
        }
        let top = board.top().limit(2).await.unwrap();
        assert_eq!(lines(&top), [(1, "a", "3"), (2, "b", "2")]);
        assert_eq!((top.total, top.metric.as_str(), top.window.slots, top.is_exact()), (Some(3), LIKES, 24, true));
        let second = board.top().limit(2).cursor(&top.next.unwrap()).await.unwrap();
        assert_eq!(lines(&second), [(3, "c", "1")]);
        assert_eq!(lines(&board.top().offset(1).limit(1).await.unwrap()), [(2, "b", "2")]);

        let standing = board.subject("b").await.unwrap();
        assert_eq!((standing.rank, standing.score, standing.total), (Some(2), Some(decimal("2")), Some(3)));
        assert_eq!(standing.slots.iter().map(|slot| slot.count.clone()).collect::<Vec<_>>(), [Some(decimal("2"))]);
        assert_eq!(board.subject("unknown").await.unwrap().rank, None);
        let around = board.neighbors("b", 1).await.unwrap();
        assert_eq!(
            around.items.iter().map(|line| line.subject.as_deref().unwrap()).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(board.count("a", "1h").await.unwrap().value, Some(decimal("3")));
        let looked = board.lookup(&["c", "a", "none"]).await.unwrap();
        let looked: Vec<_> = looked.items.iter().map(|line| (&*line.subject, line.rank, line.rank_among)).collect();
        assert_eq!(looked[..2], [("a", Some(1), Some(1)), ("c", Some(3), Some(2))]);
        assert_eq!(looked[2].1, None);
        let questions = [json!({"board": "reads", "subject": "a"}), json!({"board": "none", "subject": "a"})];
        let answers = service.query(&questions).await.unwrap().answers;
        assert_eq!((&answers[0]["value"], &answers[1]["error"]["code"]), (&json!(3), &json!("unknown_board")));
        let rule = format!("{LIKES} >= 0");
        let evaluated = service.evaluate(&rule, &json!({"post_id": "x"})).await.unwrap();
        assert!(evaluated.hit && evaluated.rules[0].hit && evaluated.rules[0].sides.len() == 1);
        assert!(service.boards().parameter("unknown", "").await.is_err());

        let removed = board.remove("a").await.unwrap();
        assert_eq!((removed.score, removed.live_slots), (Some(decimal("3")), 1));
        assert_eq!(board.subject("a").await.unwrap().rank, None);
        assert_eq!(board.remove_all(&["b", "none"]).await.unwrap().subjects, Some(1));
        assert_eq!(code(board.remove_values(&["b"]).await), "no_values");
        assert_eq!(lines(&board.top().await.unwrap()), [(1, "c", "1")]);
    }
}

#[tokio::test]
async fn rankings_of_keys() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "keys", "COUNT(24h, like, post_id BY community)").await;
        let names = ["a/b?c=%20&d", "日本語", "🎉", "quote\"", "+ +", "..."];
        let sender = board.sender().start().unwrap();
        for name in names {
            sender.add(Increment::new(name).amount(2).by(name)).await.unwrap();
        }
        sender.add(Increment::new("everywhere").by("+ +")).await.unwrap();
        sender.close().await.unwrap();
        let mut sorted = names;
        sorted.sort_unstable();
        let page = board.keys("").await.unwrap();
        assert_eq!(page.items.iter().map(|line| &*line.by).collect::<Vec<_>>(), sorted);
        assert!(page.next.is_none());
        assert_eq!(board.keys("日").await.unwrap().items[0].by, "日本語");
        for name in names {
            let ranking = board.top().by(name).await.unwrap();
            assert_eq!(lines(&ranking)[0], (1, name, "2"));
            assert_eq!(ranking.by.as_deref(), Some(name));
            let standing = board.subject(name).by(name).await.unwrap();
            assert_eq!((standing.rank, standing.by.as_deref()), (Some(1), Some(name)));
        }
        let best = board.best(&names[..2], 1).await.unwrap().rankings;
        assert_eq!(
            best.iter().map(|ranking| (&*ranking.by, ranking.total)).collect::<Vec<_>>(),
            [(names[0], Some(1)), (names[1], Some(1))]
        );
        assert_eq!(code(board.top().await), "missing_key");
        assert_eq!(board.remove_everywhere("everywhere").await.unwrap().keys, Some(1));
        board.remove_key("🎉").await.unwrap();
        assert_eq!(board.top().by("🎉").await.unwrap().items, []);
        let status = board.status().await.unwrap();
        assert_eq!((status.board.as_str(), status.slot.as_deref()), ("keys", Some("1h")));
    }
}

#[tokio::test]
async fn definitions() {
    for running in support::services().await {
        let service = running.service();
        let board = service.board("defined");
        let definition = json!({"metric": "COUNT(1h, e, s)", "slot": "1m", "windows": ["10m/1m"]});
        let preview = board.preview(&definition).await.unwrap();
        assert!(!preview.exists && preview.conflict.is_none() && preview.bytes_per_subject.one_slot > 0);
        assert_eq!(code(board.status().await), "unknown_board");
        let defined = board.define(&definition).await.unwrap();
        assert_eq!((defined.windows, defined.decimals, defined.ranked), (vec!["10m/1m".to_owned()], 0, true));
        assert_eq!(board.define(&definition).await.unwrap().order, "desc");
        let conflict = board.preview(&json!({"metric": "COUNT(2h, e, s)", "slot": "1m"})).await.unwrap();
        assert!(conflict.exists && !conflict.conflict.unwrap().keys.is_empty());
        board.add_now(Increment::new("a")).await.unwrap();
        assert_eq!(lines(&board.top().window("10m").await.unwrap()), [(1, "a", "1")]);
        let status = board.status().await.unwrap();
        assert_eq!((status.windows, status.window.slots, status.total), (vec!["10m/1m".to_owned()], 60, Some(1)));
        let names: Vec<_> = service.boards().await.unwrap().items.into_iter().map(|board| board.board).collect();
        assert!(names.contains(&"defined".to_owned()), "{names:?}");

        let wrong = board.define(&json!({"metric": "COUNT(1h, e, s", "slot": "1m"})).await.unwrap_err();
        assert_eq!(
            (wrong.code(), wrong.status(), &wrong.problem()["column"]),
            ("invalid_field", Some(422), &json!(15))
        );
        assert!(wrong.request_id().is_some());
        assert_eq!(board.rollover().await.unwrap().board, "defined");
        assert!(service.rollover().await.unwrap().iter().any(|rollover| rollover.board == "defined"));
        let audit = board.audit().await.unwrap();
        assert_eq!((audit.differences, audit.missing_slots), (0, 0));
        assert!(audit.subjects_checked > 0 && audit.examples.is_empty());
        let other: Value = board.other(Method::GET, &["subjects", "a"]).await.unwrap();
        assert_eq!(other["score"], 1);
        assert!(service.request::<Value>(Method::GET, "/v1/boards").text().await.unwrap().starts_with('{'));
        assert_eq!(board.undefine().await.unwrap().board, "defined");
        assert_eq!(code(board.top().await), "unknown_board");
    }
}

#[tokio::test]
async fn what_cannot_be_asked() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "names", LIKES).await;
        for name in ["", ".", ".."] {
            assert_eq!(code(board.subject(name).await), "invalid_name");
            assert_eq!(code(board.remove(name).await), "invalid_name");
            assert_eq!(code(service.board(name).top().await), "invalid_name");
            assert_eq!(code(service.board(name).sender().start()), "invalid_name");
        }
        board.add_now(Increment::new("...")).await.unwrap();
        assert_eq!(board.subject("...").await.unwrap().rank, Some(1));
        assert_eq!(code(board.add_now(Increment::new("a").value(f64::NAN)).await), "invalid_item");
        assert_eq!(code(service.board("none").add_now(Increment::new("a")).await), "unknown_board");
        let late = Increment::new("a").at("2020-01-01T00:00:00Z".parse::<chrono::DateTime<chrono::Utc>>().unwrap());
        assert_eq!(board.add_now(late).await.unwrap().rejected[0].code, "too_late");
        let port = support::free_port();
        let nobody = Service::builder(&format!("http://127.0.0.1:{port}")).repeat_for(Duration::ZERO).build().unwrap();
        assert_eq!(code(nobody.boards().await), "unreachable");
    }
}

#[tokio::test]
async fn scores_are_exact() {
    for running in support::services().await {
        let service = running.service();
        let prices = service.board("prices");
        for (subject, amounts, sum) in [
            ("large", ["0.1", "1876499844736.02"], "1876499844736.12"),
            ("small", ["0.01", "0.02"], "0.03"),
            ("negative", ["-5", "2.50"], "-2.5"),
            ("even", ["1.25", "0.75"], "2"),
            ("exponent", ["1e2", "1E-2"], "100.01"),
        ] {
            for amount in amounts {
                let added = prices.add_now(Increment::new(subject).amount(decimal(amount))).await.unwrap();
                assert_eq!((added.accepted, added.rejected), (1, vec![]), "{amount}");
            }
            let score = prices.subject(subject).await.unwrap().score.unwrap();
            assert_eq!(score.to_f64(), sum.parse::<f64>().unwrap());
            assert_eq!(score.as_str().trim_end_matches('0').trim_end_matches('.'), sum, "{subject}");
        }
        for (metric, first, second, score) in [
            ("AVG(24h, e, a, s)", json!(1), json!(2), "1.5"),
            ("MIN(24h, e, a, s)", json!(1.5), json!("0.25"), "0.25"),
            ("MAX(24h, e, a, s)", json!(-1), json!(-2.5), "-1"),
            ("LAST(24h, e, a, s)", json!(7), json!(3), "3"),
            ("COUNT_DISTINCT(24h, e, s, a)", json!("u-1"), json!("u-2"), "2"),
        ] {
            let name = metric.split_once('(').unwrap().0.to_lowercase().replace('_', "-");
            let board = service.board(&name);
            let mut definition = json!({"metric": metric, "slot": "1h"});
            if !metric.starts_with("COUNT") {
                definition["decimals"] = json!(2);
            }
            board.define(&definition).await.unwrap();
            for value in [first, second] {
                let added = board.add_now(Increment::new("x").value(value)).await.unwrap();
                assert_eq!((added.accepted, added.rejected), (1, vec![]), "{metric}");
            }
            let found = board.top().await.unwrap().items[0].score.clone().unwrap();
            assert_eq!(found.to_f64(), score.parse::<f64>().unwrap(), "{metric}");
        }
    }
}

#[tokio::test]
async fn events_count_on_every_board() {
    for running in support::services().await {
        let service = running.service();
        let event = Event::new("like").field("post_id", "p").field("community", "rust").id("e-1");
        assert_eq!(service.add_now(event.clone()).await.unwrap().accepted, 1);
        let sender = service.sender().start().unwrap();
        sender.add(event).await.unwrap();
        sender
            .add(Event::from_json(r#"{"type":"like","fields":{"post_id":"p","community":"rust"}}"#).unwrap())
            .await
            .unwrap();
        sender.add(Event::new("nobody-counts-this")).await.unwrap();
        sender.close().await.unwrap();
        assert_eq!((sender.counts().duplicates, sender.counts().rejected), (1, 0));
        assert_eq!(service.board("hot-posts").subject("p").await.unwrap().score, Some(decimal("2")));
        assert_eq!(service.board("communities").subject("p").by("rust").await.unwrap().score, Some(decimal("2")));
        assert_eq!(code(service.add_now(Event::new("like")).await), "rejected");
    }
}

#[tokio::test]
async fn a_whole_ranking_is_read_in_pieces() {
    for running in support::services().await {
        let service = running.service();
        let board = defined(&service, "long", LIKES).await;
        let sender = board.sender().start().unwrap();
        for score in 1..=2_500_u32 {
            sender.add(Increment::new(&format!("s{score}")).amount(score)).await.unwrap();
        }
        sender.close().await.unwrap();
        let expected: Vec<_> = (1..=2_500).rev().map(|score| (format!("s{score}"), score.to_string())).collect();
        for (limit, offset) in [(None, 0), (Some(700), 0), (Some(700), 100), (Some(2_500), 2_400), (Some(1_250), 0)] {
            let mut top = board.top().offset(offset);
            if let Some(limit) = limit {
                top = top.limit(limit);
            }
            let found: Vec<_> = top.lines().try_collect().await.unwrap();
            let found: Vec<_> = found
                .into_iter()
                .map(|line| (line.subject.unwrap(), line.score.unwrap().as_str().to_owned()))
                .collect();
            assert_eq!(found, expected[offset as usize..], "limit {limit:?}, offset {offset}");
        }
        assert_eq!(code(service.board("none").top().lines().try_collect::<Vec<_>>().await), "unknown_board");
    }
}

#[tokio::test]
async fn a_live_ranking_survives_a_restart() {
    for mut running in support::services().await {
        let service = running.service();
        let board = defined(&service, "live", LIKES).await;
        board.add_now(Increment::new("a").amount(2)).await.unwrap();
        let mut live = Box::pin(board.top().limit(10).live());
        let mut next = async || -> Result<Ranking, Error> {
            tokio::time::timeout(Duration::from_secs(60), live.next()).await.expect("nothing came").unwrap()
        };
        assert_eq!(lines(&next().await.unwrap()), [(1, "a", "2")]);
        board.add_now(Increment::new("b").amount(3)).await.unwrap();
        assert_eq!(lines(&next().await.unwrap()), [(1, "b", "3"), (2, "a", "2")]);
        running.kill().await;
        running.start_again().await;
        board.add_now(Increment::new("c")).await.unwrap();
        let after = loop {
            let ranking = next().await.unwrap();
            if ranking.items.len() == 3 {
                break ranking;
            }
        };
        assert_eq!(lines(&after), [(1, "b", "3"), (2, "a", "2"), (3, "c", "1")]);
        board.undefine().await.unwrap();
        let error = loop {
            if let Err(error) = next().await {
                break error;
            }
        };
        assert_eq!(error.code(), "unknown_board");
    }
}
