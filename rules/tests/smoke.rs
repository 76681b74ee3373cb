//! temporary
#![allow(clippy::unwrap_used, reason = "tests")]
use rules::*;
use tidegate_rules as rules;
#[test]
fn smoke() {
    let src = Source { layer: Layer::Project, path: "x.md".into() };
    let (r, d) = parse_rule_file("no-foo", &src, "+++\ncondition = '\\bfoo\\b'\n+++\nDo not foo.\n");
    assert!(d.is_empty(), "{d:?}");
    let (set, d) = RuleSet::build(vec![r.unwrap()], Settings::default(), "/w");
    assert!(d.is_empty(), "{d:?}");
    let mut s = Session::new(set);
    s.begin_turn();
    let mut g = s.gate();
    g.block_start(0, &flow::BlockKind::Text);
    for p in ["hel", "lo f", "o", "o", "l fo", "o "] {
        let f = g.piece(0, p);
        println!("{p:?} {f:?}");
        if !f.matches.is_empty() {
            println!("{:?}\n{}", s.judge(&f.matches), s.reminder(&f.matches));
        }
    }
    println!("{:?}", g.block_end(0));
    let mut g = s.gate();
    g.block_start(1, &flow::BlockKind::Tool { call: flow::CallId::new("c"), name: "write".into() });
    println!("{:?}", g.piece(1, "{\"path\":\"/w/a.rs\",\"content\":\"x\\nfo"));
    println!("{:?}", g.piece(1, "o\"}"));
}
