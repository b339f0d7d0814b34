//! JSON lines and a table.

use serde_json::json;

use crate::life::{Costs, Drive};
use crate::meter::Cost;
use crate::shape::Shape;

type Part = fn(&Costs) -> Cost;

/// A line of JSON for each shape, then a table with ratios to the first.
pub fn lives(plan: &str, shapes: &[Shape], costs: &[Vec<Costs>], drive: Drive) {
    let jobs = drive.jobs as f64;
    let parts: [(&str, Part); 5] = [
        ("enqueue", |costs| costs.enqueue),
        ("claim", |costs| costs.claim),
        ("settle", |costs| costs.settle),
        ("vacuum", |costs| costs.vacuum),
        ("drain", drained),
    ];
    let figure = |costs: &[Costs], part: Part, of: fn(Cost) -> f64| {
        median(costs.iter().map(|costs| of(part(costs)) / jobs).collect())
    };
    let cpu: fn(Cost) -> f64 = |cost| (cost.database + cost.client) * 1e6;
    let mut table = String::from(
        "| shape | enqueue | claim | settle | drain µs (database + client) | × floor | vacuum | WAL B: enqueue + claim + settle | life B | vacuum B | put/s | × | drain/s | × |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (shape, rounds) in shapes.iter().zip(costs) {
        let mut line = json!({ "plan": plan, "shape": shape.name, "jobs": drive.jobs, "put": drive.put,
            "take": drive.take, "rest": drive.rest, "rounds": rounds.len() });
        for (name, part) in parts {
            line[format!("{name}_database_us")] =
                tenths(figure(rounds, part, |cost| cost.database * 1e6)).into();
            line[format!("{name}_client_us")] = tenths(figure(rounds, part, |cost| cost.client * 1e6)).into();
            line[format!("{name}_wal_bytes")] = figure(rounds, part, |cost| cost.log).round().into();
            line[format!("{name}_per_s")] = (1.0 / figure(rounds, part, |cost| cost.wall)).round().into();
        }
        println!("{line}");
        let ratio = |part: Part, of: fn(Cost) -> f64| figure(rounds, part, of) / figure(&costs[0], part, of);
        let of = |part: Part, of: fn(Cost) -> f64| figure(rounds, part, of);
        let log: fn(Cost) -> f64 = |cost| cost.log;
        table += &format!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} ({:.1} + {:.1}) | {:.2} | {:.1} | {:.0} + {:.0} + {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} |\n",
            shape.name,
            of(|costs| costs.enqueue, cpu),
            of(|costs| costs.claim, cpu),
            of(|costs| costs.settle, cpu),
            of(drained, cpu),
            of(drained, |cost| cost.database * 1e6),
            of(drained, |cost| cost.client * 1e6),
            ratio(drained, cpu),
            of(|costs| costs.vacuum, cpu),
            of(|costs| costs.enqueue, log),
            of(|costs| costs.claim, log),
            of(|costs| costs.settle, log),
            of(whole, log),
            of(|costs| costs.vacuum, log),
            1.0 / of(|costs| costs.enqueue, |cost| cost.wall),
            1.0 / ratio(|costs| costs.enqueue, |cost| cost.wall),
            1.0 / of(drained, |cost| cost.wall),
            1.0 / ratio(drained, |cost| cost.wall),
        );
    }
    println!("\n{table}");
}

fn drained(costs: &Costs) -> Cost {
    let mut sum = costs.claim;
    sum.add(costs.settle);
    sum
}

fn whole(costs: &Costs) -> Cost {
    let mut sum = drained(costs);
    sum.add(costs.enqueue);
    sum
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub fn tenths(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}
